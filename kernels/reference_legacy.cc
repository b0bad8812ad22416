// What the bytes of the simple types mean: 32 to 128 weights, scales that stand alone.
#include <bit>
#include <cstdint>

#include "kernels/half.h"
#include "kernels/reference_blocks.h"
#include "kernels/tables.h"

namespace kernels {
namespace {

// The order of weights in 16 bytes of nibbles: x[j] is the low nibble of byte j, x[j + 16] the
// high.
int Nibble(const uint8_t (&qs)[16], int j) { return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4; }

// A nibble with its fifth bit, bit j of qh.
int FiveBits(const uint8_t (&qs)[16], const uint8_t (&qh)[4], int j) {
  return Nibble(qs, j) | ((qh[j / 8] >> (j % 8)) & 1) << 4;
}

}  // namespace

void DequantizeBlock(const gguf::BlockQ4_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(Nibble(block.qs, j) - 8);
  }
}

void DequantizeBlock(const gguf::BlockQ4_1& block, float* out) {
  const float d = F16ToF32(block.d), m = F16ToF32(block.m);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(Nibble(block.qs, j)) + m;
  }
}

void DequantizeBlock(const gguf::BlockQ5_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(FiveBits(block.qs, block.qh, j) - 16);
  }
}

void DequantizeBlock(const gguf::BlockQ5_1& block, float* out) {
  const float d = F16ToF32(block.d), m = F16ToF32(block.m);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(FiveBits(block.qs, block.qh, j)) + m;
  }
}

void DequantizeBlock(const gguf::BlockQ8_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

void DequantizeBlock(const gguf::BlockQ8_1& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) out[j] = d * static_cast<float>(block.qs[j]);
}

void DequantizeBlock(const gguf::BlockIQ4_NL& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(kIq4nlValues[Nibble(block.qs, j)]);
  }
}

void DequantizeBlock(const gguf::BlockMXFP4& block, float* out) {
  const float d = E8m0HalfToF32(block.e);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>(kFp4Values[Nibble(block.qs, j)]);
  }
}

void DequantizeBlock(const gguf::BlockNVFP4& block, float* out) {
  for (int j = 0; j < block.kWeights; ++j) {
    const int group = j / 16;
    const uint8_t byte = block.qs[8 * group + j % 8];
    const int nibble = j % 16 < 8 ? byte & 15 : byte >> 4;
    out[j] = Ue4m3ToF32(block.d[group]) * 0.5f * static_cast<float>(kFp4Values[nibble]);
  }
}

void DequantizeBlock(const gguf::BlockQ1_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = (block.qs[j / 8] >> (j % 8) & 1) != 0 ? d : -d;
  }
}

void DequantizeBlock(const gguf::BlockQ2_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    out[j] = d * static_cast<float>((block.qs[j / 4] >> (2 * (j % 4)) & 3) - 1);
  }
}

}  // namespace kernels
