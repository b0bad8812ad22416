// What the bytes of the K-quants mean: 256 weights, whose 8 or 16 small scales are themselves
// integers times one f16. Weight j is taken apart by its own indices, in the order of the file.
#include <cstdint>

#include "kernels/half.h"
#include "kernels/reference_blocks.h"

namespace kernels {
namespace {

// The scale and minimum of 32 weights of Q4_K and Q5_K: eight of each, six bits, in 12 bytes.
struct ScaleMin {
  int scale, min;
};
ScaleMin SixBitScaleMin(const uint8_t (&s)[12], int group) {
  if (group < 4) return {s[group] & 63, s[group + 4] & 63};
  return {(s[group + 4] & 15) | (s[group - 4] >> 6) << 4, (s[group + 4] >> 4) | (s[group] >> 6)
                                                                                    << 4};
}

// The scale of 16 weights of Q3_K: six bits, less 32.
int SixBitScale(const uint8_t (&s)[12], int group) {
  const int low = group < 8 ? s[group] & 15 : s[group - 8] >> 4;
  const int high = (s[8 + group % 4] >> (2 * (group / 4))) & 3;
  return (low | high << 4) - 32;
}

// The two bits of weight j of Q2_K and Q3_K: each half of 128 weights has 32 bytes, which hold
// weights 32 apart.
int TwoBits(const uint8_t (&qs)[64], int j) {
  const int half = j / 128, quarter = j % 128 / 32;
  return (qs[32 * half + j % 32] >> (2 * quarter)) & 3;
}

// The four bits of weight j of Q4_K and Q5_K: each 64 weights have 32 bytes, the low nibbles first.
int FourBits(const uint8_t (&qs)[128], int j) {
  const uint8_t byte = qs[j / 64 * 32 + j % 32];
  return j % 64 < 32 ? byte & 15 : byte >> 4;
}

}  // namespace

void DequantizeBlock(const gguf::BlockQ2_K& block, float* out) {
  const float d = F16ToF32(block.d), dmin = F16ToF32(block.dmin);
  for (int j = 0; j < block.kWeights; ++j) {
    const uint8_t packed = block.scales[j / 16];
    const float scale = d * static_cast<float>(packed & 15);
    const float min = dmin * static_cast<float>(packed >> 4);
    out[j] = scale * static_cast<float>(TwoBits(block.qs, j)) - min;
  }
}

void DequantizeBlock(const gguf::BlockQ3_K& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    const float scale = d * static_cast<float>(SixBitScale(block.scales, j / 16));
    const bool third_bit = ((block.hmask[j % 32] >> (j / 32)) & 1) != 0;
    out[j] = scale * static_cast<float>(TwoBits(block.qs, j) - (third_bit ? 0 : 4));
  }
}

void DequantizeBlock(const gguf::BlockQ4_K& block, float* out) {
  const float d = F16ToF32(block.d), dmin = F16ToF32(block.dmin);
  for (int j = 0; j < block.kWeights; ++j) {
    const ScaleMin small = SixBitScaleMin(block.scales, j / 32);
    const float scale = d * static_cast<float>(small.scale);
    const float min = dmin * static_cast<float>(small.min);
    out[j] = scale * static_cast<float>(FourBits(block.qs, j)) - min;
  }
}

void DequantizeBlock(const gguf::BlockQ5_K& block, float* out) {
  const float d = F16ToF32(block.d), dmin = F16ToF32(block.dmin);
  for (int j = 0; j < block.kWeights; ++j) {
    const ScaleMin small = SixBitScaleMin(block.scales, j / 32);
    const float scale = d * static_cast<float>(small.scale);
    const float min = dmin * static_cast<float>(small.min);
    const int fifth_bit = (block.qh[j % 32] >> (j / 32)) & 1;
    out[j] = scale * static_cast<float>(FourBits(block.qs, j) | fifth_bit << 4) - min;
  }
}

void DequantizeBlock(const gguf::BlockQ6_K& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    const int half = j / 128, quarter = j % 128 / 32, l = j % 32;
    const uint8_t byte = block.ql[64 * half + 32 * (quarter % 2) + l];
    const int low = quarter < 2 ? byte & 15 : byte >> 4;
    const int high = (block.qh[32 * half + l] >> (2 * quarter)) & 3;
    const float scale = d * static_cast<float>(block.scales[j / 16]);
    out[j] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

void DequantizeBlock(const gguf::BlockQ8_K& block, float* out) {
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = block.d * static_cast<float>(block.qs[j]);
  }
}

}  // namespace kernels
