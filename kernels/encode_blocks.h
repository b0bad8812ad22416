// What the encoders of blocks share: the choice of scales. Internal to kernels/.
//
// The largest weight of a block alone would fix the scale such that nothing is cut off. Rounding
// errors are smaller where the scale is a little smaller, or larger: a few are tried, the weights
// rounded by each, and then the scale is taken that fits the rounded ones best (linear regression).
#ifndef PRONK_KERNELS_ENCODE_BLOCKS_H_
#define PRONK_KERNELS_ENCODE_BLOCKS_H_

#include "gguf/blocks.h"

namespace kernels {

// The whole number nearest to x / d, at least low and at most high; for d = 0 it is 0 or what is
// nearest to it. |x| is at most 2^18, and d is 0 or at least 2^-24, as the numbers of f16 are.
int Nearest(float x, float d, int low, int high);

// d, for x[i] ~ d * q[i] with low <= q[i] <= high. low is negative, and no nearer to 0 than high.
float FitScale(const float* x, int n, int low, int high);

// x[i] ~ scale * q[i] + offset with 0 <= q[i] <= levels and offset <= max_offset.
struct Line {
  float scale;
  float offset;
};
Line FitLine(const float* x, int n, int levels, float max_offset);

void EncodeBlock(const float* x, gguf::BlockQ4_0& block);
void EncodeBlock(const float* x, gguf::BlockQ4_1& block);
void EncodeBlock(const float* x, gguf::BlockQ5_0& block);
void EncodeBlock(const float* x, gguf::BlockQ5_1& block);
void EncodeBlock(const float* x, gguf::BlockQ8_0& block);
void EncodeBlock(const float* x, gguf::BlockQ4_K& block);
void EncodeBlock(const float* x, gguf::BlockQ5_K& block);
void EncodeBlock(const float* x, gguf::BlockQ6_K& block);

}  // namespace kernels

#endif  // PRONK_KERNELS_ENCODE_BLOCKS_H_
