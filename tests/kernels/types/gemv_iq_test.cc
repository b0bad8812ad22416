// Cases of types with lookup tables that matmul_test.cc's random matrices might miss: every entry
// of every grid, every byte of base-3 digits, every power of two, every scale of 8 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gguf/blocks.h"
#include "kernels/matmul/matmul.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

// Multiples of x_max / 127, with the largest in every 32: rounding to int8 leaves them as they are.
std::vector<float> Integers(size_t n, float x_max) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) {
    const int q = i % 32 == 7 ? 127 : static_cast<int>((i * 89 + i / 32 * 11) % 253) - 126;
    x[i] = x_max / 127 * static_cast<float>(q);
  }
  return x;
}

// Compares all rows with the scalar definition, on every target. Integer sums are exact; each block
// then passes fewer than 16 operations in float. Where codes have an offset, it is subtracted as an
// integer.
void ExpectProducts(const Matrix& w, const std::vector<float>& input) {
  ThreadPool pool(1);
  Activations x(1, w.cols);
  x.Set(input.data(), 1, w.cols);
  x.RoundOnce(pool, w.dtype);
  std::vector<Expected> expected;
  for (size_t r = 0; r < w.rows; ++r) expected.push_back(ExpectProduct(w, r, x.input(0), 16));
  ForEachTarget([&] {
    std::vector<float> out(w.rows, NAN);
    const Product product{w, out.data(), w.rows};
    MatMul(pool, {&product, 1}, x);
    for (size_t r = 0; r < w.rows; ++r) {
      ASSERT_NEAR(out[r], expected[r].value, expected[r].tolerance) << "row " << r;
    }
  });
}

void ExpectProducts(const Matrix& w, float x_max) { ExpectProducts(w, Integers(w.cols, x_max)); }

class GridTypes : public testing::TestWithParam<DType> {};

// With 2048 rows of two blocks an entry of the largest grid is expected 64 times; each random byte
// of signs, small scales and top bits of indices far more often.
TEST_P(GridTypes, EveryEntry) {
  const RandomMatrix weights(GetParam(), 2048, 512, 17);
  ExpectProducts(weights.view(), 1.0f);
}

// The largest indices, signs, scales at once: sums near the limits of their integers.
TEST_P(GridTypes, AllOnes) {
  RandomMatrix weights(GetParam(), 4, 512, 18);
  const RandomMatrix original = weights;
  const size_t block_bytes = gguf::Info(GetParam()).block_bytes;
  std::vector<std::byte>& bytes = weights.bytes();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % block_bytes < 2) continue;  // d; IQ1_M has indices here, and d elsewhere
    bytes[i] = std::byte{0xFF};
  }
  if (GetParam() == DType::kIQ1_M) {
    for (size_t at = 0; at < bytes.size(); at += block_bytes) {
      for (size_t k = 0; k < 4; ++k) {
        const size_t top = at + offsetof(gguf::BlockIQ1_M, scales) + 2 * k + 1;
        bytes[top] = (original.view().data[top] & std::byte{0xF0}) | std::byte{0x0F};
      }
    }
  }
  ExpectProducts(weights.view(), 1.0f);
}

INSTANTIATE_TEST_SUITE_P(Iq, GridTypes,
                         testing::Values(DType::kIQ1_S, DType::kIQ1_M, DType::kIQ2_XXS,
                                         DType::kIQ2_XS, DType::kIQ2_S, DType::kIQ3_XXS,
                                         DType::kIQ3_S),
                         [](const auto& type) { return std::string(gguf::Info(type.param).name); });

// Only 243 of the 256 bytes are five digits. The values of the other bytes are equal on every
// target.
TEST(Ternary, EveryByte) {
  for (const DType dtype : {DType::kTQ1_0, DType::kTQ2_0}) {
    RandomMatrix weights(dtype, 256, 256, 19);
    const size_t row_bytes = weights.view().row_bytes();
    for (size_t r = 0; r < 256; ++r) {
      std::fill_n(weights.bytes().begin() + r * row_bytes, row_bytes - 2, std::byte(r));  // not d
    }
    ExpectProducts(weights.view(), 1.0f);
  }
}

// Row e has exponent e, denormal scales for 0 and 1, and activations that bring the product back to
// a normal float. Beyond 252 the largest weights do not fit in a float.
TEST(Mxfp4, EveryExponent) {
  for (int e = 0; e <= 252; ++e) {
    RandomMatrix weights(DType::kMXFP4, 3, 288, 20);
    for (size_t at = 0; at < weights.bytes().size(); at += sizeof(gguf::BlockMXFP4)) {
      weights.bytes()[at] = static_cast<std::byte>(e);
    }
    ExpectProducts(weights.view(), std::ldexp(1.0f, std::clamp(128 - e, -100, 100)));
  }
}

// Row v has scale v for all of its groups of 16, for every byte, besides a row of random ones.
TEST(Nvfp4, EveryScale) {
  RandomMatrix weights(DType::kNVFP4, 257, 320, 21);
  const size_t row_bytes = weights.view().row_bytes();
  for (size_t at = 0; at < 256 * row_bytes; at += sizeof(gguf::BlockNVFP4)) {
    std::fill_n(weights.bytes().begin() + static_cast<ptrdiff_t>(at), 4, std::byte(at / row_bytes));
  }
  ExpectProducts(weights.view(), 1.0f);
}

// Codes of the largest magnitude, a row for each pair of signs, with activations of 127 and of -127
// everywhere: sums near the limits of their integers.
TEST(Nvfp4, LargestCodes) {
  RandomMatrix weights(DType::kNVFP4, 4, 512, 22);
  constexpr unsigned kBytes[] = {0x77, 0xFF, 0x7F, 0xF7};
  const size_t row_bytes = weights.view().row_bytes();
  for (size_t at = 0; at < weights.bytes().size(); ++at) {
    if (at % sizeof(gguf::BlockNVFP4) < offsetof(gguf::BlockNVFP4, qs)) continue;
    weights.bytes()[at] = std::byte(kBytes[at / row_bytes]);
  }
  ExpectProducts(weights.view(), std::vector<float>(512, 1.0f));
  ExpectProducts(weights.view(), std::vector<float>(512, -1.0f));
}

// A row for each byte of codes.
TEST(FewBits, EveryByte) {
  for (const DType dtype : {DType::kQ1_0, DType::kQ2_0}) {
    RandomMatrix weights(dtype, 256, 640, 23);
    const size_t row_bytes = weights.view().row_bytes();
    for (size_t at = 0; at < weights.bytes().size(); ++at) {
      if (at % gguf::Info(dtype).block_bytes < 2) continue;  // d
      weights.bytes()[at] = std::byte(at / row_bytes);
    }
    ExpectProducts(weights.view(), 1.0f);
  }
}

}  // namespace
}  // namespace kernels
