// PoolSize chooses a pool's number of threads as the program runs, by the time that passes take. A
// result has the same bits for any number, so the number may change between two passes. PoolSize
// reads no clock, so tests can simulate times.
//
// From time to time some passes get one or two threads more or fewer, alternating with as many
// usual passes. The better number stays. Trials may cost 0.6% of the time, more only where passes
// have become slower or faster for good, since other processes come and go.
#pragma once

#include <array>
#include <cstddef>

namespace kernels {

class PoolSize {
 public:
  // Passes of the same number of tokens differ only in their number of threads.
  static constexpr size_t kMaxPassTokens = 16;

  // Begins with `start` threads; chooses from min_threads to max_threads.
  PoolSize(size_t start, size_t min_threads, size_t max_threads)
      : best_(start), min_threads_(min_threads), max_threads_(max_threads) {}

  // The number of threads for a pass of 1 to kMaxPassTokens tokens.
  size_t Choose(size_t n_tokens);
  // Records the time of that pass. Returns how much longer than usual a trial took; 0 for a usual
  // pass.
  double Measured(size_t n_tokens, double seconds);

  // The fastest size so far.
  size_t best() const { return best_; }

 private:
  struct Usual {
    double seconds = 0;  // a mean, with best_ threads
    double weight = 0;   // the number of blocks in it; 1: only a first pass
    double block_seconds = 0, block_passes = 0;
  };
  // Passes in a row with the same number of threads, long enough to count.
  struct Block {
    double seconds = 0, expected = 0;
  };
  // When to try fewer or more threads.
  struct Direction {
    double due = 0;   // the time of the next trial
    double wait = 0;  // seconds before it since the last trial, which was lost
    size_t step = 1;  // then 2, as one number may split the work badly
  };
  void Add(Usual& usual, double seconds);
  void EndBlock(double ratio);
  void JudgePair(double difference);
  void EndTrial(bool won, double change);
  bool FollowLevel(double ratio);

  size_t best_, min_threads_, max_threads_;
  size_t tried_ = 0;      // the number on trial, or 0
  bool is_usual_ = true;  // the block at hand has best_ threads
  Block block_;
  double tried_ratio_ = 0;                      // the last block on trial took this much longer
  double n_pairs_ = 0, sum_ = 0, squares_ = 0;  // differences from the next block, in a trial
  std::array<Usual, kMaxPassTokens + 1> usual_ = {};  // [number of tokens]
  std::array<Direction, 2> directions_ = {};          // fewer, more
  size_t n_passes_ = 0;
  double now_ = 0;       // seconds of all passes
  double budget_ = 0;    // seconds that trials may cost
  double level_ = 1;     // the last block's ratio, if far from 1
  double changed_ = -1;  // when the level last changed
};

}  // namespace kernels
