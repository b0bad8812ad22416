// Bytes that end where reading is forbidden, as a mapped file can end: reading one byte more ends
// the program.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>

namespace test {

class GuardedBytes {
 public:
  explicit GuardedBytes(std::span<const std::byte> bytes)
      : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        mapped_((bytes.size() + page_ - 1) / page_ * page_),
        memory_(mmap(nullptr, mapped_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0)) {
    if (memory_ == MAP_FAILED) throw std::runtime_error("cannot map memory");
    std::byte* const end = static_cast<std::byte*>(memory_) + mapped_;
    data_ = end - bytes.size();
    std::copy(bytes.begin(), bytes.end(), end - bytes.size());
    if (mprotect(end, page_, PROT_NONE) != 0) throw std::runtime_error("cannot protect memory");
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(memory_, mapped_ + page_); }

  const std::byte* data() const { return data_; }

 private:
  size_t page_;
  size_t mapped_;
  void* memory_;
  const std::byte* data_ = nullptr;
};

}  // namespace test
