#include "tests/support/allocations.h"

#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> count = 0, bytes = 0, peak = 0;

size_t SizeOf(void* memory) {
#if defined(__APPLE__)
  return malloc_size(memory);
#else
  return malloc_usable_size(memory);
#endif
}

void* Count(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  ++count;
  const size_t now = bytes += SizeOf(memory);
  for (size_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  bytes -= SizeOf(memory);
  std::free(memory);
}

}  // namespace

// In place of the standard library's, which all other forms call.
void* operator new(size_t n) { return Count(std::malloc(n == 0 ? 1 : n)); }
void* operator new(size_t n, std::align_val_t alignment) {
  const auto multiple = static_cast<size_t>(alignment);
  return Count(std::aligned_alloc(multiple, (n + multiple - 1) / multiple * multiple));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { Free(memory); }
void operator delete(void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  Free(memory);
}

namespace test {

Allocations CountAllocations() { return {count, bytes, peak}; }
void ResetPeak() { peak = bytes.load(); }

}  // namespace test
