// How threads of a pool wait for each other: they poll, and then sleep until a Bell rings.
#pragma once

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace kernels {

inline constexpr size_t kCacheLine = 64;
// Polls of a waiting thread before it sleeps. One pause is 40 to 140 cycles, so kSpins take 10 to
// 50 microseconds, longer than most gaps between operations, and kMaxSpins up to a millisecond,
// longer than any gap.
inline constexpr int kSpins = 1000, kMaxSpins = 20000;

inline void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // longer than `yield`, which is a no-op on most cores
#endif
}

// Seconds of a clock that only goes forward.
inline double Now() {
  using std::chrono::duration;
  return duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// An event count, on which threads sleep. (Not atomic::wait(), which yields first: a thread that
// yields may not run again for a long time.)
class alignas(kCacheLine) Bell {
 public:
  // The condition must read, and the thread that makes it true must write, in sequentially
  // consistent order.
  template <class Condition>
  void SleepUntil(Condition condition) {
    n_asleep_.fetch_add(1);
    for (uint32_t rings = rings_.load(); !condition(); rings = rings_.load()) {
#if defined(__linux__)
      syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, rings, nullptr, nullptr, 0);
#else
      rings_.wait(rings);
#endif
    }
    n_asleep_.fetch_sub(1);
  }

  // Wakes all sleeping threads; call it after making a condition true.
  void Ring() {
    if (n_asleep_.load() == 0) return;
    rings_.fetch_add(1);
#if defined(__linux__)
    syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT32_MAX, nullptr, nullptr, 0);
#else
    rings_.notify_all();
#endif
  }

 private:
  std::atomic<uint32_t> rings_{0}, n_asleep_{0};
};

// Returns the seconds waited beyond kSpins polls. `spins`: the polls before sleeping; `yields`: the
// pool has more threads than cores, so a thread that polls for long yields its core.
template <class Condition>
double WaitUntil(Condition condition, Bell& bell, const std::atomic<int>& spins, bool yields) {
  int i = 0;
  for (; i < kSpins; ++i) {
    if (condition()) return 0;
    Pause();
  }
  const double start = Now();
  for (const int max_spins = spins.load(std::memory_order_relaxed); i < max_spins; ++i) {
    if (condition()) return Now() - start;
    yields ? std::this_thread::yield() : Pause();
  }
  bell.SleepUntil(condition);
  return Now() - start;
}

// A worker waits here for the next run that includes it.
struct alignas(kCacheLine) StartSignal {
  std::atomic<uint64_t> n_given{0};
  Bell bell;

  void Give() {
    n_given.fetch_add(1);
    bell.Ring();
  }
};

}  // namespace kernels
