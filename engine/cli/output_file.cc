#include "engine/cli/output_file.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/error.h"

namespace cli {
namespace {

// Whether there is something at this path that cannot be replaced by a file.
bool IsStream(const std::string& path) {
  std::error_code error;
  const auto type = std::filesystem::status(path, error).type();
  return type == std::filesystem::file_type::character ||
         type == std::filesystem::file_type::fifo || type == std::filesystem::file_type::block ||
         type == std::filesystem::file_type::socket;
}

// The name of the file that is being written, where a signal's handler finds it.
std::atomic<const char*> unfinished = nullptr;
static_assert(std::atomic<const char*>::is_always_lock_free);

void OnEnd(int signal) {
  RemoveUnfinishedFile();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// Signals that end the program, unless somebody else handles or ignores them, remove the file
// first.
void CatchEnds() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action = {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_DFL) std::signal(signal, OnEnd);
  }
}

}  // namespace

void RemoveUnfinishedFile() {
  const char* const name = unfinished;
  if (name != nullptr) unlink(name);
}

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), partial_(IsStream(path_) ? "" : path_ + ".partial") {
  if (!partial_.empty()) {
    unfinished = partial_.c_str();
    CatchEnds();
  }
  file_ = std::fopen((partial_.empty() ? path_ : partial_).c_str(), "wb");
  if (file_ != nullptr) return;
  unfinished = nullptr;
  Fail();
}

OutputFile::~OutputFile() {
  if (file_ != nullptr) {
    std::fclose(file_);
    if (!partial_.empty()) std::remove(partial_.c_str());
  }
  unfinished = nullptr;
}

void OutputFile::Fail() const {
  throw engine::Error(path_ + ": cannot be written: " + std::strerror(errno));
}

void OutputFile::Write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) Fail();
}

void OutputFile::Commit() {
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (closed && partial_.empty()) return;
  if (closed && std::rename(partial_.c_str(), path_.c_str()) == 0) return;
  const int error = errno;
  if (!partial_.empty()) std::remove(partial_.c_str());
  errno = error;
  Fail();
}

}  // namespace cli
