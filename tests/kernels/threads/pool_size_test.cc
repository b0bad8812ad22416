// The number of threads by simulated time: cores of unequal speed that share memory, neighbours
// that come and go. The splitting rule and the choice are the real code.
#include "kernels/threads/pool_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "kernels/matmul/rows.h"
#include "kernels/threads/split.h"

namespace kernels {
namespace {

// Threads on the first cores of a machine whose speeds are given, fastest first.
class SimulatedMachine {
 public:
  explicit SimulatedMachine(std::vector<double> speeds)
      : speeds_(std::move(speeds)), split_(speeds_.size()) {}

  // Seconds for n items of a second each at speed 1, of which memory gives `memory` a second.
  double Seconds(size_t n_threads, size_t n, size_t grain, bool dynamic, double memory = 1e9) {
    double sum = 0;
    for (size_t i = 0; i < n_threads; ++i) sum += speeds_[i];
    const double share = std::min(1.0, memory / sum);  // of its speed that a core reaches
    split_.Start(n_threads, job_++);
    split_.Set(n, grain, dynamic);
    std::vector<Split::Cursor> places;
    for (size_t i = 0; i < n_threads; ++i) places.push_back({i});
    std::vector<double> clocks(n_threads);
    std::vector<bool> is_done(n_threads);
    double last = 0;
    for (size_t n_done = 0; n_done < n_threads;) {
      size_t next = n_threads;  // the thread that becomes free first
      for (size_t i = 0; i < n_threads; ++i) {
        if (!is_done[i] && (next == n_threads || clocks[i] < clocks[next])) next = i;
      }
      Split::Range range;
      if (split_.Take(job_, places[next], range)) {
        clocks[next] += static_cast<double>(range.end - range.begin) / (speeds_[next] * share);
        last = std::max(last, clocks[next]);
      } else {
        is_done[next] = true;
        ++n_done;
      }
    }
    return last;
  }

 private:
  std::vector<double> speeds_;
  Split split_;
  uint64_t job_ = 0;
};

// A prompt's products on two fast cores and four of half their speed: 2 + 4 * 0.5 is twice 2.
TEST(PoolSizeTest, SlowCoresHelpToRead) {
  SimulatedMachine machine({1, 1, 0.5, 0.5, 0.5, 0.5});
  double fast = 0, all = 0;
  for (const size_t rows : {1024u, 2048u, 4096u, 14336u}) {
    fast += machine.Seconds(2, rows, RowsAtATime(rows, 2), true);
    all += machine.Seconds(6, rows, RowsAtATime(rows, 6), true);
  }
  EXPECT_GE(fast / all, 1.9);
}

struct Simulated {
  double seconds = 0;
  size_t best = 0;
  double changed = -1;  // when the number last changed
};

// n passes whose seconds depend on the number of threads and the time.
Simulated Simulate(PoolSize& size, size_t n, const std::function<double(size_t, double)>& pass) {
  Simulated result;
  for (size_t i = 0; i < n; ++i) {
    const size_t before = size.best();
    const double seconds = pass(size.Choose(1), result.seconds);
    size.Measured(1, seconds);
    result.seconds += seconds;
    if (size.best() != before) result.changed = result.seconds;
  }
  result.best = size.best();
  return result;
}

// Two fast cores and four slow ones, with memory for 1.5 to all cores, a barrier that costs more
// with more threads, and clean or noisy times: never 3% slower than the best fixed number.
TEST(PoolSizeTest, AsFastAsTheBestNumber) {
  SimulatedMachine machine({1, 1, 0.5, 0.5, 0.5, 0.5});
  for (const double memory : {1.5, 2.2, 3.0, 9.0}) {
    for (const double noise : {0.0, 0.05}) {
      for (const size_t start : {2u, 4u, 6u}) {
        std::mt19937 random(1);
        std::normal_distribution<double> normal;
        std::vector<double> fixed(1);
        for (size_t n = 1; n <= 6; ++n) {
          fixed.push_back(0.010 / 4096 * machine.Seconds(n, 4096, 4, false, memory) +
                          1e-4 * static_cast<double>(n));
        }
        constexpr size_t kPasses = 2000;
        PoolSize size(start, 1, 6);
        const Simulated result = Simulate(size, kPasses, [&](size_t n_threads, double) {
          return fixed[n_threads] * std::max(1 + noise * normal(random), 0.5);
        });
        const double best = *std::min_element(fixed.begin() + 1, fixed.end());
        EXPECT_LE(result.seconds / kPasses, 1.03 * best)
            << memory << " " << noise << " " << start << " -> " << result.best;
        EXPECT_LE(fixed[result.best], 1.02 * best);
      }
    }
  }
}

// Two equal cores, where one thread fewer doubles the time: trials cost less than 1%.
TEST(PoolSizeTest, TrialsAreCheap) {
  for (const double pass : {1e-4, 0.016, 0.2}) {
    PoolSize size(2, 1, 2);
    constexpr size_t kPasses = 5000;
    const Simulated result =
        Simulate(size, kPasses, [&](size_t n, double) { return n == 2 ? pass : 2 * pass; });
    EXPECT_EQ(result.best, 2u);
    EXPECT_LE(result.seconds, 1.01 * kPasses * pass) << pass;
  }
}

// A neighbour that makes two threads slower than one comes after 3 seconds and goes after 6.
TEST(PoolSizeTest, FollowsANeighbour) {
  for (const double one : {2e-4, 0.01, 0.05}) {
    PoolSize size(2, 1, 2);
    double came = 3, left = 6, to_one = 0, to_two = 0;
    Simulate(size, static_cast<size_t>(9 / one), [&](size_t n, double now) {
      const bool is_beside = now >= came && now < left;
      if (size.best() == 1 && to_one == 0) to_one = now;
      if (size.best() == 2 && to_one > 0 && to_two == 0) to_two = now;
      return n == 1 ? one : is_beside ? 1.4 * one : 0.6 * one;
    });
    EXPECT_GE(to_one, came);
    EXPECT_LE(to_one, came + 1) << one;
    EXPECT_GE(to_two, left);
    EXPECT_LE(to_two, left + 1) << one;
  }
}

// Passes of several numbers of tokens are compared with their own, and a first pass that took long
// (or no time at all, by the clock) counts for little.
TEST(PoolSizeTest, PassesOfManyTokens) {
  for (const double first : {1.0, 2.0, 0.0}) {
    PoolSize size(3, 1, 4);
    std::mt19937 random(2);
    std::vector<bool> is_known(9);
    double lost = 0, all = 0;
    for (int i = 0; i < 3000; ++i) {
      const size_t n_tokens = 1 + random() % 8;
      const size_t n = size.Choose(n_tokens);
      const double work = 0.01 * static_cast<double>(n_tokens);
      const double seconds = work / static_cast<double>(n);
      size.Measured(n_tokens, is_known[n_tokens] ? seconds : first * seconds);
      is_known[n_tokens] = true;
      all += work / 4;
      lost += seconds - work / 4;
    }
    EXPECT_EQ(size.best(), 4u) << first;
    EXPECT_LE(lost, 0.01 * all) << first;  // as in TrialsAreCheap
  }
}

// One core, and a fixed number.
TEST(PoolSizeTest, Limits) {
  PoolSize one(1, 1, 1), fixed(4, 4, 4);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(one.Choose(1), 1u);
    one.Measured(1, 0.01);
    EXPECT_EQ(fixed.Choose(1), 4u);
    EXPECT_EQ(fixed.Measured(1, i < 500 ? 0.01 : 0.02), 0.0);
  }
}

// A trial's extra time is reported, so that a caller does not take it for the time of a usual pass.
TEST(PoolSizeTest, TellsWhatATrialTookLonger) {
  PoolSize size(2, 1, 2);
  size_t n_trials = 0;
  for (int i = 0; i < 2000; ++i) {
    const bool is_trial = size.Choose(1) == 1;
    EXPECT_NEAR(size.Measured(1, is_trial ? 0.002 : 0.001), is_trial ? 0.001 : 0, 1e-9);
    n_trials += is_trial ? 1 : 0;
  }
  EXPECT_GT(n_trials, 0u);
}

}  // namespace
}  // namespace kernels
