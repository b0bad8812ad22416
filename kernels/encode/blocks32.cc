// Blocks of 32 weights with one scale: the inverse of types/q4_0-inl.h to q8_0-inl.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/encode/block_encoders.h"

namespace kernels {
namespace {

constexpr float kAnyOffset = std::numeric_limits<float>::infinity();

// Puts the code of weight j, of four or five bits, where Q4_0::Nibble() or Q5_0::FiveBits() finds
// it.
template <class Block>
void SetCode(Block& block, int j, int q) {
  SetBits(block.qs[j % 16], q & 15, j < 16 ? 0 : 4);
  if constexpr (requires { block.qh; }) SetBits(block.qh[j / 8], q >> 4, j % 8);
}

// x = d * (q - half)
template <class Block>
void EncodeScaled(const Source& source, int half, Block& block) {
  const float d = Store(FitScale(source, block.kWeights, -half, half - 1), block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    SetCode(block, j, Nearest(source.x[j], d, -half, half - 1) + half);
  }
}

// x = d * q + m
template <class Block>
void EncodeLine(const Source& source, int levels, Block& block) {
  const Line line = FitLine(source, block.kWeights, levels, kAnyOffset);
  const float d = Store(line.scale, block.d), m = Store(line.offset, block.m);
  for (int j = 0; j < block.kWeights; ++j)
    SetCode(block, j, Nearest(source.x[j] - m, d, 0, levels));
}

}  // namespace

void EncodeBlock(const Source& source, gguf::BlockQ4_0& block) { EncodeScaled(source, 8, block); }
void EncodeBlock(const Source& source, gguf::BlockQ5_0& block) { EncodeScaled(source, 16, block); }
void EncodeBlock(const Source& source, gguf::BlockQ4_1& block) { EncodeLine(source, 15, block); }
void EncodeBlock(const Source& source, gguf::BlockQ5_1& block) { EncodeLine(source, 31, block); }

// With 255 levels no other scale than the plain one gains anything.
void EncodeBlock(const Source& source, gguf::BlockQ8_0& block) {
  float max = 0;
  for (int j = 0; j < block.kWeights; ++j) max = std::max(max, std::fabs(source.x[j]));
  const float d = Store(max / 127, block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    block.qs[j] = static_cast<int8_t>(Nearest(source.x[j], d, -127, 127));
  }
}

}  // namespace kernels
