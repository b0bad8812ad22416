// The only file that knows OpenMP. See team.h for the idea.
#include "kernels/team.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>

namespace kernels {
namespace {

// How often a waiting thread looks before it gives its core away. A pause is 40 to 140 cycles, so
// this is 10 to 50 microseconds: longer than the gaps between operations, shorter than a time
// slice.
constexpr int kSpins = 1000;
constexpr size_t kCacheLine = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // longer than `yield`, which is a no-op on most cores
#endif
}

template <class Condition>
void WaitUntil(Condition condition) {
  for (int spins = 0; !condition(); ++spins) {
    if (spins < kSpins) {
      Pause();
    } else {
      sched_yield();
    }
  }
}

}  // namespace

// One operation at a time: the caller writes the job, then raises `epoch`; each worker does its
// share and lowers `pending`. The caller touches the job again only when `pending` is 0.
struct Team::Shared {
  const Work* work = nullptr;  // null: go home
  size_t n = 0;
  size_t grain = 1;
  bool dynamic = false;
  size_t n_active = 1;  // threads that OpenMP gave us, the caller included
  bool running = false;
  uint64_t first_epoch = 0;  // of this Run(): a worker that comes late must not miss the first job
  alignas(kCacheLine) std::atomic<uint64_t> epoch{0};
  alignas(kCacheLine) std::atomic<size_t> pending{0};
  alignas(kCacheLine) std::atomic<size_t> next_item{0};

  void DoShare(size_t thread);
};

void Team::Shared::DoShare(size_t thread) {
  if (dynamic) {
    for (;;) {
      const size_t begin = next_item.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= n) return;
      (*work)(begin, std::min(begin + grain, n), thread);
    }
  }
  const size_t n_grains = (n + grain - 1) / grain;
  const size_t begin = n_grains * thread / n_active * grain;
  const size_t end = std::min(n_grains * (thread + 1) / n_active * grain, n);
  if (begin < end) (*work)(begin, end, thread);
}

Team::Team(int n_threads)
    : size_(static_cast<size_t>(std::max(n_threads, 1))), shared_(std::make_unique<Shared>()) {}

Team::~Team() = default;

void Team::Run(FunctionRef<void()> body) {
  if (size_ == 1) return body();
  Shared& s = *shared_;
  std::exception_ptr error;
#pragma omp parallel num_threads(static_cast <int>(size_))
  {
    // The implicit barrier after `single` lets nobody work before n_active is known.
#pragma omp single
    {
      s.n_active = static_cast<size_t>(omp_get_num_threads());
      s.running = s.n_active > 1;
      s.first_epoch = s.epoch.load(std::memory_order_relaxed);
    }
    const auto thread = static_cast<size_t>(omp_get_thread_num());
    if (thread == 0) {
      try {
        body();
      } catch (...) {
        error = std::current_exception();
      }
      s.work = nullptr;
      s.running = false;
      s.epoch.fetch_add(1, std::memory_order_release);
    } else {
      WorkerLoop(thread);
    }
  }
  if (error) std::rethrow_exception(error);
}

void Team::WorkerLoop(size_t thread) {
  Shared& s = *shared_;
  for (uint64_t seen = s.first_epoch;; ++seen) {
    WaitUntil([&] { return s.epoch.load(std::memory_order_acquire) != seen; });
    if (s.work == nullptr) return;
    s.DoShare(thread);
    s.pending.fetch_sub(1, std::memory_order_release);
  }
}

void Team::Dispatch(size_t n, size_t grain, bool dynamic, Work work) {
  if (n == 0) return;
  Shared& s = *shared_;
  if (!s.running || n <= grain) return work(0, n, 0);
  s.work = &work;
  s.n = n;
  s.grain = grain;
  s.dynamic = dynamic;
  s.next_item.store(0, std::memory_order_relaxed);
  s.pending.store(s.n_active - 1, std::memory_order_relaxed);
  s.epoch.fetch_add(1, std::memory_order_release);
  s.DoShare(0);
  WaitUntil([&] { return s.pending.load(std::memory_order_acquire) == 0; });
}

void Team::For(size_t n, size_t grain, Work work) { Dispatch(n, grain, false, work); }

void Team::ForDynamic(size_t n, size_t grain, Work work) { Dispatch(n, grain, true, work); }

}  // namespace kernels
