// Encodes rows and reads them back: errors are no larger than with the plain scales.
#include "kernels/encode/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/half.h"
#include "kernels/matmul/reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr size_t kBlock = 256;  // a multiple of every block

// A type: x = scale * q (+ offset), q in low..high, one scale for `part` weights.
// Scales (and offsets) are multiples, up to `steps`, of an f16 of the block.
struct Scheme {
  DType dtype;
  int low, high;
  bool has_offset;
  size_t part;
  int steps;

  // The error of a scale relative to the block's largest. (The largest of Q6_K may want 128 steps
  // of the sign that has 127.)
  double Rounding() const {
    return 0x1p-11 + (steps == 1 ? 0 : steps == 128 ? 1.0 / steps : 0.5 / steps);
  }
  // The additional error where the f16 is denormal.
  double SmallRounding() const { return 0x1p-25 * steps; }
};
constexpr Scheme kSchemes[] = {
    {DType::kQ4_0, -8, 7, false, 32, 1},     {DType::kQ4_1, 0, 15, true, 32, 1},
    {DType::kQ5_0, -16, 15, false, 32, 1},   {DType::kQ5_1, 0, 31, true, 32, 1},
    {DType::kQ8_0, -127, 127, false, 32, 1}, {DType::kQ4_K, 0, 15, true, 32, 63},
    {DType::kQ5_K, 0, 31, true, 32, 63},     {DType::kQ6_K, -32, 31, false, 16, 128},
};

std::vector<float> Decoded(DType dtype, const std::vector<std::byte>& row, size_t n) {
  std::vector<float> out(n);
  DequantizeRow(dtype, row.data(), n, out.data());
  return out;
}

std::vector<std::byte> Encoded(DType dtype, const std::vector<float>& x) {
  std::vector<std::byte> row(gguf::RowBytes(dtype, x.size()));
  EXPECT_TRUE(EncodeRow(dtype, x.data(), x.size(), row.data()));
  return row;
}

// Blocks of all kinds: usual, one-sided, with an outlier, very small, very large.
std::vector<float> Weights() {
  std::vector<float> x = NormalFloats(12 * kBlock, 3);
  const auto block = [&](size_t i) { return std::span(x).subspan(i * kBlock, kBlock); };
  for (float& v : block(4)) v = std::fabs(v) + 0.5f;
  for (float& v : block(5)) v = -std::fabs(v) - 0.5f;
  block(6)[77] = 50.0f;
  block(7)[200] = -50.0f;
  for (float& v : block(8)) v *= 1e-5f;  // scales are denormal f16s
  for (float& v : block(9)) v *= 1e-30f;
  for (float& v : block(10)) v = std::clamp(v * 40000.0f, -65504.0f, 65504.0f);
  for (size_t i = 0; i < kBlock; ++i) block(11)[i] = i % 2 == 0 ? 65504.0f : -65504.0f;
  return x;
}

// For a part: the squared error of the plain scheme, nothing clipped, with exact scales; and the
// error that rounded scales may add to a weight.
struct Plain {
  double error = 0, scale = 0, offset = 0;
};
Plain PlainScheme(const Scheme& scheme, std::span<const float> x) {
  Plain plain;
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  if (scheme.has_offset) {
    const bool is_k = scheme.dtype == DType::kQ4_K || scheme.dtype == DType::kQ5_K;
    plain.offset = is_k ? std::min(*low, 0.0f) : *low;
    plain.scale = (*high - plain.offset) / scheme.high;
  } else {
    plain.scale = (std::fabs(*low) > *high ? *low : *high) / double{1.0 * scheme.low};
  }
  for (const float v : x) {
    const double q = plain.scale == 0 ? 0 : std::nearbyint((v - plain.offset) / plain.scale);
    const double kept = std::clamp<double>(q, scheme.low, scheme.high);
    plain.error += std::pow(v - (kept * plain.scale + plain.offset), 2);
  }
  return plain;
}

TEST(Encode, IsNoWorseThanThePlainScheme) {
  const std::vector<float> x = Weights();
  for (const Scheme& scheme : kSchemes) {
    const std::vector<float> found = Decoded(scheme.dtype, Encoded(scheme.dtype, x), x.size());
    for (size_t block = 0; block < x.size(); block += kBlock) {
      double plain_error = 0, error = 0, max_scale = 0, max_offset = 0;
      for (size_t at = block; at < block + kBlock; at += scheme.part) {
        const Plain plain = PlainScheme(scheme, std::span(x).subspan(at, scheme.part));
        plain_error += plain.error;
        max_scale = std::max(max_scale, std::fabs(plain.scale));
        max_offset = std::max(max_offset, std::fabs(plain.offset));
      }
      for (size_t i = block; i < block + kBlock; ++i) error += std::pow(double{x[i]} - found[i], 2);
      // The scales that are tried are up to a tenth larger.
      const double off = (1.1 * max_scale * scheme.Rounding() + scheme.SmallRounding()) *
                             std::max(-scheme.low, scheme.high) +
                         1.1 * max_offset * scheme.Rounding() + scheme.SmallRounding();
      const double bound = std::sqrt(plain_error) + std::sqrt(1.0 * kBlock) * off;
      EXPECT_LE(std::sqrt(error), bound * (1 + 1e-5))
          << gguf::Info(scheme.dtype).name << " block " << block / kBlock;
    }
  }
}

// The purpose of choosing scales: for weights like a model's, errors are smaller by 4%.
TEST(Encode, FewLevelsGetBetterScalesThanThePlainOnes) {
  const std::vector<float> x = NormalFloats(64 * kBlock, 5);
  for (const Scheme& scheme : kSchemes) {
    if (scheme.high - scheme.low > 31 || scheme.steps > 1) continue;
    const std::vector<float> found = Decoded(scheme.dtype, Encoded(scheme.dtype, x), x.size());
    double plain_error = 0, error = 0;
    for (size_t at = 0; at < x.size(); at += scheme.part) {
      plain_error += PlainScheme(scheme, std::span(x).subspan(at, scheme.part)).error;
    }
    for (size_t i = 0; i < x.size(); ++i) error += std::pow(double{x[i]} - found[i], 2);
    EXPECT_LT(std::sqrt(error), 0.96 * std::sqrt(plain_error)) << gguf::Info(scheme.dtype).name;
  }
}

TEST(Encode, ZerosStayZeros) {
  for (const Scheme& scheme : kSchemes) {
    const std::vector<float> zeros(kBlock);
    EXPECT_EQ(Decoded(scheme.dtype, Encoded(scheme.dtype, zeros), kBlock), zeros)
        << gguf::Info(scheme.dtype).name;
  }
}

TEST(Encode, HalvesAreThoseOfOneNumber) {
  const std::vector<float> x = NormalFloats(999, 1);
  const std::vector<std::byte> f16 = Encoded(DType::kF16, x), bf16 = Encoded(DType::kBF16, x);
  for (size_t i = 0; i < x.size(); ++i) {
    uint16_t half = 0;
    std::memcpy(&half, &f16[2 * i], 2);
    ASSERT_EQ(half, F32ToF16(x[i]));
    std::memcpy(&half, &bf16[2 * i], 2);
    ASSERT_EQ(half, F32ToBf16(x[i]));
  }
}

TEST(Encode, RefusesWhatTheTypeCannotHold) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<DType> types = {DType::kF16, DType::kBF16};
  for (const Scheme& scheme : kSchemes) types.push_back(scheme.dtype);
  for (const DType dtype : types) {
    std::vector<std::byte> row(gguf::RowBytes(dtype, kBlock));
    const auto takes = [&](float weight) {
      std::vector<float> x(kBlock, 1.0f);
      x[kBlock - 1] = weight;
      return EncodeRow(dtype, x.data(), kBlock, row.data());
    };
    for (const float wrong : {kInf, -kInf, std::nanf(""), -std::nanf("")}) {
      EXPECT_FALSE(takes(wrong)) << gguf::Info(dtype).name << " " << wrong;
    }
    EXPECT_EQ(takes(65505.0f), dtype == DType::kBF16) << gguf::Info(dtype).name;
    const float largest = dtype == DType::kBF16 ? 0x1.FEp127f : 65504.0f;
    for (const float large : {largest, -largest}) {
      ASSERT_TRUE(takes(large)) << gguf::Info(dtype).name;
      for (const float v : Decoded(dtype, row, kBlock)) ASSERT_TRUE(std::isfinite(v));
    }
  }
}

}  // namespace
}  // namespace kernels
