// Whether the memory that a process takes is ours: sanitizers take many times as much.
#ifndef PRONK_TESTS_SUPPORT_MEMORY_IS_OURS_H_
#define PRONK_TESTS_SUPPORT_MEMORY_IS_OURS_H_

namespace test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsOurs = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kMemoryIsOurs = false;
#else
constexpr bool kMemoryIsOurs = true;
#endif
#else
constexpr bool kMemoryIsOurs = true;
#endif

}  // namespace test

#endif  // PRONK_TESTS_SUPPORT_MEMORY_IS_OURS_H_
