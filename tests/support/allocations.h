// Counts what a test program takes from the heap with operator new, in all its libraries.
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
  size_t peak;   // most bytes held at once since ResetPeak(); those of std::nothrow are only tried
};
Allocations CountAllocations();
void ResetPeak();
// Lets all allocations fail that would make the bytes held more than this.
void LimitBytes(size_t most);
// Lets the n-th allocation from here on fail, and only that; 0: none, without a limit either.
// Returns whether one has failed since it was called last.
bool FailAllocation(size_t n);

}  // namespace test
