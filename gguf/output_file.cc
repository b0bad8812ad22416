#include "gguf/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "gguf/error.h"

namespace gguf {
namespace {

// Whether a rename can put a file here: the path is free, or a regular file and no link.
bool IsReplaceable(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

// Gives a file that has no name this one, which must be free.
int Link(int fd, const std::string& name) {
  const std::string open_file = "/proc/self/fd/" + std::to_string(fd);
  return linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
}

// The temporary name in use, for signal handlers.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

}  // namespace

void RefuseInputs(const std::string& path, const struct stat& status,
                  std::span<const FileId> inputs) {
  if (std::ranges::find(inputs, FileId::Of(status)) == inputs.end()) return;
  gguf::Fail(path, "is a file that is read: give another name");
}

void RemoveUnfinishedFile() {
  const char* const name = unfinished;
  if (name != nullptr) unlink(name);
}

OutputFile::OutputFile(const std::string& path, std::span<const FileId> inputs) : path_(path) {
  struct stat status;
  if (!IsReplaceable(path)) {
    OpenAsItStands(inputs);
    return;
  }
  if (stat(path.c_str(), &status) == 0) RefuseInputs(path, status, inputs);
  if (OpenNameless()) return;
  TakeName([&] {
    fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return fd_;
  });
}

// A file without a name, which nothing can leave behind. False if the file system has none, /proc
// is missing, or the name that replaces a file would be too long.
bool OutputFile::OpenNameless() {
#if defined(O_TMPFILE)
  const bool is_short = access((path_ + ".tmp1234567-99").c_str(), F_OK) == 0 || errno == ENOENT;
  if (!is_short || access("/proc/self/fd/0", F_OK) != 0) return false;
  const std::string folder = std::filesystem::path(path_).parent_path();
  fd_ = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
  return is_nameless_ = fd_ >= 0;
}

// Tries names until one can be created: a killed program may have left a file, and ids repeat.
void OutputFile::TakeName(const std::function<int()>& create) {
  constexpr int kMaxTries = 100;
  const std::string first = path_ + ".tmp" + std::to_string(getpid());
  for (int i = 1; i <= kMaxTries; ++i) {
    temporary_ = i == 1 ? first : first + "-" + std::to_string(i);
    errno = EEXIST;
    if (access(temporary_.c_str(), F_OK) == 0) continue;
    unfinished = temporary_.c_str();  // before it exists: a signal may come right after
    if (create() >= 0) return;
    unfinished = nullptr;
    if (errno != EEXIST) break;
  }
  // Names the temporary file if its name is at fault.
  const std::string name = std::exchange(temporary_, {});
  Fail(errno == EEXIST || errno == ENAMETOOLONG ? name : path_);
}

// Truncates the file unless it is an input. Refuses a pipe that nobody reads: opening would wait.
void OutputFile::OpenAsItStands(std::span<const FileId> inputs) {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
  if (fd_ < 0 && errno == ENXIO) {
    gguf::Fail(path_, "is a pipe (FIFO) that nobody reads");
  }
  struct stat status;
  if (fd_ < 0 || fstat(fd_, &status) != 0) Fail(path_);
  fcntl(fd_, F_SETFL, O_WRONLY);  // writing waits
  try {
    RefuseInputs(path_, status, inputs);
    if (S_ISREG(status.st_mode) && ftruncate(fd_, 0) != 0) Fail(path_);
  } catch (const Error&) {
    close(fd_);
    throw;
  }
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
  unfinished = nullptr;
}

void OutputFile::Fail(const std::string& path) const {
  gguf::Fail(path, "cannot be written: ", std::generic_category().message(errno));
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) Fail(path_);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void OutputFile::Commit() {
  const bool is_direct = !is_nameless_ && temporary_.empty();
  // Synced to disk before it gets its name. A directly written file may not support syncing.
  if (!is_direct && fsync(fd_) != 0) Fail(path_);
  // A link cannot replace a file, so that takes a temporary name for a moment.
  if (is_nameless_ && Link(fd_, path_) != 0) TakeName([&] { return Link(fd_, temporary_); });
  if (close(std::exchange(fd_, -1)) != 0) Fail(path_);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) Fail(path_);
  unfinished = nullptr;
  temporary_.clear();
}

}  // namespace gguf
