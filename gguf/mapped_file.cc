// Opens and maps a file, with a clear message for every failure.
#include "gguf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "gguf/error.h"

namespace gguf {

// Closes a file descriptor at the end of its scope.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

namespace {

[[noreturn]] void FailWithErrno(const std::string& path, int error) {
  if (error == ENOENT) throw NotFound(PrintablePath(path), ": no such file");
  if (error == EACCES) Fail(path, "cannot be read: permission denied");
  Fail(path, "cannot be opened: ", std::generic_category().message(error));
}

void CheckRegular(const std::string& path, const std::string& expected, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  std::string kind = "a device";
  if (S_ISDIR(status.st_mode)) kind = "a directory";
  if (S_ISFIFO(status.st_mode)) kind = "a pipe (FIFO)";
  if (S_ISSOCK(status.st_mode)) kind = "a socket";
  Fail(path, "expected ", expected, ", found ", kind);
}

// These bytes, and the bytes before them in their first page.
std::span<std::byte> WholePages(std::span<const std::byte> bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = reinterpret_cast<uintptr_t>(bytes.data()) % page;
  return {const_cast<std::byte*>(bytes.data()) - before, bytes.size() + before};
}

// Pages of 4 KB take 35 ms for a gigabyte, so a thread empties the second half of a large mapping.
void Unmap(std::span<std::byte> bytes) {
  constexpr size_t kLarge = size_t{32} << 20;
  std::thread other;
  if (bytes.size() > kLarge) {
    const std::span<std::byte> half = bytes.subspan(bytes.size() / 2 / kHugePage * kHugePage);
    try {
      other = std::thread([half] { madvise(half.data(), half.size(), MADV_DONTNEED); });
      madvise(bytes.data(), bytes.size() - half.size(), MADV_DONTNEED);
    } catch (const std::system_error&) {  // no thread can be started: munmap unmaps everything
    }
  }
  if (other.joinable()) other.join();
  munmap(bytes.data(), bytes.size());
}

// mincore() takes a void* and unsigned chars on Linux, and a char* and chars on macOS.
template <class Address, class Byte>
bool AskResident(int (*ask)(Address, size_t, Byte*), void* page) {
  Byte resident = 0;
  return ask(static_cast<Address>(page), 1, &resident) != 0 || (resident & 1) != 0;
}

}  // namespace

// One file in the list of mapped files.
struct MappedFile::Mapping {
  Descriptor file;
  std::span<const std::byte> bytes;
  size_t n_kept = 0;  // whole steps of KeepFirst, or all bytes
  FileId id;
  std::string name;  // printable
  std::atomic<Mapping*> next = nullptr;

  // Signal handlers walk the list while it changes, so links are always valid.
  static std::atomic<Mapping*> first;
  static std::mutex changing;
};
std::atomic<MappedFile::Mapping*> MappedFile::Mapping::first = nullptr;
std::mutex MappedFile::Mapping::changing;

MappedFile::MappedFile(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {
  const std::lock_guard lock(Mapping::changing);
  mapping_->next = Mapping::first.load();
  Mapping::first = mapping_.get();
}

MappedFile::~MappedFile() {
  if (mapping_ == nullptr) return;
  {
    const std::lock_guard lock(Mapping::changing);
    std::atomic<Mapping*>* link = &Mapping::first;
    while (*link != mapping_.get()) link = &link->load()->next;
    *link = mapping_->next.load();
  }
  Unmap({const_cast<std::byte*>(mapping_->bytes.data()), mapping_->bytes.size()});
}

MappedFile MappedFile::Open(const std::string& path, const std::string& expected,
                            uint64_t max_bytes) {
  struct stat status;
  // Checked before opening: opening a pipe waits for its writer, opening a device may act on it.
  if (stat(path.c_str(), &status) != 0) FailWithErrno(path, errno);
  CheckRegular(path, expected, status);
  // O_NONBLOCK in case the path has become a pipe since; regular files ignore it.
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 || fstat(file.get(), &status) != 0) FailWithErrno(path, errno);
  CheckRegular(path, expected, status);
  if (status.st_size == 0) Fail(path, "expected ", expected, ", found an empty file");
  if (std::cmp_greater(status.st_size, max_bytes)) {
    Fail(path, "expected at most ", max_bytes >> 20, " MB, found ",
         ((status.st_size - 1) >> 20) + 1);
  }

  const auto size = static_cast<size_t>(status.st_size);
  if (std::cmp_not_equal(size, status.st_size))
    Fail(path, "too large for this machine's addresses");
  void* const start = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) {
    Fail(path, "cannot be mapped into memory: ", std::generic_category().message(errno));
  }
  auto mapping = std::make_unique<Mapping>();
  mapping->file = std::move(file);
  mapping->bytes = {static_cast<const std::byte*>(start), size};
  mapping->id = FileId::Of(status);
  mapping->name = PrintablePath(path);
  return MappedFile(std::move(mapping));
}

MappedFile::MappedFile(MappedFile&& other) noexcept = default;

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(mapping_, other.mapping_);  // the old mapping goes with `other`
  return *this;
}

std::span<const std::byte> MappedFile::bytes() const {
  return mapping_ == nullptr ? std::span<const std::byte>() : mapping_->bytes;
}

const char* MappedFileAt(const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const auto* m = MappedFile::Mapping::first.load(); m != nullptr; m = m->next) {
    const auto begin = reinterpret_cast<uintptr_t>(m->bytes.data());
    if (at >= begin && at - begin < m->bytes.size()) return m->name.c_str();
  }
  return nullptr;
}

bool IsResident(const std::byte* at) { return AskResident(mincore, WholePages({at, 1}).data()); }

void ReadAhead(std::span<const std::byte> mapped) {
  const std::span<std::byte> pages = WholePages(mapped);
  madvise(pages.data(), pages.size(), MADV_WILLNEED);
}

void LetGo([[maybe_unused]] std::span<const std::byte> mapped) {
#if defined(MADV_PAGEOUT)
  const std::span<std::byte> pages = WholePages(mapped);
  madvise(pages.data(), pages.size(), MADV_PAGEOUT);
#endif
}

void UseHugePages([[maybe_unused]] std::span<const std::byte> memory) {
#if defined(MADV_HUGEPAGE)
  if (memory.size() < kHugePage) return;
  const std::span<std::byte> pages = WholePages(memory);
  madvise(pages.data(), pages.size(), MADV_HUGEPAGE);
#endif
}

bool Lock(std::span<const std::byte> mapped) {
  const std::span<std::byte> pages = WholePages(mapped);
  return mapped.empty() || mlock(pages.data(), pages.size()) == 0;
}

void MappedFile::KeepFirst(size_t n) {
  if (mapping_ == nullptr || n <= mapping_->n_kept) return;
  // A head is read a few bytes at a time. A step is a huge page, which comes at once where the
  // system has them; at first half of one, so that the weights of a small model are not copied.
  const size_t step = n <= kHugePage / 2 ? kHugePage / 2 : kHugePage;
  const size_t end = std::min((n + step - 1) / step * step, mapping_->bytes.size());
  auto* const from = const_cast<std::byte*>(mapping_->bytes.data()) + mapping_->n_kept;
  const size_t size = end - mapping_->n_kept;
  if (mmap(from, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
      MAP_FAILED) {
    throw Error(mapping_->name,
                ": cannot be mapped into memory: ", std::generic_category().message(errno));
  }
  UseHugePages({from, size});
  while (mapping_->n_kept < end) {
    const ssize_t n_read = pread(mapping_->file.get(), from + (size - (end - mapping_->n_kept)),
                                 end - mapping_->n_kept, static_cast<off_t>(mapping_->n_kept));
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read <= 0) {
      throw Error(mapping_->name, ": cannot be read: ",
                  n_read < 0 ? std::generic_category().message(errno) : "it has become shorter");
    }
    mapping_->n_kept += static_cast<size_t>(n_read);
  }
  mprotect(from, size, PROT_READ);
}

FileId MappedFile::id() const { return mapping_ == nullptr ? FileId() : mapping_->id; }

}  // namespace gguf
