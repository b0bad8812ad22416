// What the encoders of blocks share: the choice of scales. Internal to kernels/.
//
// The largest weight of a block alone would fix the scale such that nothing is cut off. Rounding
// errors are smaller where the scale is a little smaller, or larger: a few are tried, the weights
// rounded by each, and then the scale is taken that fits the rounded ones best (linear regression).
// Scales of a part of a block are whole numbers times the block's; those next to the nearest one
// are tried, too, and then the block's scale is fitted to what they have become.
#ifndef PRONK_KERNELS_ENCODE_BLOCKS_H_
#define PRONK_KERNELS_ENCODE_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gguf/blocks.h"

namespace kernels {

// Weights of a row, and how many times the square of each one's error counts.
struct Part {
  const float* x;
  const float* importance;

  Part from(size_t i) const { return {x + i, importance + i}; }
};

// Weights that are smaller in all are stored as zeros: f16 has no scale for them.
constexpr float kTiny = 1e-9f;

// The one of the n weights that is furthest from 0.
float Extreme(const float* x, size_t n);

// The whole number nearest to x / d, at least low and at most high; for d = 0 it is 0 or what is
// nearest to it. |x| is at most 2^18, and d is 0 or at least 2^-24, as the numbers of f16 are.
int Nearest(float x, float d, int low, int high);

// A number for the file, and what the reader will see. An offset may be a little beyond the
// weights, and these as large as f16 can be.
float Store(float value, uint16_t& half);

// d, for x[i] ~ d * q[i] with low <= q[i] <= high. low is negative, and no nearer to 0 than high.
float FitScale(const Part& part, size_t n, int low, int high);

// x[i] ~ scale * q[i] + offset with 0 <= q[i] <= levels and offset <= max_offset.
struct Line {
  float scale;
  float offset;
};
Line FitLine(const Part& part, size_t n, int levels, float max_offset);

// What the sum of squared errors is made of, for x ~ d * v: it is xx - 2 d xv + d d vv.
struct Sums {
  float xv = 0, vv = 0;

  void Add(const Sums& other) {
    xv += other.xv;
    vv += other.vv;
  }
  float Scale() const { return vv > 0 ? xv / vv : 0; }      // the best one
  float Gain() const { return vv > 0 ? xv * xv / vv : 0; }  // what it takes off xx
  float Gain(float d) const { return d * (2 * xv - d * vv); }
};

// The d for these sums instead of the one that there is, unless its own rounding spoils it.
float Refit(const Sums& sums, float d, uint16_t& half);

// Values, the lowest first, of which each weight becomes one, times a scale.
class Ladder {
 public:
  template <size_t n>
  constexpr explicit Ladder(const std::array<int8_t, n>& values) : n_(n) {
    for (size_t i = 0; i < n; ++i) values_[i] = values[i];
    for (size_t i = 0; i + 1 < n; ++i) cuts_[i] = (values_[i] + values_[i + 1]) / 2;
  }
  // Which value is nearest to x.
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
// Of the n weights rounded with scale d.
Sums Rounded(const Part& part, size_t n, const Ladder& ladder, float d);
// d, which may be negative, for x[i] ~ d * one of the values.
float FitLadder(const Part& part, size_t n, const Ladder& ladder);

void EncodeBlock(const Part& part, gguf::BlockQ4_0& block);
void EncodeBlock(const Part& part, gguf::BlockQ4_1& block);
void EncodeBlock(const Part& part, gguf::BlockQ5_0& block);
void EncodeBlock(const Part& part, gguf::BlockQ5_1& block);
void EncodeBlock(const Part& part, gguf::BlockQ8_0& block);
void EncodeBlock(const Part& part, gguf::BlockQ1_0& block);
void EncodeBlock(const Part& part, gguf::BlockQ2_0& block);
void EncodeBlock(const Part& part, gguf::BlockTQ1_0& block);
void EncodeBlock(const Part& part, gguf::BlockTQ2_0& block);
void EncodeBlock(const Part& part, gguf::BlockQ2_K& block);
void EncodeBlock(const Part& part, gguf::BlockQ3_K& block);
void EncodeBlock(const Part& part, gguf::BlockQ4_K& block);
void EncodeBlock(const Part& part, gguf::BlockQ5_K& block);
void EncodeBlock(const Part& part, gguf::BlockQ6_K& block);
void EncodeBlock(const Part& part, gguf::BlockIQ4_NL& block);
void EncodeBlock(const Part& part, gguf::BlockIQ4_XS& block);
void EncodeBlock(const Part& part, gguf::BlockMXFP4& block);
void EncodeBlock(const Part& part, gguf::BlockNVFP4& block);
void EncodeBlock(const Part& part, gguf::BlockIQ1_S& block);
void EncodeBlock(const Part& part, gguf::BlockIQ1_M& block);
void EncodeBlock(const Part& part, gguf::BlockIQ2_XXS& block);
void EncodeBlock(const Part& part, gguf::BlockIQ2_XS& block);
void EncodeBlock(const Part& part, gguf::BlockIQ2_S& block);
void EncodeBlock(const Part& part, gguf::BlockIQ3_XXS& block);
void EncodeBlock(const Part& part, gguf::BlockIQ3_S& block);

}  // namespace kernels

#endif  // PRONK_KERNELS_ENCODE_BLOCKS_H_
