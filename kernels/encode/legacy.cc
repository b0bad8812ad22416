// Blocks of 32 weights with one scale: the inverse of formats/q4_0-inl.h to q8_0-inl.h.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/encode/blocks.h"

namespace kernels {
namespace {

constexpr float kAnyOffset = std::numeric_limits<float>::infinity();

// Puts q, 0 to 15, where Q4_0::Nibble() finds it.
void SetNibble(uint8_t (&qs)[16], int j, int q) { SetBits(qs[j % 16], q, j < 16 ? 0 : 4); }

// ... q, 0 to 31, where Q5_0::FiveBits() does.
void SetFiveBits(uint8_t (&qs)[16], uint8_t (&qh)[4], int j, int q) {
  SetNibble(qs, j, q & 15);
  SetBits(qh[j / 8], q >> 4, j % 8);
}

}  // namespace

void EncodeBlock(const Part& part, gguf::BlockQ4_0& block) {
  const float d = Store(FitScale(part, block.kWeights, -8, 7), block.d);
  for (int j = 0; j < block.kWeights; ++j) SetNibble(block.qs, j, Nearest(part.x[j], d, -8, 7) + 8);
}

void EncodeBlock(const Part& part, gguf::BlockQ4_1& block) {
  const Line line = FitLine(part, block.kWeights, 15, kAnyOffset);
  const float d = Store(line.scale, block.d), m = Store(line.offset, block.m);
  for (int j = 0; j < block.kWeights; ++j) SetNibble(block.qs, j, Nearest(part.x[j] - m, d, 0, 15));
}

void EncodeBlock(const Part& part, gguf::BlockQ5_0& block) {
  const float d = Store(FitScale(part, block.kWeights, -16, 15), block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    SetFiveBits(block.qs, block.qh, j, Nearest(part.x[j], d, -16, 15) + 16);
  }
}

void EncodeBlock(const Part& part, gguf::BlockQ5_1& block) {
  const Line line = FitLine(part, block.kWeights, 31, kAnyOffset);
  const float d = Store(line.scale, block.d), m = Store(line.offset, block.m);
  for (int j = 0; j < block.kWeights; ++j) {
    SetFiveBits(block.qs, block.qh, j, Nearest(part.x[j] - m, d, 0, 31));
  }
}

// With 255 levels no other scale than the plain one gains anything.
void EncodeBlock(const Part& part, gguf::BlockQ8_0& block) {
  float max = 0;
  for (int j = 0; j < block.kWeights; ++j) max = std::max(max, std::fabs(part.x[j]));
  const float d = Store(max / 127, block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    block.qs[j] = static_cast<int8_t>(Nearest(part.x[j], d, -127, 127));
  }
}

}  // namespace kernels
