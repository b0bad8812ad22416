// Shared by the tests of kernels: weight matrices of any type with random bytes. Every pattern of
// codes and small scales occurs; only the block scales (f16) are kept to sane values.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gguf/blocks.h"
#include "gguf/dtype.h"
#include "kernels/half.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/reference.h"

namespace kernels {

// The relative distance between neighbouring floats; rounding errs by half of it.
inline constexpr double kEps = std::numeric_limits<float>::epsilon();
// A number after the data of a test, which must stay: nothing may be written past the end.
inline constexpr float kSentinel = 12345.0f;

// The types that weights may have.
inline std::vector<gguf::DType> WeightTypes() {
  std::vector<gguf::DType> types;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (IsWeightType(info.type)) types.push_back(info.type);
  }
  return types;
}

// The offsets of a block's f16 scales: 0, unless listed here.
inline std::vector<size_t> ScaleOffsets(gguf::DType dtype) {
  using gguf::DType;
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ8_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {offsetof(gguf::BlockQ2_K, d), offsetof(gguf::BlockQ2_K, dmin)};
    case DType::kQ3_K:
      return {offsetof(gguf::BlockQ3_K, d)};
    case DType::kQ6_K:
      return {offsetof(gguf::BlockQ6_K, d)};
    case DType::kTQ1_0:
      return {offsetof(gguf::BlockTQ1_0, d)};
    case DType::kTQ2_0:
      return {offsetof(gguf::BlockTQ2_0, d)};
    case DType::kPTQ1_0:
      return {offsetof(gguf::BlockPTQ1_0, d)};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_K:
    case DType::kMXFP4:
    case DType::kNVFP4:
    case DType::kIQ1_M:
    case DType::kI2_S:
      return {};  // no f16, or elsewhere: RandomMatrix::FixBlock
    default:
      return {0};
  }
}

class RandomMatrix {
 public:
  RandomMatrix(gguf::DType dtype, size_t rows, size_t cols, unsigned seed)
      : dtype_(dtype), rows_(rows), cols_(cols), bytes_(rows * gguf::RowBytes(dtype, cols)) {
    std::mt19937 rng(seed);
    for (std::byte& b : bytes_) b = static_cast<std::byte>(rng());
    const size_t block_bytes = gguf::Info(dtype).block_bytes;
    for (size_t at = 0; at < bytes_.size(); at += block_bytes) FixBlock(&bytes_[at], rng);
  }

  Matrix view() const { return {dtype_, bytes_.data(), rows_, cols_}; }
  std::vector<std::byte>& bytes() { return bytes_; }

 private:
  void FixBlock(std::byte* block, std::mt19937& rng) {
    using gguf::DType;
    std::normal_distribution<float> normal;
    const float x = normal(rng);
    const auto put = [block](size_t at, auto value) {
      std::memcpy(block + at, &value, sizeof(value));
    };
    if (dtype_ == DType::kF32) put(0, x);
    if (dtype_ == DType::kF16) put(0, F32ToF16(x));
    if (dtype_ == DType::kBF16) put(0, F32ToBf16(x));
    for (const size_t at : ScaleOffsets(dtype_)) put(at, F32ToF16(0.05f * normal(rng)));
    if (dtype_ == DType::kMXFP4) put(0, static_cast<uint8_t>(120 + rng() % 8));
    if (dtype_ == DType::kNVFP4) {  // 1/16 to 2
      for (size_t i = 0; i < 4; ++i) put(i, static_cast<uint8_t>(24 + rng() % 41));
    }
    if (dtype_ == DType::kQ8_K) put(0, 0.01f * x);
    if (dtype_ == DType::kIQ1_M) {  // d = 0x2Cxx (about 0.06) in the four top nibbles, lowest first
      for (size_t i = 0; i < 4; ++i) {
        const size_t at = offsetof(gguf::BlockIQ1_M, scales) + 2 * i + 1;
        constexpr unsigned kNibbles[4] = {7, 3, 12, 2};
        block[at] =
            static_cast<std::byte>((std::to_integer<unsigned>(block[at]) & 15u) | kNibbles[i] << 4);
      }
    }
  }

  gguf::DType dtype_;
  size_t rows_, cols_;
  std::vector<std::byte> bytes_;
};

inline std::vector<float> NormalFloats(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (float& v : x) v = normal(rng);
  return x;
}

}  // namespace kernels
