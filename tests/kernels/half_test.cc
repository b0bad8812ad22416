#include "kernels/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// f16 by its definition: (-1)^s * 2^(e - 15) * 1.m, or 2^-14 * 0.m for e = 0. Computed in double,
// which holds every f16.
double F16ByDefinition(uint32_t h) {
  const double sign = (h & 0x8000) != 0 ? -1 : 1;
  const int exponent = static_cast<int>((h >> 10) & 31);
  const double mantissa = h & 0x3FF;
  if (exponent == 31) return mantissa == 0 ? sign * kInfinity : std::nan("");
  if (exponent == 0) return sign * std::ldexp(mantissa / 1024, -14);
  return sign * std::ldexp(1 + mantissa / 1024, exponent - 15);
}

// The bf16 nearest to x by trying both neighbours of `near`, ties to the even pattern. Patterns of
// one sign are in the order of their values, infinity standing for 2^128.
uint32_t NearestBf16ByDefinition(double x, uint32_t near) {
  const auto value = [](uint32_t b) {
    const double v = Bf16ToF32(static_cast<uint16_t>(b));
    return std::isinf(v) ? std::copysign(0x1p128, v) : v;
  };
  uint32_t best = near;
  for (const uint32_t b : {near - 1, near + 1}) {
    if ((b & 0x8000) != (near & 0x8000) || std::isnan(value(b))) continue;
    const double error = std::abs(value(b) - x), best_error = std::abs(value(best) - x);
    if (error < best_error || (error == best_error && b % 2 == 0)) best = b;
  }
  return best;
}

bool IsF16Nan(uint32_t h) { return (h & 0x7FFF) > 0x7C00; }
bool IsBf16Nan(uint32_t b) { return (b & 0x7FFF) > 0x7F80; }

TEST(Half, F16ToF32IsTheDefinitionForEveryPattern) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const float x = F16ToF32(static_cast<uint16_t>(h));
    const double expected = F16ByDefinition(h);
    if (IsF16Nan(h)) {
      EXPECT_TRUE(std::isnan(x)) << h;
    } else {
      EXPECT_EQ(x, expected) << h;
      EXPECT_EQ(std::signbit(x), (h & 0x8000) != 0) << h;  // -0 is not 0
    }
  }
}

TEST(Half, F16SurvivesTheWayThere) {
  for (uint32_t h = 0; h < 65536; ++h) {
    const uint16_t back = F32ToF16(F16ToF32(static_cast<uint16_t>(h)));
    if (IsF16Nan(h)) {
      EXPECT_EQ(back, h | 0x200) << h;  // made quiet
    } else {
      EXPECT_EQ(back, h);
    }
  }
}

TEST(Half, F32ToF16RoundsToNearestEven) {
  // Between every f16 and the next: halfway, and a float below and above halfway.
  for (uint32_t h = 0; h < 0x7C00; ++h) {
    const auto low = F16ByDefinition(h);
    const auto high = h + 1 == 0x7C00 ? 65536.0 : F16ByDefinition(h + 1);
    const auto middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
    const uint32_t even = h % 2 == 0 ? h : h + 1;
    EXPECT_EQ(F32ToF16(middle), even) << h;
    EXPECT_EQ(F32ToF16(-middle), even | 0x8000) << h;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), h) << h;
    EXPECT_EQ(F32ToF16(std::nextafter(middle, kInfinity)), h + 1) << h;
  }
  EXPECT_EQ(F32ToF16(kInfinity), 0x7C00);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::max()), 0xFC00);
  EXPECT_EQ(F32ToF16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(IsF16Nan(F32ToF16(std::bit_cast<float>(0x7F800001))));  // NaN by its lowest bit alone
}

TEST(Half, Bf16IsTheUpperHalfOfAFloat) {
  for (uint32_t b = 0; b < 65536; ++b) {
    const float x = Bf16ToF32(static_cast<uint16_t>(b));
    EXPECT_EQ(std::bit_cast<uint32_t>(x), b << 16);
    if (IsBf16Nan(b)) {
      EXPECT_EQ(F32ToBf16(x), b | 0x40);
    } else {
      EXPECT_EQ(F32ToBf16(x), b);
    }
  }
}

TEST(Half, F32ToBf16RoundsToNearestEven) {
  std::mt19937 random(1);
  std::uniform_int_distribution<uint32_t> any_low(0, 0xFFFF);
  for (uint32_t b = 0; b < 65536; ++b) {
    if (IsBf16Nan(b)) continue;
    for (const uint32_t low : {0x0001u, 0x7FFFu, 0x8000u, 0x8001u, any_low(random)}) {
      const float x = std::bit_cast<float>(b << 16 | low);
      if (std::isnan(x)) continue;
      EXPECT_EQ(F32ToBf16(x), NearestBf16ByDefinition(x, b)) << b << " " << low;
    }
  }
  EXPECT_TRUE(IsBf16Nan(F32ToBf16(std::bit_cast<float>(0x7F800001))));
  EXPECT_TRUE(IsBf16Nan(F32ToBf16(std::bit_cast<float>(0xFFFFFFFF))));
}

TEST(Half, E8m0IsAPowerOfTwo) {
  for (int e = 0; e < 256; ++e) {
    EXPECT_EQ(E8m0HalfToF32(static_cast<uint8_t>(e)), std::ldexp(1.0, e - 128)) << e;
  }
}

TEST(Half, Ue4m3IsTheDefinitionForEveryByte) {
  for (int v = 0; v < 256; ++v) {
    const int exponent = v >> 3 & 15, mantissa = v & 7;
    const double normal = std::ldexp(1 + mantissa / 8.0, exponent - 7);
    const double expected = v == 0x7F ? 0 : exponent == 0 ? std::ldexp(mantissa, -9) : normal;
    EXPECT_EQ(Ue4m3ToF32(static_cast<uint8_t>(v)), expected) << v;
  }
}

static_assert(F16ToF32(0x3C00) == 1.0f && F32ToF16(-2.0f) == 0xC000);
static_assert(Bf16ToF32(0x3F80) == 1.0f && F32ToBf16(-2.0f) == 0xC000);
static_assert(E8m0HalfToF32(128) == 1.0f);

}  // namespace
}  // namespace kernels
