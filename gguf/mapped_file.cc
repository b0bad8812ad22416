// Opening and mapping a file, with one clear line for each way that this can fail.
#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "gguf/error.h"

namespace gguf {
namespace {

// Closes a file descriptor at the end of its scope; a mapping outlives it.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void Fail(const std::string& path, const std::string& what) {
  throw Error(PrintablePath(path) + ": " + what);
}

[[noreturn]] void FailWithErrno(const std::string& path, int error) {
  if (error == ENOENT) Fail(path, "no such file");
  if (error == EACCES) Fail(path, "cannot be read: permission denied");
  Fail(path, "cannot be opened: " + std::generic_category().message(error));
}

void CheckRegular(const std::string& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  std::string kind = "a device";
  if (S_ISDIR(status.st_mode)) kind = "a directory";
  if (S_ISFIFO(status.st_mode)) kind = "a pipe (FIFO)";
  if (S_ISSOCK(status.st_mode)) kind = "a socket";
  Fail(path, "expected a GGUF file, found " + kind);
}

}  // namespace

MappedFile MappedFile::Open(const std::string& path) {
  struct stat status;
  // Asked before opening: opening a pipe waits for its writer, opening a device may move it.
  if (stat(path.c_str(), &status) != 0) FailWithErrno(path, errno);
  CheckRegular(path, status);
  // O_NONBLOCK in case the path has become a pipe since; regular files ignore it.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 || fstat(file.get(), &status) != 0) FailWithErrno(path, errno);
  CheckRegular(path, status);
  if (status.st_size == 0) Fail(path, "expected a GGUF file, found an empty file");

  const auto size = static_cast<size_t>(status.st_size);
  if (std::cmp_not_equal(size, status.st_size))
    Fail(path, "too large for this machine's addresses");
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) {
    Fail(path, "cannot be mapped into memory: " + std::generic_category().message(errno));
  }
  return MappedFile({static_cast<const std::byte*>(start), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);  // the old mapping goes with `other`
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace gguf
