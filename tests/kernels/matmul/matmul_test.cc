// Products of every weight type on every instruction set against sums in double.
#include "kernels/matmul/matmul.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "kernels/matmul/registry.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/ops/activation_reference.h"
#include "tests/kernels/random_weights.h"
#include "tests/support/guarded_bytes.h"

namespace kernels {
namespace {

using gguf::DType;

std::string Name(DType dtype) { return std::string(gguf::Info(dtype).name); }

// The row lengths that show the tails of each type's loop.
std::vector<size_t> Cols(DType dtype) {
  switch (gguf::Info(dtype).block_size) {
    case 1:
      return {1, 7, 31, 64, 100, 515};
    case 32:
      return {32, 64, 96, 160, 288, 480, 1056};
    case 64:
      return {64, 128, 192, 320, 1088};
    case 128:
      return {128, 256, 384, 640, 1152};
    default:
      return {256, 512, 1280};
  }
}

// Only the additions of blocks and the products with scales are rounded: fewer than n / 32 + 16 in
// a row for quantized types, n / 4 + 8 for floats. Where weights are d * q - m the two terms are
// rounded separately and may be larger than their difference: with the random scales used here less
// than 16 times as large, on average over a row.
Expected Expect(const Matrix& w, size_t row, const ActivationRow& x) {
  const bool quantized = gguf::Info(w.dtype).block_size > 1;
  const double n = static_cast<double>(w.cols);
  return ExpectProduct(w, row, x, quantized ? 16 * (n / 32 + 16) : n / 4 + 8);
}

class MatMulOf : public testing::TestWithParam<DType> {};

TEST_P(MatMulOf, EqualsTheReference) {
  const DType dtype = GetParam();
  ThreadPool pool(1);
  ForEachTarget([&] {
    for (const size_t cols : Cols(dtype)) {
      for (const size_t rows : {1, 3, 4, 37}) {
        const RandomMatrix weights(dtype, rows, cols, static_cast<unsigned>(rows + cols));
        const size_t n_tokens = rows % 4 + 1;
        const std::vector<float> input = NormalFloats(n_tokens * cols, 7);
        Activations x(n_tokens, cols);
        x.Set(input.data(), n_tokens, cols);
        std::vector<float> out(n_tokens * rows, NAN);
        const Product product{weights.view(), out.data(), rows};
        MatMul(pool, {&product, 1}, x);
        for (size_t t = 0; t < n_tokens; ++t) {
          for (size_t r = 0; r < rows; ++r) {
            const Expected e = Expect(weights.view(), r, x.input(t));
            ASSERT_NEAR(out[t * rows + r], e.value, e.tolerance)
                << rows << " x " << cols << ", row " << r << ", token " << t;
          }
        }
      }
    }
  });
}

// The matrix with `byte` everywhere but in the scales.
RandomMatrix WithBytes(const RandomMatrix& original, unsigned byte) {
  RandomMatrix weights = original;
  std::vector<std::byte>& bytes = weights.bytes();
  std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(byte));
  const DType dtype = original.view().dtype;
  for (size_t at = 0; at < bytes.size(); at += gguf::Info(dtype).block_bytes) {
    for (const size_t offset : ScaleOffsets(dtype)) {
      std::memcpy(&bytes[at + offset], original.view().data + at + offset, 2);
    }
  }
  return weights;
}

TEST_P(MatMulOf, SurvivesExtremeCodes) {
  const DType dtype = GetParam();
  if (ScaleOffsets(dtype).empty()) return;  // no codes, or all of the block's bytes are codes
  constexpr size_t kCols = 1024;
  constexpr unsigned kBytes[] = {0x00, 0xFF, 0x80, 0x7F, 0x88, 0xF0, 0x0F};
  ThreadPool pool(1);
  const RandomMatrix original(dtype, 4, kCols, 1);
  for (const float sign : {1.0f, -1.0f}) {
    const std::vector<float> input(kCols, sign * 3.0f);  // q is 127 or -127 everywhere
    Activations x(1, kCols);
    x.Set(input.data(), 1, kCols);
    x.RoundOnce(pool, DType::kQ8_0);
    for (size_t r = 0; r < 4; ++r) {
      // A zero point is subtracted after rounding: the error depends on the largest weight that the
      // scales allow, not on the remaining sum.
      double tolerance = 0;
      for (const unsigned byte : kBytes) {
        const RandomMatrix weights = WithBytes(original, byte);
        tolerance = std::max(tolerance, Expect(weights.view(), r, x.input(0)).tolerance);
      }
      for (const unsigned byte : kBytes) {
        const RandomMatrix weights = WithBytes(original, byte);
        ForEachTarget([&] {
          std::vector<float> out(4, NAN);
          const Product product{weights.view(), out.data(), 4};
          MatMul(pool, {&product, 1}, x);
          ASSERT_NEAR(out[r], Expect(weights.view(), r, x.input(0)).value, tolerance)
              << "byte " << byte << ", sign " << sign;
        });
      }
    }
  }
}

// Rounding to int8 would hide a NaN, and a broken model would write on.
TEST_P(MatMulOf, KeepsWhatIsNoNumber) {
  constexpr size_t kRows = 33, kCols = 512, kTokens = 43;
  const RandomMatrix weights(GetParam(), kRows, kCols, 1);
  std::vector<float> input = NormalFloats(kTokens * kCols, 2);
  input[kCols + 40] = NAN;
  input[2 * kCols + 40] = INFINITY;
  ThreadPool pool(1);
  ForEachTarget([&] {
    for (const size_t n_tokens : {size_t{3}, kTokens}) {
      Activations x(n_tokens, kCols);
      x.Set(input.data(), n_tokens, kCols);
      std::vector<float> out(n_tokens * kRows);
      const Product product{weights.view(), out.data(), kRows};
      MatMul(pool, {&product, 1}, x);
      for (size_t i = 0; i < out.size(); ++i) {
        const bool is_spoiled = i / kRows == 1 || i / kRows == 2;
        EXPECT_EQ(std::isfinite(out[i]), !is_spoiled) << n_tokens << ", number " << i;
      }
    }
  });
}

// Rounding x to steps of max / 127 in blocks of 32 is an error of step^2 / 12 for each number. For
// normal data the maximum of 32 is about 2.1 deviations, its square 4.6 on average: relative to the
// data's variance that makes 4.6 / 127^2 / 12 = 2.4e-5, and so it does for the products, since
// errors are independent of the weights. 5e-5 leaves room for the spread of a finite sample.
TEST_P(MatMulOf, HasTheErrorOfInt8Activations) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 256, kCols = 2048;
  const RandomMatrix weights(dtype, kRows, kCols, 3);
  const std::vector<float> input = NormalFloats(kCols, 4);
  ThreadPool pool(1);
  ForEachTarget([&] {
    Activations x(1, kCols);
    x.Set(input.data(), 1, kCols);
    std::vector<float> out(kRows);
    const Product product{weights.view(), out.data(), kRows};
    MatMul(pool, {&product, 1}, x);
    double error = 0, power = 0;
    for (size_t r = 0; r < kRows; ++r) {
      const double expected = UnroundedDot(weights.view(), r, input.data());
      error += (out[r] - expected) * (out[r] - expected);
      power += expected * expected;
    }
    EXPECT_LE(error / power, UsesInt8(dtype) ? 5e-5 : 1e-11);
  });
}

TEST_P(MatMulOf, GivesTheSameBitsInAnyCompany) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 53, kTokens = 3;
  const size_t cols = Cols(dtype).back();
  const RandomMatrix weights(dtype, kRows, cols, 5);
  const std::vector<float> input = NormalFloats(kTokens * cols, 6);
  ForEachTarget([&] {
    Activations x(kTokens, cols, 3);
    x.Set(input.data(), kTokens, cols);
    std::vector<float> expected(kTokens * kRows);
    {
      ThreadPool one(1);
      const Product product{weights.view(), expected.data(), kRows};
      MatMul(one, {&product, 1}, x);
    }
    for (const int threads : {2, 3}) {
      ThreadPool pool(threads);
      std::vector<float> out(kTokens * kRows, NAN);
      const Product product{weights.view(), out.data(), kRows};
      pool.Run([&] { MatMul(pool, {&product, 1}, x); });
      ASSERT_EQ(out, expected) << threads << " threads";
    }
    // Row by row, token by token.
    ThreadPool one(1);
    for (size_t t = 0; t < kTokens; ++t) {
      Activations alone(1, cols);
      alone.Set(input.data() + t * cols, 1, cols);
      for (size_t r = 0; r < kRows; ++r) {
        Matrix row = weights.view();
        row.data = weights.view().row(r);
        row.rows = 1;
        float out = NAN;
        const Product product{row, &out, 1};
        MatMul(one, {&product, 1}, alone);
        ASSERT_EQ(out, expected[t * kRows + r]) << "row " << r << ", token " << t;
      }
    }
  });
}

// Speculation and short prompts need this: up to 16 tokens are computed like a single one.
TEST_P(MatMulOf, GivesTheSameBitsToATokenAloneAndAmongUpTo16) {
  const DType dtype = GetParam();
  // The first number of rows is so large that results wait for a cache line in each of a chunk's
  // parts.
  for (const size_t rows : {600, 37}) {
    const size_t cols = rows > 37 ? Cols(dtype).front() : Cols(dtype).back();
    const RandomMatrix weights(dtype, rows, cols, 15);
    const std::vector<float> input = NormalFloats(kDefaultMaxRowTokens * cols, 16);
    const auto multiply = [&](ThreadPool& pool, size_t first, size_t n_tokens) {
      Activations x(n_tokens, cols, pool.size());
      x.Set(input.data() + first * cols, n_tokens, cols);
      std::vector<float> out(n_tokens * rows, NAN);
      const Product product{weights.view(), out.data(), rows};
      pool.Run([&] { MatMul(pool, {&product, 1}, x); });
      return out;
    };
    ForEachTarget([&] {
      ThreadPool one(1), two(2);
      std::vector<float> alone;
      for (size_t t = 0; t < kDefaultMaxRowTokens; ++t) {
        const std::vector<float> token = multiply(one, t, 1);
        alone.insert(alone.end(), token.begin(), token.end());
      }
      for (size_t n = 2; n <= kDefaultMaxRowTokens; ++n) {
        const size_t first = (kDefaultMaxRowTokens - n) / 2;
        const std::vector<float> expected(alone.begin() + first * rows,
                                          alone.begin() + (first + n) * rows);
        ASSERT_EQ(multiply(one, first, n), expected) << n << " tokens, " << cols << " columns";
        ASSERT_EQ(multiply(two, first, n), expected) << n << " tokens, two threads";
      }
    });
  }
}

// Nothing may be read beyond the end of a file's mapping.
TEST_P(MatMulOf, ReadsNothingBeyondTheMatrix) {
  const DType dtype = GetParam();
  ThreadPool pool(1);
  for (const size_t cols : Cols(dtype)) {
    const RandomMatrix weights(dtype, 5, cols, 8);
    const test::GuardedBytes bytes({weights.view().data, 5 * weights.view().row_bytes()});
    Matrix at_the_end = weights.view();
    at_the_end.data = bytes.data();
    const std::vector<float> input = NormalFloats(cols, 9);
    Activations x(1, cols);
    x.Set(input.data(), 1, cols);
    ForEachTarget([&] {
      std::vector<float> out(5), expected(5);
      const Product product{at_the_end, out.data(), 5};
      MatMul(pool, {&product, 1}, x);
      const Product elsewhere{weights.view(), expected.data(), 5};
      MatMul(pool, {&elsewhere, 1}, x);
      EXPECT_EQ(out, expected);
    });
  }
}

// A row's last step is read with the beginning of the next row, which may be NaNs.
TEST_P(MatMulOf, DoesNotMindWhatTheNextRowIs) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 23, kTokens = 2;
  ThreadPool pool(1);
  for (const size_t cols : Cols(dtype)) {
    const RandomMatrix weights(dtype, kRows, cols, 10);
    RandomMatrix spoilt = weights;  // every other row: f16, bf16 and f32 of ones are NaN
    const size_t row_bytes = weights.view().row_bytes();
    for (size_t r = 1; r < kRows; r += 2) {
      std::fill_n(spoilt.bytes().begin() + r * row_bytes, row_bytes, std::byte{0xFF});
    }
    const std::vector<float> input = NormalFloats(kTokens * cols, 11);
    for (const size_t n_tokens : {size_t{1}, kTokens}) {
      Activations x(n_tokens, cols);
      x.Set(input.data(), n_tokens, cols);
      ForEachTarget([&] {
        std::vector<float> out(n_tokens * kRows), expected(n_tokens * kRows);
        const Product products[] = {{weights.view(), expected.data(), kRows},
                                    {spoilt.view(), out.data(), kRows}};
        MatMul(pool, products, x);
        for (size_t i = 0; i < out.size(); ++i) {
          if (i % kRows % 2 != 0) continue;
          ASSERT_EQ(out[i], expected[i]) << "row " << i % kRows << ", " << cols << " columns";
        }
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatMulOf, testing::ValuesIn(WeightTypes()),
                         [](const auto& test) { return Name(test.param); });

TEST(MatMul, TakesProductsOfDifferentTypesWithBias) {
  constexpr size_t kCols = 512, kTokens = 2;
  const RandomMatrix q(DType::kQ4_0, 40, kCols, 1);
  const RandomMatrix k(DType::kF32, 17, kCols, 2);
  const RandomMatrix v(DType::kQ8_0, 33, kCols, 3);
  const std::vector<float> bias = NormalFloats(17, 4);
  const std::vector<float> input = NormalFloats(kTokens * kCols, 5);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    Activations x(kTokens, kCols, 3);
    x.Set(input.data(), kTokens, kCols);
    // q and v are side by side in rows of 80, k is separate.
    std::vector<float> qv(kTokens * 80, NAN), ks(kTokens * 17, NAN);
    const Product products[] = {{q.view(), qv.data(), 80},
                                {k.view(), ks.data(), 17, bias.data()},
                                {v.view(), qv.data() + 40, 80}};
    pool.Run([&] { MatMul(pool, products, x); });
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t r = 0; r < 40; ++r) {
        const Expected e = Expect(q.view(), r, x.input(t));
        ASSERT_NEAR(qv[t * 80 + r], e.value, e.tolerance);
      }
      for (size_t r = 0; r < 17; ++r) {
        const Expected e = Expect(k.view(), r, x.input(t));
        ASSERT_NEAR(ks[t * 17 + r], e.value + bias[r], e.tolerance + kEps * std::abs(bias[r]));
      }
      for (size_t r = 0; r < 33; ++r) {
        const Expected e = Expect(v.view(), r, x.input(t));
        ASSERT_NEAR(qv[t * 80 + 40 + r], e.value, e.tolerance);
      }
      for (size_t r = 73; r < 80; ++r) ASSERT_TRUE(std::isnan(qv[t * 80 + r]));
    }
  }
}

// Results are batch-invariant (kernels/README.md) up to the most tokens that rows are multiplied
// with.
TEST(MatMul, TakesLongRowsWithManyTokens) {
  constexpr size_t kRows = 64, kCols = 15360;
  const std::vector<float> input = NormalFloats(kMaxRowTokens * kCols, 2);
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_K, DType::kQ6_K}) {
    const RandomMatrix weights(dtype, kRows, kCols, 1);
    ForEachTarget([&] {
      const size_t max_tokens = MaxRowTokens(dtype);
      EXPECT_GE(kMaxRowTokens, max_tokens);
      ThreadPool pool(1);
      for (const bool uses_residual : {false, true}) {
        Matrix matrix = weights.view();
        matrix.uses_residual = uses_residual;
        const auto multiply = [&](size_t first, size_t n_tokens) {
          Activations x(n_tokens, kCols, 1, kCols);
          x.Set(input.data() + first * kCols, n_tokens, kCols);
          std::vector<float> out(n_tokens * kRows, NAN);
          const Product product{matrix, out.data(), kRows};
          MatMul(pool, {&product, 1}, x);
          return out;
        };
        const std::vector<float> all = multiply(0, max_tokens);
        for (size_t t = 0; t < max_tokens; ++t) {
          const std::vector<float> alone = multiply(t, 1);
          ASSERT_TRUE(std::equal(alone.begin(), alone.end(), all.begin() + t * kRows)) << t;
        }
      }
    });
  }
}

// y = factor * (W x) + bias, one by one and by panels.
TEST(MatMul, MultipliesByTheFactorBeforeTheBias) {
  constexpr size_t kRows = 50, kCols = 64;
  const std::vector<float> bias = NormalFloats(kRows, 4);
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kQ4_0, DType::kQ6_K}) {
    const size_t cols = dtype == DType::kQ6_K ? 256 : kCols;
    const RandomMatrix weights(dtype, kRows, cols, 1);
    Matrix scaled = weights.view();
    scaled.scale = 0.3f;
    for (const size_t n_tokens : {1, 3, 43}) {
      const std::vector<float> input = NormalFloats(n_tokens * cols, 5);
      ForEachTarget([&] {
        ThreadPool pool(1);
        Activations x(n_tokens, cols);
        x.Set(input.data(), n_tokens, cols);
        std::vector<float> plain(n_tokens * kRows), out(n_tokens * kRows);
        const Product products[] = {{weights.view(), plain.data(), kRows},
                                    {scaled, out.data(), kRows, bias.data()}};
        MatMul(pool, products, x);
        for (size_t i = 0; i < out.size(); ++i) {
          const double product = double{plain[i]} * double{0.3f}, b = double{bias[i % kRows]};
          ASSERT_NEAR(out[i], product + b, kEps * (std::abs(product) + std::abs(b)))
              << "number " << i << " of " << n_tokens << " tokens";
        }
      });
    }
  }
}

// One by one and by panels.
TEST(GatedMatMul, IsTheActivationOfBothProducts) {
  constexpr size_t kRows = 150, kCols = 256;
  const RandomMatrix gate(DType::kQ4_0, kRows, kCols, 1), up(DType::kQ8_0, kRows, kCols, 2);
  const std::vector<float> gate_bias = NormalFloats(kRows, 4), up_bias = NormalFloats(kRows, 5);
  GatedLayer layer{gate.view(), up.view(), gate_bias.data(), up_bias.data()};
  layer.gate.scale = 0.2f;
  layer.up.scale = 0.7f;
  for (const size_t n_tokens : {1, 3, 43}) {
    const std::vector<float> input = NormalFloats(n_tokens * kCols, 3);
    for (const Activation activation : kActivations) {
      layer.activation = activation;
      ForEachTarget([&] {
        std::vector<float> gates(n_tokens * kRows), ups(n_tokens * kRows), first;
        for (const int threads : {1, 2, 3}) {
          ThreadPool pool(threads);
          Activations x(n_tokens, kCols, pool.size());
          x.Set(input.data(), n_tokens, kCols);
          std::vector<float> out(n_tokens * kRows, NAN);
          pool.Run([&] {
            const Product products[] = {{layer.gate, gates.data(), kRows, layer.gate_bias},
                                        {layer.up, ups.data(), kRows, layer.up_bias}};
            MatMul(pool, products, x);
            GatedMatMul(pool, layer, x, out.data());
          });
          for (size_t i = 0; i < out.size(); ++i) {
            const GatedExpected e = ExpectGated(activation, gates[i], ups[i]);
            ASSERT_NEAR(out[i], e.value, e.tolerance);
          }
          if (first.empty()) first = out;
          ASSERT_EQ(out, first) << threads << " threads";
        }
      });
    }
  }
}

TEST(GatedMatMul, NeedsNoGate) {
  constexpr size_t kRows = 150, kCols = 256;
  const std::vector<float> bias = NormalFloats(kRows, 5);
  for (const DType dtype : {DType::kF32, DType::kQ4_0}) {
    const RandomMatrix up(dtype, kRows, kCols, 2);
    const GatedLayer layer{{}, up.view(), nullptr, bias.data(), Activation::kReluSquared};
    for (const size_t n_tokens : {1, 16, 43}) {
      const std::vector<float> input = NormalFloats(n_tokens * kCols, 3);
      ForEachTarget([&] {
        for (const int threads : {1, 3}) {
          ThreadPool pool(threads);
          Activations x(n_tokens, kCols, pool.size());
          x.Set(input.data(), n_tokens, kCols);
          std::vector<float> expected(n_tokens * kRows), out(n_tokens * kRows, NAN);
          pool.Run([&] {
            const Product product = {layer.up, expected.data(), kRows, layer.up_bias};
            MatMul(pool, {&product, 1}, x);
            GatedMatMul(pool, layer, x, out.data());
          });
          GatedActivation(Activation::kReluSquared, expected.data(), nullptr, expected.size());
          EXPECT_EQ(out, expected);
        }
      });
    }
  }
}

TEST(Activations, RoundToInt8TheSameOnEveryTarget) {
  constexpr size_t kTokens = 3, kCols = 32 * 11;
  std::vector<float> input = NormalFloats(kTokens * kCols, 1);
  std::fill_n(input.begin(), 32, 0.0f);         // a block of zeros
  std::fill_n(input.begin() + 32, 32, 1e-42f);  // too small for a scale
  for (size_t i = 64; i < 96; ++i) input[i] *= 1e30f;
  ForEachTarget([&] {
    for (const int threads : {1, 2}) {
      ThreadPool pool(threads);
      Activations x(kTokens, 2048);
      x.Set(input.data(), kTokens, kCols);
      pool.Run([&] { x.RoundOnce(pool, DType::kQ8_0); });
      for (size_t t = 0; t < kTokens; ++t) {
        const ActivationRow row = x.input(t);
        for (size_t block = 0; block < 512 / 32; ++block) {  // up to the padding
          const float* in = row.x + block * 32;
          float max = 0;
          if (block < 11) {
            for (size_t i = 0; i < 32; ++i) max = std::max(max, std::abs(in[i]));
          }
          // Denormals are zeros during a run.
          ASSERT_EQ(row.scales[block], max < 0x1p-126f ? 0.0f : max / 127.0f);
          int sums[2] = {};
          for (size_t i = 0; i < 32; ++i) {
            const float inverse = max < 1.2e-36f ? 0.0f : 127.0f / max;
            const int q = block < 11 ? static_cast<int>(std::nearbyint(in[i] * inverse)) : 0;
            ASSERT_EQ(row.q[block * 32 + i], q) << "block " << block;
            ASSERT_LE(std::abs(q), 127);
            sums[i / 16] += q;
          }
          ASSERT_EQ(row.sums[2 * block], sums[0]);
          ASSERT_EQ(row.sums[2 * block + 1], sums[1]);
        }
      }
    }
  });
}

TEST(Activations, KeepIntegersTimesAScaleExactly) {
  constexpr size_t kCols = 64;
  std::vector<float> input(kCols);
  for (size_t i = 0; i < kCols; ++i) input[i] = 0.25f * (static_cast<float>(i * 37 % 255) - 127);
  input[5] = 0.25f * 127;
  input[40] = -0.25f * 127;
  ThreadPool pool(1);
  Activations x(1, kCols);
  x.Set(input.data(), 1, kCols);
  x.RoundOnce(pool, DType::kQ8_0);
  for (size_t i = 0; i < kCols; ++i) EXPECT_EQ(x.input(0).q[i], input[i] * 4);
}

}  // namespace
}  // namespace kernels
