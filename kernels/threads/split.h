// Split shares the items of an operation among threads. Taking items never waits, so tests can
// simulate cores of unequal speed with it.
//
// Each thread has kChunks chunks of contiguous items. It begins with its own and then steals chunks
// of other threads: a thread without a core delays no other, and a slow thread gets help.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kernels {

class Split {
 public:
  // Enough for other threads to steal some. With 16 the streams become too short (NOTEBOOK.md).
  static constexpr size_t kChunks = 8;

  struct Range {
    size_t begin, end;
  };
  // A thread's position in a job.
  struct Cursor {
    size_t thread;
    size_t n_claimed = 0;  // chunks
    size_t n_passed = 0;   // threads without unclaimed chunks
    bool is_open = false;  // a chunk of a dynamic job
  };

  explicit Split(size_t max_threads) : claims_(max_threads) {}

  // Between jobs: the next is number `job` + 1, for this many threads.
  void Start(size_t n_threads, uint64_t job) {
    n_threads_ = n_threads;
    for (Claim& claim : claims_) claim.chunks.store(job * kChunks);
  }
  size_t n_threads() const { return n_threads_; }
  size_t n_chunks() const { return n_threads_ * kChunks; }

  // [0, n) in multiples of `grain` (but the last); dynamic: one at a time, as threads become free.
  void Set(size_t n, size_t grain, bool dynamic) {
    n_ = n;
    grain_ = grain;
    dynamic_ = dynamic;
    next_item_.store(0, std::memory_order_relaxed);
  }

  // Takes the next range of job number `job` for a thread; returns false if no range is left. All
  // chunks of a job are claimed before the next begins, so a late thread that still asks for chunks
  // of a finished job finds them all claimed.
  bool Take(uint64_t job, Cursor& at, Range& range) {
    for (;;) {
      if (at.is_open) {
        range.begin = next_item_.fetch_add(grain_, std::memory_order_relaxed);
        range.end = std::min(range.begin + grain_, n_);
        if (range.begin < n_) return true;
        at.is_open = false;
      }
      if (at.n_passed == n_threads_) return false;
      const size_t owner = (at.thread + at.n_passed) % n_threads_;
      std::atomic<uint64_t>& claimed = claims_[owner].chunks;
      uint64_t chunk = claimed.load(std::memory_order_acquire);
      if (chunk >= job * kChunks) {
        ++at.n_passed;
      } else if (claimed.compare_exchange_weak(chunk, chunk + 1, std::memory_order_acq_rel)) {
        ++at.n_claimed;
        at.is_open = dynamic_;
        range = Chunk(owner * kChunks + chunk % kChunks);
        if (!dynamic_ && range.begin < range.end) return true;
      }
    }
  }

 private:
  // The number of a thread's chunks that have been claimed, in all jobs so far.
  struct alignas(64) Claim {
    std::atomic<uint64_t> chunks{0};
  };

  Range Chunk(size_t chunk) const {
    const size_t n_grains = (n_ + grain_ - 1) / grain_;
    return {n_grains * chunk / n_chunks() * grain_,
            std::min(n_grains * (chunk + 1) / n_chunks() * grain_, n_)};
  }

  size_t n_threads_ = 1;
  size_t n_ = 0, grain_ = 1;
  bool dynamic_ = false;
  std::vector<Claim> claims_;
  alignas(64) std::atomic<size_t> next_item_{0};
};

}  // namespace kernels
