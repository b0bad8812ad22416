// Products with batches of tokens, which use panels, against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "kernels/half.h"
#include "kernels/matmul/registry.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/random_weights.h"
#include "tests/support/guarded_bytes.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr size_t kBatch = 45;  // a tail of tokens on every instruction set

std::vector<DType> GemmTypes() {
  std::vector<DType> types;
  for (const gguf::DTypeInfo& info : gguf::AllDTypes()) {
    if (KernelsOf(info.type).rows != nullptr) types.push_back(info.type);
  }
  return types;
}

std::vector<size_t> BatchCols(DType dtype) {
  switch (gguf::Info(dtype).block_size) {
    case 1:
      return {1, 31, 32, 100, 515};
    case 32:
      return {32, 96, 288, 544};
    case 64:
      return {64, 192, 320, 576};
    case 128:
      return {128, 384, 640};
    default:
      return {256, 768};
  }
}

// The inputs of a product.
BatchForm FormFor(DType dtype, size_t n_tokens) {
  if (n_tokens > MaxRowTokens(dtype)) return BatchFormFor(dtype);
  return UsesInt8(dtype) ? BatchForm::kInt8 : BatchForm::kFloats;
}

// In a row of n quantized weights, the sum for each 32 weights is rounded up to six times: two
// scales applied, two added up, a minimum multiplied and added. Each is at most eps / 2 of a
// partial sum, which is at most the sum of magnitudes of the terms: scale * (w + zero) * x with
// codes that count from their zero point, and the minimum's term. With the random scales here that
// is less than 16 times the sum of |weight * x| over a row. Floats are rounded once per column.
//
// With BF16 weights and activations are rounded first, and there is one rounding for each column.
// Now and then a weight whose float differs in the last bit from ours is rounded the other way.
// Four such weights in a row do not happen in practice.
Expected ExpectBatch(const Matrix& w, size_t row, const ActivationRow& x, BatchForm form) {
  const double n = static_cast<double>(w.cols);
  const bool quantized = gguf::Info(w.dtype).block_size > 1;
  if (form != BatchForm::kBf16) {
    return ExpectProduct(w, row, x, quantized ? 6 * n / 32 * 16 : n + 1);
  }
  std::vector<float> weights(w.cols);
  DequantizeRow(w.dtype, w.row(row), w.cols, weights.data());
  double sum = 0, magnitude = 0, largest = 0;
  for (size_t i = 0; i < w.cols; ++i) {
    const double term =
        double{Bf16ToF32(F32ToBf16(weights[i]))} * double{Bf16ToF32(F32ToBf16(x.x[i]))};
    sum += term;
    magnitude += std::abs(term);
    largest = std::max(largest, std::abs(term));
  }
  return {sum, kEps / 2 * (n + 1) * magnitude + 4 * largest / 128 + 1e-30};
}

// The input of a product, which also has the int8 form that DotReference() reads.
Activations InputOf(const std::vector<float>& input, size_t cols) {
  ThreadPool pool(1);
  Activations x(input.size() / cols, cols);
  x.Set(input.data(), input.size() / cols, cols);
  if (cols % 32 == 0) x.RoundOnce(pool, DType::kQ8_0);
  return x;
}

std::vector<float> Multiply(ThreadPool& pool, const Matrix& w, const std::vector<float>& input,
                            size_t n_tokens) {
  Activations x(n_tokens, w.cols, pool.size());
  x.Set(input.data(), n_tokens, w.cols);
  std::vector<float> out(n_tokens * w.rows, NAN);
  const Product product{w, out.data(), w.rows};
  pool.Run([&] { MatMul(pool, {&product, 1}, x); });
  return out;
}

class GemmOf : public testing::TestWithParam<DType> {};

TEST_P(GemmOf, EqualsTheReference) {
  const DType dtype = GetParam();
  ThreadPool pool(1);
  for (const size_t cols : BatchCols(dtype)) {
    for (const size_t rows : {1, 16, 37}) {
      const RandomMatrix weights(dtype, rows, cols, static_cast<unsigned>(rows + cols));
      const std::vector<float> input = NormalFloats(kBatch * cols, 7);
      const Activations x = InputOf(input, cols);
      std::map<BatchForm, std::vector<Expected>> expected;  // [kBatch][rows]
      ForEachTarget([&] {
        const BatchForm form = FormFor(dtype, kBatch);
        std::vector<Expected>& of_form = expected[form];  // most targets share a form
        if (of_form.empty()) {
          for (size_t i = 0; i < kBatch * rows; ++i) {
            of_form.push_back(ExpectBatch(weights.view(), i % rows, x.input(i / rows), form));
          }
        }
        const std::vector<float> out = Multiply(pool, weights.view(), input, kBatch);
        for (size_t i = 0; i < out.size(); ++i) {
          ASSERT_NEAR(out[i], of_form[i].value, of_form[i].tolerance)
              << rows << " x " << cols << ", row " << i % rows << ", token " << i / rows;
        }
      });
    }
  }
}

// The part of a product's power that is lost. Activations as int8: see matmul_test.cc, 2.4e-5.
// BF16: numbers of 8 bits are off by 2^-7 / sqrt(12) of their power of two, whose square is 2.4e-6
// of a number's own on average; for weights, which are few different numbers, at most 5.1e-6.
double LargestError(BatchForm form) {
  switch (form) {
    case BatchForm::kInt8:
      return 5e-5;
    case BatchForm::kBf16:
      return 8e-6;
    case BatchForm::kFloats:
      return 1e-11;
  }
  return 0;
}

TEST_P(GemmOf, HasTheErrorOfItsInputsAlone) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 64, kCols = 2048, kTokens = 42;
  const RandomMatrix weights(dtype, kRows, kCols, 3);
  const std::vector<float> input = NormalFloats(kTokens * kCols, 4);
  ThreadPool pool(1);
  std::vector<double> expected;
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t r = 0; r < kRows; ++r) {
      expected.push_back(UnroundedDot(weights.view(), r, input.data() + t * kCols));
    }
  }
  ForEachTarget([&] {
    const std::vector<float> out = Multiply(pool, weights.view(), input, kTokens);
    double error = 0, power = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      error += (out[i] - expected[i]) * (out[i] - expected[i]);
      power += expected[i] * expected[i];
    }
    EXPECT_LE(error / power, LargestError(FormFor(dtype, kTokens)));
  });
}

TEST_P(GemmOf, GivesTheSameBitsInAnyCompany) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 300;
  const size_t cols = BatchCols(dtype).back();
  const RandomMatrix weights(dtype, kRows, cols, 5);
  const std::vector<float> input = NormalFloats(kBatch * cols, 6);
  ForEachTarget([&] {
    ThreadPool one(1);
    const std::vector<float> expected = Multiply(one, weights.view(), input, kBatch);
    for (const int threads : {2, 3}) {
      ThreadPool pool(threads);
      ASSERT_EQ(Multiply(pool, weights.view(), input, kBatch), expected) << threads << " threads";
    }
    // A part of the batch and of the rows.
    constexpr size_t kFirst = 5, kTokens = 37, kFirstRow = 3;
    Matrix part = weights.view();
    part.data = part.row(kFirstRow);
    part.rows -= kFirstRow;
    const std::vector<float> some(input.begin() + kFirst * cols,
                                  input.begin() + (kFirst + kTokens) * cols);
    const std::vector<float> out = Multiply(one, part, some, kTokens);
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t r = 0; r < part.rows; ++r) {
        ASSERT_EQ(out[t * part.rows + r], expected[(t + kFirst) * kRows + r + kFirstRow]);
      }
    }
  });
}

#ifdef __aarch64__
// Arm's targets differ in the instructions for integer sums alone.
TEST_P(GemmOf, GivesTheSameBitsOnEveryTargetOfArm) {
  const DType dtype = GetParam();
  const size_t cols = BatchCols(dtype).back();
  const RandomMatrix weights(dtype, 37, cols, 8);
  const std::vector<float> input = NormalFloats(kBatch * cols, 9);
  ThreadPool pool(1);
  for (const size_t n_tokens : {size_t{1}, size_t{3}, kBatch}) {
    LimitCpu("neon");
    const std::vector<float> expected = Multiply(pool, weights.view(), input, n_tokens);
    ForEachTarget(
        [&] { ASSERT_EQ(Multiply(pool, weights.view(), input, n_tokens), expected) << n_tokens; });
  }
}
#endif

// Every code at its largest and smallest with activations of 127 and -127 everywhere, and with the
// two mixed so that neighbours add up: sums of 16 bits must not overflow. The first eight of many
// tokens are also multiplied row by row.
TEST_P(GemmOf, SurvivesExtremeCodes) {
  const DType dtype = GetParam();
  constexpr size_t kCols = 512, kRows = 16, kTokens = 42, kRowWise = 8;
  constexpr unsigned kBytes[] = {0x00, 0xFF, 0x80, 0x7F, 0x81, 0x88, 0xF0, 0x0F};
  ThreadPool pool(1);
  const RandomMatrix original(dtype, kRows, kCols, 1);
  std::vector<float> input(kTokens * kCols);
  for (size_t i = 0; i < input.size(); ++i) {
    const size_t token = i / kCols;
    const bool negative = token == 0 ? false : token == 1 ? true : (i >> (token - 2) & 1) != 0;
    input[i] = negative ? -3.0f : 3.0f;
  }
  if (ScaleOffsets(dtype).empty()) return;  // no codes, or every byte is one
  // A zero point is subtracted after rounding: the error depends on the largest weight that the
  // scales allow, not on the remaining sum.
  std::vector<RandomMatrix> matrices;
  for (const unsigned byte : kBytes) {
    RandomMatrix weights = original;
    std::vector<std::byte>& bytes = weights.bytes();
    std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(byte));
    for (size_t at = 0; at < bytes.size(); at += gguf::Info(dtype).block_bytes) {
      for (const size_t offset : ScaleOffsets(dtype)) {
        std::memcpy(&bytes[at + offset], original.view().data + at + offset, 2);
      }
    }
    matrices.push_back(std::move(weights));
  }
  const Activations x = InputOf(input, kCols);
  const auto check = [&](size_t n_tokens) {
    const BatchForm form = FormFor(dtype, n_tokens);
    std::array<double, kRows> tolerance = {};
    for (const RandomMatrix& weights : matrices) {
      for (size_t r = 0; r < kRows; ++r) {
        const Expected e = ExpectBatch(weights.view(), r, x.input(0), form);
        tolerance[r] = std::max(tolerance[r], e.tolerance);
      }
    }
    for (const RandomMatrix& weights : matrices) {
      const std::vector<float> out = Multiply(pool, weights.view(), input, n_tokens);
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t t = i / kRows, r = i % kRows;
        const Expected e = ExpectBatch(weights.view(), r, x.input(t), form);
        ASSERT_NEAR(out[i], e.value, tolerance[r]) << "row " << r << ", token " << t;
      }
    }
  };
  ForEachTarget([&] {
    check(kRowWise);
    check(kTokens);
  });
}

// Nothing may be read beyond the end of a file's mapping.
TEST_P(GemmOf, ReadsNothingBeyondTheMatrix) {
  const DType dtype = GetParam();
  ThreadPool pool(1);
  for (const size_t cols : BatchCols(dtype)) {
    const RandomMatrix weights(dtype, 5, cols, 8);
    const test::GuardedBytes bytes({weights.view().data, 5 * weights.view().row_bytes()});
    Matrix at_the_end = weights.view();
    at_the_end.data = bytes.data();
    const std::vector<float> input = NormalFloats(kBatch * cols, 9);
    ForEachTarget([&] {
      EXPECT_EQ(Multiply(pool, at_the_end, input, kBatch),
                Multiply(pool, weights.view(), input, kBatch));
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Types, GemmOf, testing::ValuesIn(GemmTypes()),
                         [](const auto& test) { return std::string(gguf::Info(test.param).name); });

TEST(Gemm, TakesBatchesOfAnySize) {
  constexpr size_t kRows = 40, kCols = 256;
  const RandomMatrix weights(DType::kQ4_K, kRows, kCols, 1);
  for (const size_t n_tokens : {1, 7, 8, 16, 17, 32, 33, 128, 513, 2048}) {
    const std::vector<float> input = NormalFloats(n_tokens * kCols, 2);
    const Activations x = InputOf(input, kCols);
    ThreadPool pool(2);
    ForEachTarget([&] {
      const BatchForm form = FormFor(DType::kQ4_K, n_tokens);
      const std::vector<float> out = Multiply(pool, weights.view(), input, n_tokens);
      for (size_t t = 0; t < n_tokens; t += std::max<size_t>(n_tokens / 40, 1)) {
        for (size_t r = 0; r < kRows; r += 13) {
          const Expected e = ExpectBatch(weights.view(), r, x.input(t), form);
          ASSERT_NEAR(out[t * kRows + r], e.value, e.tolerance) << n_tokens << " tokens";
        }
      }
    });
  }
}

// Longer rows than fit in the second-level cache as a panel, and the products of different types
// and row numbers that share an input.
TEST(Gemm, TakesWideMatricesOfDifferentTypesWithBias) {
  constexpr size_t kCols = 15360, kTokens = 42;
  const RandomMatrix q(DType::kQ4_0, 40, kCols, 1);
  const RandomMatrix k(DType::kF16, 17, kCols, 2);
  const RandomMatrix v(DType::kQ8_0, 33, kCols, 3);
  const std::vector<float> bias = NormalFloats(17, 4);
  const std::vector<float> input = NormalFloats(kTokens * kCols, 5);
  const Activations read = InputOf(input, kCols);
  ThreadPool pool(2);
  ForEachTarget([&] {
    Activations x(kTokens, kCols, 2);
    x.Set(input.data(), kTokens, kCols);
    // q and v are side by side in rows of 80, k is separate.
    std::vector<float> qv(kTokens * 80, NAN), ks(kTokens * 17, NAN);
    const Product products[] = {{q.view(), qv.data(), 80},
                                {k.view(), ks.data(), 17, bias.data()},
                                {v.view(), qv.data() + 40, 80}};
    pool.Run([&] { MatMul(pool, products, x); });
    for (const Product& p : products) {
      const BatchForm form = FormFor(p.weights.dtype, kTokens);
      for (size_t t = 0; t < kTokens; ++t) {
        for (size_t r = 0; r < p.weights.rows; ++r) {
          const Expected e = ExpectBatch(p.weights, r, read.input(t), form);
          const double b = p.bias == nullptr ? 0 : p.bias[r];
          ASSERT_NEAR(p.out[t * p.out_stride + r], e.value + b, e.tolerance + kEps * std::abs(b));
        }
      }
    }
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t r = 73; r < 80; ++r) ASSERT_TRUE(std::isnan(qv[t * 80 + r]));
    }
  });
}

TEST(Gemm, GatedIsSiluOfGateTimesUp) {
  constexpr size_t kRows = 150, kCols = 256, kTokens = 37;
  const RandomMatrix gate(DType::kQ4_0, kRows, kCols, 1);
  const RandomMatrix up(DType::kQ6_K, kRows, kCols, 2);
  const std::vector<float> input = NormalFloats(kTokens * kCols, 3);
  ThreadPool one(1);
  ForEachTarget([&] {
    const std::vector<float> gates = Multiply(one, gate.view(), input, kTokens);
    const std::vector<float> ups = Multiply(one, up.view(), input, kTokens);
    for (const int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Activations x(kTokens, kCols, pool.size());
      x.Set(input.data(), kTokens, kCols);
      std::vector<float> out(kTokens * kRows, NAN);
      pool.Run([&] { GatedMatMul(pool, {gate.view(), up.view()}, x, out.data()); });
      for (size_t i = 0; i < out.size(); ++i) {
        const double g = double{gates[i]};
        const double expected = g / (1 + std::exp(-g)) * double{ups[i]};
        ASSERT_NEAR(out[i], expected, 8 * kEps * std::abs(expected) + 1e-30);
      }
    }
  });
}

}  // namespace
}  // namespace kernels
