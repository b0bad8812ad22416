// Shared by the encoders of blocks: the choice of scales, and the list of encoders. Internal to
// kernels/.
//
// The scale at which the largest weight has the last level clips nothing. A slightly smaller or
// larger scale may have smaller rounding errors. So several scales are tried: the weights are
// rounded with each, and the scale is refitted to the rounded weights (linear regression). Scales
// of groups are whole numbers times the block's scale: the numbers next to the nearest are tried,
// too, and then the block's scale is fitted to the result.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gguf/blocks.h"

namespace kernels {

// Weights of a row, and the importance of each one's squared error.
struct Source {
  const float* x;
  const float* importance;

  Source from(size_t i) const { return {x + i, importance + i}; }
};

constexpr uint8_t Byte(auto bits) { return static_cast<uint8_t>(bits); }
// Sets bits in a byte where it has zeros.
constexpr void SetBits(uint8_t& byte, auto bits, auto shift) { byte = Byte(byte | bits << shift); }

// If all weights are smaller than this, zeros are stored: f16 has no scale for such weights.
constexpr float kTiny = 1e-9f;

// Returns the weight with the largest magnitude.
float Extreme(const float* x, size_t n);

// The whole number from low to high nearest to x / d, or to 0 where d is 0. |x| is at most 2^18,
// and d is 0 or at least 2^-24, the smallest f16.
int Nearest(float x, float d, int low, int high);

// Rounds a number to f16 for the file, and returns what the reader will see. The number is clamped,
// since an offset may lie a little beyond the weights, which may be as large as f16 allows.
float Store(float value, uint16_t& half);

// d, for x[i] ~ d * q[i] with low <= q[i] <= high. low is negative, and no nearer to 0 than high.
float FitScale(const Source& source, size_t n, int low, int high);

// x[i] ~ scale * q[i] + offset with 0 <= q[i] <= levels and offset <= max_offset.
struct Line {
  float scale;
  float offset;
};
Line FitLine(const Source& source, size_t n, int levels, float max_offset);

// Sums for x ~ d * v: the sum of squared errors is xx - 2 d xv + d d vv.
struct FitSums {
  float xv = 0, vv = 0;

  void Add(const FitSums& other) {
    xv += other.xv;
    vv += other.vv;
  }
  float Scale() const { return vv > 0 ? xv / vv : 0; }      // the best d
  float Gain() const { return vv > 0 ? xv * xv / vv : 0; }  // the decrease of xx
  float Gain(float d) const { return d * (2 * xv - d * vv); }
};

// Returns the best d for these sums, or the present d if rounding the best one to f16 makes it
// worse.
float Refit(const FitSums& sums, float d, uint16_t& half);

// Chooses among the steps next to `nearest`, from low to high, the step with the largest gain for a
// group, and adds the group's sums to the block's. With step k the group's scale is multiple(k)
// times d, the block's scale; sums_of(scale) are the group's sums with a scale.
template <class Multiple, class SumsOf>
int ChooseStep(int nearest, int low, int high, float d, Multiple multiple, SumsOf sums_of,
               FitSums& block) {
  int chosen = 0;
  float max_gain = -std::numeric_limits<float>::infinity();
  FitSums best;
  for (int step = std::max(low, nearest - 1); step <= std::min(high, nearest + 1); ++step) {
    const auto times = static_cast<float>(multiple(step));
    const FitSums sums = sums_of(d * times);
    const float gain = sums.Gain(d * times);
    if (gain <= max_gain) continue;
    max_gain = gain;
    best = {sums.xv * times, sums.vv * times * times};
    chosen = step;
  }
  block.Add(best);
  return chosen;
}

// A codebook, the lowest value first: each weight becomes one of the values, times a scale.
class Ladder {
 public:
  template <size_t n>
  constexpr explicit Ladder(const std::array<int8_t, n>& values) : n_(n) {
    for (size_t i = 0; i < n; ++i) values_[i] = values[i];
    for (size_t i = 0; i + 1 < n; ++i) cuts_[i] = (values_[i] + values_[i + 1]) / 2;
  }
  // The index of the value nearest to x.
  int Index(float x) const {
    int index = 0;
    for (size_t i = 0; i + 1 < n_; ++i) index += x > cuts_[i] ? 1 : 0;
    return index;
  }
  float value(int index) const { return values_[static_cast<size_t>(index)]; }
  float lowest() const { return values_[0]; }
  float highest() const { return values_[n_ - 1]; }

 private:
  size_t n_;
  std::array<float, 16> values_{}, cuts_{};
};
// The sums for n weights rounded with scale 1 / inverse to whole numbers from low to high.
FitSums RoundedSums(const Source& source, size_t n, int low, int high, float inverse);
// The sums for n weights rounded with scale d to values of the ladder.
FitSums RoundedSums(const Source& source, size_t n, const Ladder& ladder, float d);
// d, which may be negative, for x[i] ~ d * one of the values.
float FitLadder(const Source& source, size_t n, const Ladder& ladder);

// Every quantized type, to be encoded into a block of zeros.
// clang-format off
#define PRONK_ENCODED(X) \
  X(Q4_0) X(Q4_1) X(Q5_0) X(Q5_1) X(Q8_0) X(Q1_0) X(Q2_0) X(TQ1_0) X(TQ2_0) \
  X(Q2_K) X(Q3_K) X(Q4_K) X(Q5_K) X(Q6_K) X(IQ4_NL) X(IQ4_XS) X(MXFP4) X(NVFP4) \
  X(IQ1_S) X(IQ1_M) X(IQ2_XXS) X(IQ2_XS) X(IQ2_S) X(IQ3_XXS) X(IQ3_S)
// clang-format on
#define PRONK_DECLARE(type) void EncodeBlock(const Source& source, gguf::Block##type& block);
PRONK_ENCODED(PRONK_DECLARE)
#undef PRONK_DECLARE

}  // namespace kernels
