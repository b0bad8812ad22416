// Tries other numbers of threads now and then, and keeps the fastest.
#include "kernels/threads/pool_size.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kernels {
namespace {

// Passes with cold caches, which are ignored.
constexpr size_t kCold = 2;
// A block is the work that usually takes this time, twice a time slice; a block that takes much
// longer is cut short.
constexpr double kBlock = 6e-3, kLongest = 4 * kBlock;
// A mean covers about this many blocks.
constexpr double kMemory = 8;
// A block that takes kHopeless times as long as usual ends a trial; at kAbandon times the block
// itself is cut short.
constexpr double kHopeless = 1.25, kAbandon = 1.5;
constexpr double kMinPairs = 3, kMaxPairs = 6;
// More threads must gain this much, fewer may lose this much.
constexpr double kGain = 0.01, kLoss = 0.002;
// If two blocks in a row differ from the usual time by this factor, the machine has changed.
constexpr double kFar = 1.15;
// The share of time that trials may cost, the most seconds of it that are saved up, and the seconds
// between two trials.
constexpr double kShare = 0.006, kMaxBudget = 0.02;
constexpr double kFirstWait = 0.05, kLastWait = 0.5;

}  // namespace

size_t PoolSize::Choose(size_t n_tokens) {
  const Usual& usual = usual_[n_tokens];
  if (tried_ == 0 && usual.weight >= 2 && budget_ >= 0 && block_.seconds == 0 &&
      max_threads_ > min_threads_) {
    const bool more =
        best_ < max_threads_ && (best_ == min_threads_ || directions_[1].due <= directions_[0].due);
    if (directions_[more].due <= now_) {
      const size_t step =
          std::min(directions_[more].step, more ? max_threads_ - best_ : best_ - min_threads_);
      tried_ = more ? best_ + step : best_ - step;
      is_usual_ = false;
      n_pairs_ = sum_ = squares_ = 0;
    }
  }
  return is_usual_ || usual.weight == 0 ? best_ : tried_;
}

double PoolSize::Measured(size_t n_tokens, double seconds) {
  if (++n_passes_ <= kCold) return 0;
  seconds = std::max(seconds, 1e-9);
  now_ += seconds;
  budget_ = std::min(budget_ + kShare * seconds, kMaxBudget);
  Usual& usual = usual_[n_tokens];
  if (usual.weight == 0) {
    usual = {.seconds = seconds, .weight = 1};
    return 0;
  }
  const double excess = is_usual_ ? 0 : seconds - usual.seconds;
  Add(usual, seconds);
  return excess;
}

void PoolSize::Add(Usual& usual, double seconds) {
  if (is_usual_) {
    usual.block_seconds += seconds;
    ++usual.block_passes;
  }
  block_.seconds += seconds;
  block_.expected += usual.seconds;
  const bool is_lost =
      !is_usual_ && block_.seconds > kBlock / 4 && block_.seconds > kAbandon * block_.expected;
  if (block_.expected < kBlock && block_.seconds < kLongest && !is_lost) return;
  const Block block = std::exchange(block_, {});
  if (!is_usual_) {  // time that the machine slept is not the trial's
    const double lost = std::max(block.seconds - block.expected, 0.0);
    budget_ -= std::min(lost, std::max(4 * block.expected, kLongest));
  }
  EndBlock(block.seconds / block.expected);
}

void PoolSize::EndBlock(double ratio) {
  if (!is_usual_) {
    tried_ratio_ = ratio;
    is_usual_ = true;  // the next block is usual
    if (ratio > kHopeless) EndTrial(false, 0);
    return;
  }
  if (FollowLevel(ratio)) {
    tried_ = 0;
  } else if (tried_ != 0) {
    JudgePair(tried_ratio_ - ratio);
  }
}

// Adds a usual block to the means, unless it is far from them. Returns whether the level has
// changed: then the direction of the change decides what to try next, and the means of passes that
// were not in the block are only guesses. A first pass may have been an outlier, so its time is
// replaced and nothing is judged by it.
bool PoolSize::FollowLevel(double ratio) {
  const bool is_young = std::ranges::any_of(
      usual_, [](const Usual& usual) { return usual.block_passes > 0 && usual.weight < 2; });
  const bool is_far = !is_young && (ratio > kFar || ratio * kFar < 1);
  const bool has_changed = is_far && level_ != 1 && (level_ > 1) == (ratio > 1);
  const double change = has_changed ? (level_ + ratio) / 2 : 1;
  for (Usual& usual : usual_) {
    usual.seconds *= change;
    if (has_changed && usual.block_passes == 0) usual.weight = std::min(usual.weight, 1.0);
    if (!is_far && usual.block_passes > 0) {
      const double mean = usual.block_seconds / usual.block_passes;
      usual.seconds += (mean - usual.seconds) / (usual.weight < 2 ? 1 : usual.weight + 1);
      usual.weight = std::min(usual.weight + 1, kMemory - 1);
    }
    usual.block_seconds = usual.block_passes = 0;
  }
  level_ = is_far && !has_changed ? ratio : 1;
  if (!has_changed) return false;
  directions_[change < 1] = {.due = now_};
  directions_[change > 1] = {.due = now_ + kFirstWait};
  // A trial after a change may exceed the budget, but not again and again.
  if (changed_ < 0 || now_ - changed_ > 2 * kLastWait) budget_ = std::max(budget_, 0.0);
  changed_ = now_;
  return true;
}

void PoolSize::JudgePair(double difference) {
  ++n_pairs_;
  sum_ += difference;
  squares_ += difference * difference;
  is_usual_ = false;
  if (n_pairs_ < kMinPairs) return;
  const double mean = sum_ / n_pairs_;
  // Nearly a standard error: with n - 1, decisions in noise would take longer.
  const double error = std::sqrt(std::max(squares_ - n_pairs_ * mean * mean, 0.0)) / n_pairs_;
  const double limit = tried_ > best_ ? -kGain : kLoss;
  if (mean + error < limit) {
    EndTrial(true, 1 + mean);
  } else if (mean - error > limit || n_pairs_ == kMaxPairs) {
    EndTrial(false, 1);
  }
}

void PoolSize::EndTrial(bool won, double change) {
  const bool more = tried_ > best_;
  Direction& direction = directions_[more];
  if (won) {
    best_ = tried_;
    for (Usual& usual : usual_) usual.seconds *= change;
    direction = {.due = now_};
    directions_[!more] = {.due = now_ + kLastWait, .wait = kLastWait};
  } else {
    direction.wait = std::clamp(2 * direction.wait, kFirstWait, kLastWait);
    direction.due = now_ + direction.wait;
    direction.step = 3 - direction.step;
  }
  tried_ = 0;
  is_usual_ = true;
}

}  // namespace kernels
