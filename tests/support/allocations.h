// Counts what a test program takes from the heap with operator new, in all its libraries.
#ifndef PRONK_TESTS_SUPPORT_ALLOCATIONS_H_
#define PRONK_TESTS_SUPPORT_ALLOCATIONS_H_

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
  size_t peak;   // most bytes held at once since ResetPeak()
};
Allocations CountAllocations();
void ResetPeak();
// Lets the n-th allocation from here on fail, and only that; 0: none. Returns whether the last one
// to fail has done so.
bool FailAllocation(size_t n);

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_ALLOCATIONS_H_
