// Uninitialized memory, aligned to cache lines: untouched pages never become resident. Scratch of
// kernels/ and engine/pass/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

// These do nothing unless AddressSanitizer is on.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace kernels {

constexpr size_t kCacheLine = 64;

// T[n]. The class aligns the memory itself, inside a plain allocation: glibc before 2.38 does not
// reuse what std::aligned_alloc freed, so a process that makes and drops sequences would grow
// without end.
template <class T>
class Buffer {
  static_assert(std::is_trivial_v<T>);

 public:
  explicit Buffer(size_t n = 0) : bytes_(new std::byte[n * sizeof(T) + kCacheLine - 1]) {
    const size_t skipped = -reinterpret_cast<uintptr_t>(bytes_.get()) % kCacheLine;
    data_ = reinterpret_cast<T*>(bytes_.get() + skipped);
    ASAN_POISON_MEMORY_REGION(data_ + n, kCacheLine - 1 - skipped);
  }
  T* get() { return data_; }
  const T* get() const { return data_; }

 private:
  std::unique_ptr<std::byte[]> bytes_;
  T* data_;
};

}  // namespace kernels
