// The thread pool: every item done once, in ranges that depend on nothing but the sizes.
#include "kernels/threads/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kernels {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, EveryItemOnce) {
  ThreadPool pool(GetParam());
  for (const size_t n : {0u, 1u, 7u, 64u, 1000u}) {
    for (const size_t grain : {1u, 4u, 16u}) {
      for (const bool dynamic : {false, true}) {
        std::vector<std::atomic<int>> done(n);
        auto work = [&](size_t begin, size_t end, size_t thread) {
          EXPECT_LT(thread, pool.size());
          EXPECT_EQ(begin % grain, 0u);
          for (size_t i = begin; i < end; ++i) ++done[i];
        };
        pool.Run([&] { dynamic ? pool.ForDynamic(n, grain, work) : pool.For(n, grain, work); });
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(done[i], 1) << i << " of " << n;
      }
    }
  }
}

TEST_P(ThreadPoolTest, WorksOutsideRun) {
  ThreadPool pool(GetParam());
  size_t sum = 0;
  pool.For(10, 1, [&](size_t begin, size_t end, size_t) { sum += end - begin; });
  EXPECT_EQ(sum, 10u);
}

// Thousands of operations in one region, as in a forward pass: each reads the last one's output.
TEST_P(ThreadPoolTest, OperationsFollowEachOther) {
  ThreadPool pool(GetParam());
  std::vector<int> values(97, 0);
  for (int run = 0; run < 3; ++run) {
    pool.Run([&] {
      for (int step = 0; step < 2000; ++step) {
        pool.For(values.size(), 1, [&](size_t begin, size_t end, size_t) {
          for (size_t i = begin; i < end; ++i) ++values[i];
        });
      }
    });
  }
  for (const int value : values) EXPECT_EQ(value, 6000);
}

// Fading states of recurrent layers must not become slow, and the host keeps its own mode.
TEST_P(ThreadPoolTest, DenormalsAreZerosDuringARun) {
  ThreadPool pool(GetParam());
  const volatile float normal = 0x1p-120f, denormal = 0x1p-130f;
  const auto is_flushed = [&] { return normal * 0x1p-10f == 0 && denormal * 0x1p20f == 0; };
  std::atomic<int> n_flushed = 0;
  pool.Run([&] {
    n_flushed += is_flushed() ? 1 : 0;
    pool.For(64, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) n_flushed += is_flushed() ? 1 : 0;
    });
  });
  EXPECT_EQ(n_flushed, 65);
  EXPECT_THROW(pool.Run([] { throw std::runtime_error(""); }), std::runtime_error);
  EXPECT_EQ(normal * 0x1p-10f, 0x1p-130f);
  EXPECT_EQ(denormal * 0x1p20f, 0x1p-110f);
}

// One thread is held up in its first chunk: the other threads do the rest.
TEST_P(ThreadPoolTest, ChunksAreStolen) {
  ThreadPool pool(GetParam());
  if (pool.size() == 1) return;
  const size_t n = pool.size() * ThreadPool::kChunks;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::atomic<size_t> done = 0;
  pool.Run([&] {
    pool.For(n, 1, [&](size_t begin, size_t /*end*/, size_t) {
      if (begin == 0) {
        while (done < n - 1 && std::chrono::steady_clock::now() < deadline) {
          std::this_thread::yield();
        }
        EXPECT_EQ(done, n - 1);
      }
      ++done;
    });
  });
  EXPECT_EQ(done, n);
}

// A sleeping thread has no core, as far as a pool can see: it goes on alone, then tries again.
TEST_P(ThreadPoolTest, GoesAloneWhereCoresAreTaken) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  ThreadPool pool(GetParam(), Oversubscription::kRunOnCaller);
  if (pool.size() == 1) return;
  pool.Run(sleep);
  EXPECT_EQ(pool.n_runs_alone(), 0u);
  pool.Run([&] {
    size_t n_calls = 0;
    pool.For(100, 1, [&](size_t begin, size_t end, size_t thread) {
      ++n_calls;
      EXPECT_EQ(end - begin, 100u);  // all items, by the caller
      EXPECT_EQ(thread, 0u);
    });
    EXPECT_EQ(n_calls, 1u);
  });
  EXPECT_EQ(pool.n_runs_alone(), 1u);
  for (int i = 0; i < 20; ++i) pool.Run(sleep);  // of 5 ms each, and 40 alone are enough
  EXPECT_LT(pool.n_runs_alone(), 21u);           // all runs but the first
  EXPECT_EQ(pool.n_runs(), 22u);

  ThreadPool steady(GetParam());
  for (int i = 0; i < 4; ++i) steady.Run(sleep);
  EXPECT_EQ(steady.n_runs_alone(), 0u);
}

// The size may change with each run, up to the maximum, which scratch is made for.
TEST_P(ThreadPoolTest, SizeOfEachRun) {
  ThreadPool pool(GetParam());
  for (const size_t size : {1u, 3u, 2u, 9u, 0u}) {
    pool.set_size(size);
    EXPECT_EQ(pool.size(), std::clamp<size_t>(size, 1, pool.max_size()));
    std::atomic<size_t> n_items = 0;
    pool.Run([&] {
      pool.For(100, 1, [&](size_t begin, size_t end, size_t thread) {
        EXPECT_LT(thread, pool.size());
        n_items += end - begin;
      });
    });
    EXPECT_EQ(n_items, 100u);
  }
}

TEST_P(ThreadPoolTest, ExceptionLeavesTheRegion) {
  ThreadPool pool(GetParam());
  EXPECT_THROW(pool.Run([] { throw std::runtime_error("stop"); }), std::runtime_error);
  int done = 0;
  pool.Run([&] { ++done; });
  EXPECT_EQ(done, 1);
}

// After `wanted` returns false, threads finish at most their current chunk.
TEST_P(ThreadPoolTest, StopsBetweenChunks) {
  ThreadPool pool(GetParam());
  for (const bool dynamic : {false, true}) {
    int n_asked = 0;
    std::atomic<int> n_items = 0;
    bool went_on = false;
    const auto work = [&](size_t begin, size_t end, size_t) {
      n_items += static_cast<int>(end - begin);
    };
    const auto wanted = [&] { return ++n_asked < 3; };
    const auto body = [&] {
      for (int i = 0; i < 3; ++i) {
        dynamic ? pool.ForDynamic(100, 1, work) : pool.For(100, 1, work);
      }
      went_on = true;
    };
    EXPECT_FALSE(pool.RunWhile(wanted, body));
    EXPECT_FALSE(went_on);
    EXPECT_EQ(n_asked, 3);
    if (pool.size() == 1) {
      EXPECT_EQ(n_items, dynamic ? 2 : 26);  // two chunks
    }
    const auto fail = [&]() -> bool { throw std::runtime_error("mine"); };
    EXPECT_THROW(pool.RunWhile(fail, body), std::runtime_error);
    EXPECT_TRUE(pool.RunWhile([] { return true; }, body));
    EXPECT_TRUE(went_on);
  }
}

// Five threads are more than some test machines have cores: waiting must sleep.
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolTest, testing::Values(1, 2, 5));

}  // namespace
}  // namespace kernels
