// What the bytes of the IQ and ternary types mean: 256 weights. IQ1 to IQ3 store an index into a
// grid of points (tables.h) for every 8 or 4 weights, and signs apart; the functions here differ in
// where the bits of index, signs and scale lie.
#include <array>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"
#include "kernels/reference_blocks.h"
#include "kernels/tables.h"

namespace kernels {
namespace {

// The 8 weights of a grid entry of IQ2: scale * level, negated where bit i of signs is set.
void Write8(uint32_t entry, uint32_t signs, float scale, float* out) {
  for (int i = 0; i < 8; ++i) {
    const int sign = (signs >> i & 1) != 0 ? -1 : 1;
    out[i] = scale * static_cast<float>(sign * kIq2Levels[LevelOf8(entry, i)]);
  }
}

// The 4 weights of a grid entry of IQ3.
void Write4(uint32_t entry, const std::array<int8_t, 8>& levels, uint32_t signs, float scale,
            float* out) {
  for (int i = 0; i < 4; ++i) {
    const int sign = (signs >> i & 1) != 0 ? -1 : 1;
    out[i] = scale * static_cast<float>(sign * levels[LevelOf4(entry, i)]);
  }
}

// The 8 weights of a grid entry of IQ1: scale * (level + delta).
void WriteShifted(uint32_t entry, float delta, float scale, float* out) {
  for (int i = 0; i < 8; ++i) {
    out[i] = scale * (static_cast<float>(kIq1Levels[LevelOf8(entry, i)]) + delta);
  }
}

uint32_t LoadU32(const void* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Nibble i of packed scales, low ones first.
int ScaleNibble(const uint8_t* scales, int i) { return scales[i / 2] >> (4 * (i % 2)) & 15; }

// The scale of IQ2 types: s is an odd multiple of an eighth of d.
float Iq2Scale(float d, uint32_t s) { return d * (0.5f + static_cast<float>(s)) * 0.25f; }

constexpr float kIq1Delta = 0.125f;

}  // namespace

void DequantizeBlock(const gguf::BlockIQ1_S& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int k = 0; k < 32; ++k) {  // the k-th 8 weights
    const uint32_t high = block.qh[k / 4];
    const uint32_t index = block.qs[k] | (high >> (3 * (k % 4)) & 7) << 8;
    const uint32_t s = high >> 12 & 7;
    const float delta = (high & 0x8000) != 0 ? -kIq1Delta : kIq1Delta;
    WriteShifted(kIq1Grid[index], delta, d * static_cast<float>(2 * s + 1), out + 8 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ1_M& block, float* out) {
  uint32_t d_bits = 0;
  for (int i = 0; i < 4; ++i) d_bits |= (block.scales[i] >> 12u) << (4 * i);
  const float d = F16ToF32(static_cast<uint16_t>(d_bits));
  for (int k = 0; k < 32; ++k) {
    const uint32_t high = block.qh[k / 2] >> (4 * (k % 2));  // three bits of index, one of sign
    const uint32_t index = block.qs[k] | (high & 7) << 8;
    const uint32_t s = block.scales[k / 8] >> (3 * (k % 8 / 2)) & 7;  // per 16 weights
    const float delta = (high & 8) != 0 ? -kIq1Delta : kIq1Delta;
    WriteShifted(kIq1Grid[index], delta, d * static_cast<float>(2 * s + 1), out + 8 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ2_XXS& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int g = 0; g < 8; ++g) {  // the g-th 32 weights
    const uint32_t indices = LoadU32(block.qs + 4 * g);
    const uint32_t signs_scale = LoadU32(block.qs + 4 * g + 2);
    const float scale = Iq2Scale(d, signs_scale >> 28);
    for (int l = 0; l < 4; ++l) {
      const uint32_t entry = kIq2xxsGrid[indices >> (8 * l) & 255];
      Write8(entry, EvenSigns(signs_scale >> (7 * l)), scale, out + 32 * g + 8 * l);
    }
  }
}

void DequantizeBlock(const gguf::BlockIQ2_XS& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int k = 0; k < 32; ++k) {
    const uint32_t q = block.qs[k];
    const float scale = Iq2Scale(d, ScaleNibble(block.scales, k / 2));
    Write8(kIq2xsGrid[q & 511], EvenSigns(q >> 9), scale, out + 8 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ2_S& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int k = 0; k < 32; ++k) {
    const uint32_t index = block.qs[k] | (block.qh[k / 4] >> (2 * (k % 4)) & 3) << 8;
    const float scale = Iq2Scale(d, ScaleNibble(block.scales, k / 2));
    Write8(kIq2sGrid[index], block.signs[k], scale, out + 8 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ3_XXS& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int k = 0; k < 64; ++k) {  // the k-th 4 weights
    const uint32_t signs_scale = LoadU32(block.signs_scales + 4 * (k / 8));
    const float scale = d * (0.5f + static_cast<float>(signs_scale >> 28)) * 0.5f;
    const uint32_t signs = EvenSigns(signs_scale >> (7 * (k % 8 / 2)));  // of 8 weights
    Write4(kIq3xxsGrid[block.qs[k]], kIq3xxsLevels, signs >> (4 * (k % 2)), scale, out + 4 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ3_S& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int k = 0; k < 64; ++k) {
    const uint32_t index = block.qs[k] | (block.qh[k / 8] >> (k % 8) & 1) << 8;
    const float scale = d * static_cast<float>(1 + 2 * ScaleNibble(block.scales, k / 8));
    const uint32_t signs = block.signs[k / 2];  // of 8 weights
    Write4(kIq3sGrid[index], kIq3sLevels, signs >> (4 * (k % 2)), scale, out + 4 * k);
  }
}

void DequantizeBlock(const gguf::BlockIQ4_XS& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    const int group = j / 32;
    const int s = ScaleNibble(block.scales_l, group) | (block.scales_h >> (2 * group) & 3) << 4;
    const uint8_t byte = block.qs[16 * group + j % 16];
    const int nibble = j % 32 < 16 ? byte & 15 : byte >> 4;
    out[j] = d * static_cast<float>(s - 32) * static_cast<float>(kIq4nlValues[nibble]);
  }
}

void DequantizeBlock(const gguf::BlockTQ1_0& block, float* out) {
  const float d = F16ToF32(block.d);
  constexpr std::array<uint32_t, 5> kPowersOf3 = {1, 3, 9, 27, 81};
  // Digit n of every one of `bytes` bytes, then the next digit. A byte is its five digits as a
  // fraction of 243, scaled to 256: times 3^n brings digit n to the front of the fraction (the
  // whole part falls away with & 255), times 3 then makes it the whole part.
  const auto write = [&](const uint8_t* qs, int bytes, int digits) {
    for (int n = 0; n < digits; ++n) {
      for (int i = 0; i < bytes; ++i) {
        const uint32_t digit = ((qs[i] * kPowersOf3[n]) & 255) * 3 >> 8;
        *out++ = d * (static_cast<float>(digit) - 1);
      }
    }
  };
  write(block.qs, 32, 5);
  write(block.qs + 32, 16, 5);
  write(block.qh, 4, 4);
}

void DequantizeBlock(const gguf::BlockTQ2_0& block, float* out) {
  const float d = F16ToF32(block.d);
  for (int j = 0; j < block.kWeights; ++j) {
    const int half = j / 128, quarter = j % 128 / 32;
    const int q = block.qs[32 * half + j % 32] >> (2 * quarter) & 3;
    out[j] = d * static_cast<float>(q - 1);
  }
}

}  // namespace kernels
