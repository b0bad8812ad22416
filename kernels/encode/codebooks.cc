// Blocks with a non-uniform codebook and a scale: an f16, a power of two, an eight-bit float, or
// six bits times an f16.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/encode/block_encoders.h"
#include "kernels/half.h"
#include "kernels/types/shared/tables.h"

namespace kernels {
namespace {

constexpr Ladder kIq4nl(kIq4nlValues);
// 4-bit floats in order; kFp4Values has them by sign and magnitude.
constexpr Ladder kFp4(std::array<int8_t, 15>{-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12});
constexpr float kFp4Largest = 12;

int Iq4nlCode(float level) { return kIq4nl.Index(level); }
int Fp4Code(float level) {
  const int step = kFp4.Index(level) - 7;
  return step < 0 ? 8 - step : step;
}

// Writes the codes of 2 * half weights: weight j in the low nibble of byte j, weight half + j in
// the high nibble.
void SetNibbles(const Source& source, size_t half, float d, int (*code)(float), uint8_t* qs) {
  const float inverse = d == 0 ? 0 : 1 / d;
  for (size_t j = 0; j < half; ++j) {
    const int low = code(source.x[j] * inverse), high = code(source.x[half + j] * inverse);
    qs[j] = Byte(low | high << 4);
  }
}

}  // namespace

void EncodeBlock(const Source& source, gguf::BlockIQ4_NL& block) {
  const float d = Store(FitLadder(source, block.kWeights, kIq4nl), block.d);
  SetNibbles(source, 16, d, Iq4nlCode, block.qs);
}

// Each 32 weights have a scale of -32 to 31 times the block's scale.
void EncodeBlock(const Source& source, gguf::BlockIQ4_XS& block) {
  std::array<float, 8> scales;
  for (size_t g = 0; g < 8; ++g) scales[g] = FitLadder(source.from(32 * g), 32, kIq4nl);
  float d = Store(Extreme(scales.data(), 8) / -32, block.d);
  std::array<int, 8> steps{};
  FitSums all;
  for (size_t g = 0; g < 8; ++g) {
    const Source group = source.from(32 * g);
    steps[g] = ChooseStep(
        Nearest(scales[g], d, -32, 31), -32, 31, d, [](int step) { return step; },
        [&](float scale) { return RoundedSums(group, 32, kIq4nl, scale); }, all);
  }
  d = Refit(all, d, block.d);
  for (size_t g = 0; g < 8; ++g) {
    const auto bits = static_cast<uint32_t>(steps[g] + 32);
    SetBits(block.scales_l[g / 2], bits & 15, 4 * (g % 2));
    block.scales_h = static_cast<uint16_t>(block.scales_h | (bits >> 4) << 2 * g);
    SetNibbles(source.from(32 * g), 16, d * static_cast<float>(steps[g]), Iq4nlCode,
               block.qs + 16 * g);
  }
}

// Tries the power of two that clips nothing, and the two below it.
void EncodeBlock(const Source& source, gguf::BlockMXFP4& block) {
  const float largest = std::fabs(Extreme(source.x, 32));
  if (largest < kTiny) return;
  int exponent;
  std::frexp(largest / kFp4Largest, &exponent);  // largest / 12 <= 2^exponent
  float max_gain = -1;
  for (int e = exponent + 128; e > exponent + 125; --e) {
    const float d = E8m0HalfToF32(static_cast<uint8_t>(e));
    const float gain = RoundedSums(source, 32, kFp4, d).Gain(d);
    if (gain <= max_gain) continue;
    max_gain = gain;
    block.e = static_cast<uint8_t>(e);
  }
  SetNibbles(source, 16, E8m0HalfToF32(block.e), Fp4Code, block.qs);
}

// Tries the scale that clips nothing, and the five below it: down to two thirds of it.
void EncodeBlock(const Source& source, gguf::BlockNVFP4& block) {
  constexpr int kLargest = 0x7E, kTries = 6;
  for (size_t g = 0; g < 4; ++g) {
    const Source group = source.from(16 * g);
    const float largest = std::fabs(Extreme(group.x, 16));
    const auto scale = [](int code) { return Ue4m3ToF32(static_cast<uint8_t>(code)) * 0.5f; };
    int code = 0;
    while (code < kLargest && scale(code) * kFp4Largest < largest) ++code;
    float max_gain = 0;
    for (int tried = code; tried > std::max(0, code - kTries); --tried) {
      const float gain = RoundedSums(group, 16, kFp4, scale(tried)).Gain(scale(tried));
      if (gain <= max_gain) continue;
      max_gain = gain;
      block.d[g] = static_cast<uint8_t>(tried);
    }
    SetNibbles(group, 8, scale(block.d[g]), Fp4Code, block.qs + 8 * g);
  }
}

}  // namespace kernels
