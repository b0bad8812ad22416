#include "gguf/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gguf/error.h"

namespace gguf {
namespace {

// Whether a rename could put a file here: there is nothing yet, or a file and no link to one.
bool IsReplaceable(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

// The temporary name in use, where the handler of a signal finds it.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

void RemoveUnfinishedFile() {
  const char* const name = unfinished;
  if (name != nullptr) unlink(name);
}

OutputFile::OutputFile(const std::string& path) : path_(path) {
  if (IsReplaceable(path)) {
    temporary_ = path + ".tmp" + std::to_string(getpid());
    unfinished = temporary_.c_str();  // before it is there: a signal may come right after
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } else {
    fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  }
  if (fd_ >= 0) return;
  unfinished = nullptr;
  Fail();
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  unfinished = nullptr;
}

void OutputFile::Fail() const {
  throw Error(PrintablePath(path_) +
              ": cannot be written: " + std::generic_category().message(errno));
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail();
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::Commit() {
  // On the disk before it has its name. What is written through may be no disk's.
  if (!temporary_.empty() && fsync(fd_) != 0) Fail();
  if (close(std::exchange(fd_, -1)) != 0) Fail();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) Fail();
  unfinished = nullptr;
  temporary_.clear();
}

}  // namespace gguf
