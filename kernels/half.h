// Conversions between float and the small floating-point formats of weights and scales: f16 (IEEE
// 754 binary16), bf16 (the upper half of a float), e8m0 (a power of two alone) and ue4m3 (eight
// bits without a sign). The functions convert one number at a time, exactly: the reference for
// vectorized conversions.
#pragma once

#include <bit>
#include <cstdint>

namespace kernels {

// f16: sign, 5 bits of exponent (bias 15), 10 of mantissa. Every f16 is a float, so this is exact.
// A NaN keeps its bits.
constexpr float F16ToF32(uint16_t h) {
  const uint32_t sign = (h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31u;
  const uint32_t mantissa = h & 0x3FFu;
  if (exponent == 0) {  // zero or denormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  // An exponent of all ones (infinity, NaN) stays all ones.
  const uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

// The nearest f16, ties to even. 65520 and above become infinity; a NaN becomes a quiet NaN.
constexpr uint16_t F32ToF16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  uint32_t half = 0;
  if (magnitude > 0x7F800000u) {  // NaN
    half = 0x7E00u | ((magnitude >> 13) & 0x1FFu);
  } else if (magnitude >= std::bit_cast<uint32_t>(65536.0f)) {
    half = 0x7C00u;
  } else if (magnitude < std::bit_cast<uint32_t>(0x1p-14f)) {
    // A denormal has steps of 2^-24, the last bit of a float near 0.5: the addition rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  } else {
    // Rounding may carry into the exponent, up to infinity, as it should.
    const uint32_t odd = (magnitude >> 13) & 1u;
    half = (magnitude - (uint32_t{127 - 15} << 23) + 0xFFFu + odd) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

// bf16: the upper 16 bits of a float. Exact.
constexpr float Bf16ToF32(uint16_t b) { return std::bit_cast<float>(uint32_t{b} << 16); }

// The nearest bf16, ties to even; a NaN becomes a quiet NaN.
constexpr uint16_t F32ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// e8m0 at half its value: 2^(e - 128), the scale of an MXFP4 block whose 4-bit floats are doubled
// to be integers (tables.h: kFp4Values). e = 0 and 1 are denormal floats. e = 255 is NaN in the
// standard (OCP Microscaling Formats 1.0), but not in GGUF files; here it is 2^127.
constexpr float E8m0HalfToF32(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? uint32_t{0x00200000} << e : (e - 1u) << 23);
}

// ue4m3: 4 bits of exponent (bias 7), 3 of mantissa and a top bit that is ignored; the scale of 16
// weights of NVFP4. 0x7F, elsewhere NaN, is 0. An f16 has more bits of exponent and mantissa, and a
// bias larger by 8.
constexpr float Ue4m3ToF32(uint8_t v) {
  return v == 0x7F ? 0.0f : F16ToF32(static_cast<uint16_t>((v & 0x7Fu) << 7)) * 0x1p8f;
}

}  // namespace kernels
