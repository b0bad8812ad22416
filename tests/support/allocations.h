// Counts a test program's heap allocations by operator new, in all its libraries.
#pragma once

#include <cstddef>

namespace test {

// ThreadSanitizer does not allow other operators; then all counts are 0.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PRONK_TESTS_COUNT_NOTHING
#endif
#endif
#if defined(PRONK_TESTS_COUNT_NOTHING)
inline constexpr bool kAllocationsAreCounted = false;
#else
inline constexpr bool kAllocationsAreCounted = true;
#endif

struct Allocations {
  size_t count;  // calls of operator new so far
  size_t bytes;  // held at this moment
  size_t peak;  // most bytes held at once since ResetPeak(), including failed std::nothrow attempts
};
Allocations CountAllocations();
void ResetPeak();
// Makes every allocation fail that would raise the bytes held above this limit.
void LimitBytes(size_t most);
// Makes only the n-th allocation from here on fail; 0: none, and the limit is lifted. Returns
// whether an allocation has failed since the last call.
bool FailAllocation(size_t n);

}  // namespace test
