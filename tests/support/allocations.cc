#include "tests/support/allocations.h"

#if defined(__APPLE__)
#include <malloc/malloc.h>
#else
#include <malloc.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<size_t> count = 0, bytes = 0, peak = 0, until_failure = 0, limit = SIZE_MAX;
std::atomic<bool> has_failed = false;

}  // namespace

#if !defined(PRONK_TESTS_COUNT_NOTHING)
namespace {

size_t SizeOf(void* memory) {
#if defined(__APPLE__)
  return malloc_size(memory);
#else
  return malloc_usable_size(memory);
#endif
}

bool Fails(size_t n) {
  size_t left = until_failure;
  while (left > 0 && !until_failure.compare_exchange_weak(left, left - 1)) {
  }
  const bool fails = left == 1 || n > limit || bytes > limit - n;
  if (fails) has_failed = true;
  return fails;
}

void* Count(void* memory, bool is_used = true) {
  if (memory == nullptr) throw std::bad_alloc();
  ++count;
  const size_t now = bytes += SizeOf(memory);
  if (!is_used) return memory;
  for (size_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void Free(void* memory) {
  if (memory == nullptr) return;
  bytes -= SizeOf(memory);
  std::free(memory);
}

void* Allocate(size_t n) { return Fails(n) ? nullptr : std::malloc(n == 0 ? 1 : n); }

void* Allocate(size_t n, std::align_val_t alignment) {
  const auto multiple = static_cast<size_t>(alignment);
  if (Fails(n)) return nullptr;
  return std::aligned_alloc(multiple, (n + multiple - 1) / multiple * multiple);
}

}  // namespace

// These replace the standard library's operators. All forms are here: for a missing form a
// sanitizer uses its own, and then reports that another allocator frees its memory.
using std::align_val_t;
void* operator new(size_t n) { return Count(Allocate(n)); }
void* operator new[](size_t n) { return Count(Allocate(n)); }
void* operator new(size_t n, align_val_t a) { return Count(Allocate(n, a)); }
void* operator new[](size_t n, align_val_t a) { return Count(Allocate(n, a)); }
void* operator new(size_t n, const std::nothrow_t& /*tag*/) noexcept {
  void* const memory = Allocate(n);
  return memory == nullptr ? nullptr : Count(memory, /*is_used=*/false);
}
void* operator new[](size_t n, const std::nothrow_t& tag) noexcept { return operator new(n, tag); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t /*n*/) noexcept { Free(memory); }
void operator delete[](void* memory, size_t /*n*/) noexcept { Free(memory); }
void operator delete(void* memory, align_val_t /*a*/) noexcept { Free(memory); }
void operator delete[](void* memory, align_val_t /*a*/) noexcept { Free(memory); }
void operator delete(void* memory, size_t /*n*/, align_val_t /*a*/) noexcept { Free(memory); }
void operator delete[](void* memory, size_t /*n*/, align_val_t /*a*/) noexcept { Free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { Free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { Free(memory); }
#endif

namespace test {

Allocations CountAllocations() { return {count, bytes, peak}; }
void ResetPeak() { peak = bytes.load(); }
void LimitBytes(size_t most) { limit = most; }
bool FailAllocation(size_t n) {
  LimitBytes(SIZE_MAX);
  until_failure = n;
  return has_failed.exchange(false);
}

}  // namespace test
