// Uninitialized memory, aligned to cache lines: untouched pages never become resident. Scratch of
// kernels/ and engine/pass/.
#ifndef PRONK_KERNELS_BUFFER_H_
#define PRONK_KERNELS_BUFFER_H_

#include <cstddef>
#include <memory>
#include <new>

namespace kernels {

constexpr size_t kCacheLine = 64;

template <class T>
class Buffer {
 public:
  explicit Buffer(size_t n = 0) : data_(new (std::align_val_t(kCacheLine)) T[n]) {}
  T* get() { return data_.get(); }
  const T* get() const { return data_.get(); }

 private:
  struct AlignedDelete {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t(kCacheLine)); }
  };
  std::unique_ptr<T[], AlignedDelete> data_;
};

}  // namespace kernels

#endif  // PRONK_KERNELS_BUFFER_H_
