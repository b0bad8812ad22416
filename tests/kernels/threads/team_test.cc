// The thread team: every item done once, in ranges that depend on nothing but the sizes.
#include "kernels/threads/team.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kernels {
namespace {

class TeamTest : public testing::TestWithParam<int> {};

TEST_P(TeamTest, EveryItemOnce) {
  Team team(GetParam());
  for (const size_t n : {0u, 1u, 7u, 64u, 1000u}) {
    for (const size_t grain : {1u, 4u, 16u}) {
      for (const bool dynamic : {false, true}) {
        std::vector<std::atomic<int>> done(n);
        auto work = [&](size_t begin, size_t end, size_t thread) {
          EXPECT_LT(thread, team.size());
          EXPECT_EQ(begin % grain, 0u);
          for (size_t i = begin; i < end; ++i) ++done[i];
        };
        team.Run([&] { dynamic ? team.ForDynamic(n, grain, work) : team.For(n, grain, work); });
        for (size_t i = 0; i < n; ++i) EXPECT_EQ(done[i], 1) << i << " of " << n;
      }
    }
  }
}

TEST_P(TeamTest, WorksOutsideRun) {
  Team team(GetParam());
  size_t sum = 0;
  team.For(10, 1, [&](size_t begin, size_t end, size_t) { sum += end - begin; });
  EXPECT_EQ(sum, 10u);
}

// Thousands of operations in one region, as in a forward pass: each reads what the last one wrote.
TEST_P(TeamTest, OperationsFollowEachOther) {
  Team team(GetParam());
  std::vector<int> values(97, 0);
  for (int run = 0; run < 3; ++run) {
    team.Run([&] {
      for (int step = 0; step < 2000; ++step) {
        team.For(values.size(), 1, [&](size_t begin, size_t end, size_t) {
          for (size_t i = begin; i < end; ++i) ++values[i];
        });
      }
    });
  }
  for (const int value : values) EXPECT_EQ(value, 6000);
}

// Fading states of recurrent layers must not become slow, and the host keeps its own mode.
TEST_P(TeamTest, DenormalsAreZerosDuringARun) {
  Team team(GetParam());
  const volatile float normal = 0x1p-120f, denormal = 0x1p-130f;
  const auto is_flushed = [&] { return normal * 0x1p-10f == 0 && denormal * 0x1p20f == 0; };
  std::atomic<int> n_flushed = 0;
  team.Run([&] {
    n_flushed += is_flushed() ? 1 : 0;
    team.For(64, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) n_flushed += is_flushed() ? 1 : 0;
    });
  });
  EXPECT_EQ(n_flushed, 65);
  EXPECT_THROW(team.Run([] { throw std::runtime_error(""); }), std::runtime_error);
  EXPECT_EQ(normal * 0x1p-10f, 0x1p-130f);
  EXPECT_EQ(denormal * 0x1p20f, 0x1p-110f);
}

// One thread is held up in its first chunk: the others do all the rest.
TEST_P(TeamTest, ChunksAreStolen) {
  Team team(GetParam());
  if (team.size() == 1) return;
  const size_t n = team.size() * Team::kChunks;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::atomic<size_t> done = 0;
  team.Run([&] {
    team.For(n, 1, [&](size_t begin, size_t /*end*/, size_t) {
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

// A sleeping thread has no core, as far as a team can see: it goes on alone, then tries again.
TEST_P(TeamTest, GoesAloneWhereCoresAreTaken) {
  const auto sleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  Team team(GetParam(), Oversubscription::kRunOnCaller);
  if (team.size() == 1) return;
  team.Run(sleep);
  EXPECT_EQ(team.n_runs_alone(), 0u);
  team.Run([&] {
    size_t n_calls = 0;
    team.For(100, 1, [&](size_t begin, size_t end, size_t thread) {
      ++n_calls;
      EXPECT_EQ(end - begin, 100u);  // all of it, by the caller
      EXPECT_EQ(thread, 0u);
    });
    EXPECT_EQ(n_calls, 1u);
  });
  EXPECT_EQ(team.n_runs_alone(), 1u);
  for (int i = 0; i < 20; ++i) team.Run(sleep);  // of 5 ms each, and 40 alone are enough
  EXPECT_LT(team.n_runs_alone(), 21u);           // all but the first
  EXPECT_EQ(team.n_runs(), 22u);

  Team steady(GetParam());
  for (int i = 0; i < 4; ++i) steady.Run(sleep);
  EXPECT_EQ(steady.n_runs_alone(), 0u);
}

// Its number may change with each run; not above the most, which scratch is made for.
TEST_P(TeamTest, SizeOfEachRun) {
  Team team(GetParam());
  for (const size_t size : {1u, 3u, 2u, 9u, 0u}) {
    team.set_size(size);
    EXPECT_EQ(team.size(), std::clamp<size_t>(size, 1, team.max_size()));
    std::atomic<size_t> n_items = 0;
    team.Run([&] {
      team.For(100, 1, [&](size_t begin, size_t end, size_t thread) {
        EXPECT_LT(thread, team.size());
        n_items += end - begin;
      });
    });
    EXPECT_EQ(n_items, 100u);
  }
}

TEST_P(TeamTest, ExceptionLeavesTheRegion) {
  Team team(GetParam());
  EXPECT_THROW(team.Run([] { throw std::runtime_error("stop"); }), std::runtime_error);
  int done = 0;
  team.Run([&] { ++done; });
  EXPECT_EQ(done, 1);
}

// From the question that is answered with no, threads do at most the chunk that they are in.
TEST_P(TeamTest, StopsBetweenChunks) {
  Team team(GetParam());
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
        dynamic ? team.ForDynamic(100, 1, work) : team.For(100, 1, work);
      }
      went_on = true;
    };
    EXPECT_FALSE(team.RunWhile(wanted, body));
    EXPECT_FALSE(went_on);
    EXPECT_EQ(n_asked, 3);
    if (team.size() == 1) {
      EXPECT_EQ(n_items, dynamic ? 2 : 26);  // two chunks
    }
    const auto fail = [&]() -> bool { throw std::runtime_error("mine"); };
    EXPECT_THROW(team.RunWhile(fail, body), std::runtime_error);
    EXPECT_TRUE(team.RunWhile([] { return true; }, body));
    EXPECT_TRUE(went_on);
  }
}

// Five threads are more than some test machines have cores: waiting must sleep.
INSTANTIATE_TEST_SUITE_P(Sizes, TeamTest, testing::Values(1, 2, 5));

}  // namespace
}  // namespace kernels
