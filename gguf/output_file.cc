// A nameless or temporary file that takes its name when it is complete.
#include "gguf/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

namespace gguf {
namespace {

// The number of the open file that a path like /dev/stdout or /dev/fd/3 names; -1 for other paths.
int OpenFileOf(const std::string& path) {
  if (path == "/dev/stdin") return STDIN_FILENO;
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const char* const end = path.data() + path.size();
    int fd = -1;
    const auto [rest, error] = std::from_chars(path.data() + folder.size(), end, fd);
    if (error == std::errc() && rest == end && fd >= 0) return fd;
  }
  return -1;
}

// Follows links, to a file that need not exist or to the path of an open file.
std::string FollowLinks(std::string path) {
  constexpr int kMaxLinks = 40;  // Linux's limit
  for (int i = 0; i < kMaxLinks && OpenFileOf(path) < 0; ++i) {
    std::error_code error;
    const std::filesystem::path to = std::filesystem::read_symlink(path, error);
    if (error) return path;  // not a link
    path = (std::filesystem::path(path).parent_path() / to).string();
  }
  return path;
}

template <class... Parts>
[[noreturn]] void Refuse(const std::string& path, const Parts&... what) {
  throw OutputError(Message(PrintablePath(path), ": ", what...));
}

// Gives a nameless file this name, which must be free.
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
  Refuse(path, "is a file that is read: give another name");
}

void RemoveUnfinishedFile() {
  const char* const name = unfinished;
  if (name != nullptr) unlink(name);
}

OutputFile::OutputFile(const std::string& path, std::span<const FileId> inputs)
    : path_(path), target_(FollowLinks(path)) {
  struct stat status;
  const bool exists = stat(target_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) Fail(path);  // links in a circle, for example
  if (exists && S_ISDIR(status.st_mode)) Refuse(path, "is a folder: give the name of a file");
  const int open_fd = OpenFileOf(target_);
  try {
    if (open_fd >= 0 || (exists && !S_ISREG(status.st_mode))) {
      OpenAsItStands(open_fd, inputs);
    } else {
      OpenReplacement(inputs);
    }
  } catch (const Error&) {
    Discard();
    throw;
  }
}

void OutputFile::OpenReplacement(std::span<const FileId> inputs) {
  struct stat old;
  const bool exists = stat(target_.c_str(), &old) == 0;
  if (exists) {
    RefuseInputs(path_, old, inputs);
    // Root may write to any file; a read-only file is still meant to be kept.
    if ((old.st_mode & 0222) == 0) Refuse(path_, "is read-only, and would be lost");
    if (faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) Fail(path_);
  }
  if (!OpenNameless()) {
    TakeName([&] {
      fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return fd_;
    });
  }
  if (exists) KeepOwner(old);
}

// Called before anything is written, so that no user reads what the old file hid.
void OutputFile::KeepOwner(const struct stat& old) {
  struct stat created;
  if (fstat(fd_, &created) != 0) Fail(path_);
  const bool is_same = created.st_uid == old.st_uid && created.st_gid == old.st_gid;
  if (!is_same && fchown(fd_, old.st_uid, old.st_gid) != 0) {
    Refuse(path_, "belongs to another user or group, and a new file could not: remove it first");
  }
  constexpr mode_t kPermissions = 0777;
  if (((created.st_mode ^ old.st_mode) & kPermissions) == 0) return;
  if (fchmod(fd_, old.st_mode & kPermissions) != 0) Fail(path_);
}

// Opens a file without a name, which never stays behind. False if the file system has none, /proc
// is missing, or the name that replaces a file would be too long.
bool OutputFile::OpenNameless() {
#if defined(O_TMPFILE)
  const bool is_short = access((target_ + ".tmp1234567-99").c_str(), F_OK) == 0 || errno == ENOENT;
  if (!is_short || access("/proc/self/fd/0", F_OK) != 0) return false;
  const std::string folder = std::filesystem::path(target_).parent_path();
  fd_ = open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
#endif
  return is_nameless_ = fd_ >= 0;
}

// Tries names until one can be created: a killed program may have left a file, and ids repeat.
void OutputFile::TakeName(const std::function<int()>& create) {
  constexpr int kMaxTries = 100;
  const std::string first = target_ + ".tmp" + std::to_string(getpid());
  for (int i = 1; i <= kMaxTries; ++i) {
    temporary_ = i == 1 ? first : first + "-" + std::to_string(i);
    errno = EEXIST;
    if (access(temporary_.c_str(), F_OK) == 0) continue;
    unfinished = temporary_.c_str();  // set first: a signal may come right after creation
    if (create() >= 0) return;
    unfinished = nullptr;
    if (errno != EEXIST) break;
  }
  // Names the temporary file if its name is at fault.
  const std::string name = std::exchange(temporary_, {});
  Fail(errno == EEXIST || errno == ENAMETOOLONG ? name : path_);
}

// Opens a device, a pipe or an already open file. Refuses a pipe without a reader: opening it would
// wait.
void OutputFile::OpenAsItStands(int open_fd, std::span<const FileId> inputs) {
  fd_ = open_fd >= 0 ? fcntl(open_fd, F_DUPFD_CLOEXEC, 0)
                     : open(target_.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd_ < 0 && errno == ENXIO) Refuse(path_, "is a pipe (FIFO) without a reader");
  struct stat status;
  if (fd_ < 0 || fstat(fd_, &status) != 0) Fail(path_);
  if (open_fd < 0) fcntl(fd_, F_SETFL, O_WRONLY);  // writing waits
  RefuseInputs(path_, status, inputs);
}

OutputFile::~OutputFile() { Discard(); }

void OutputFile::Discard() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
  if (!temporary_.empty()) unlink(temporary_.c_str());
  temporary_.clear();
  unfinished = nullptr;
}

void OutputFile::Fail(const std::string& path) const {
  Refuse(path, "cannot be written: ", std::generic_category().message(errno));
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
  if (is_nameless_ && Link(fd_, target_) != 0) TakeName([&] { return Link(fd_, temporary_); });
  if (close(std::exchange(fd_, -1)) != 0) Fail(path_);
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0) Fail(path_);
  unfinished = nullptr;
  temporary_.clear();
}

}  // namespace gguf
