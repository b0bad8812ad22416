// Exact products against sums in double, for every weight type.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/experts/experts.h"
#include "kernels/matmul/matmul.h"
#include "kernels/matmul/registry.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

// Sums of 512 products in floats: each addition is off by at most eps / 2 of the sum so far, so the
// square of the error is far below (512 * eps / 2)^2 = 1e-9 of the sum's; at random, as here, it is
// about 512 * (eps / 2)^2 = 2e-12. Rounding activations to int8 costs 2e-5.
constexpr double kMaxError = 4e-12;

class ExactOf : public testing::TestWithParam<DType> {};

// Tokens row by row, and as a batch by panels.
TEST_P(ExactOf, RoundsNoActivations) {
  const DType dtype = GetParam();
  constexpr size_t kRows = 48, kCols = 768;
  const RandomMatrix weights(dtype, kRows, kCols, 3);
  Matrix matrix = weights.view();
  matrix.exact = true;
  EXPECT_FALSE(UsesInt8(matrix));
  ThreadPool pool(2);
  ForEachTarget([&] {
    for (const size_t n_tokens : {size_t{1}, size_t{5}, kDefaultMaxRowTokens + 1, size_t{70}}) {
      const std::vector<float> input = NormalFloats(n_tokens * kCols, 4);
      Activations x(n_tokens, kCols, 2);
      x.Set(input.data(), n_tokens, kCols);
      std::vector<float> out(n_tokens * kRows);
      const Product product{matrix, out.data(), kRows};
      MatMul(pool, {&product, 1}, x);
      double error = 0, power = 0;
      for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t r = 0; r < kRows; ++r) {
          const double expected = UnroundedDot(matrix, r, input.data() + t * kCols);
          error += (out[t * kRows + r] - expected) * (out[t * kRows + r] - expected);
          power += expected * expected;
        }
      }
      EXPECT_LE(error / power, kMaxError) << n_tokens << " tokens";
    }
  });
}

// A matrix that uses the residual also multiplies the rounding residual, in multiples of 1 / 254 of
// the first step: 2.4e-5 / 254^2 (matmul_test.cc) is a relative squared error of 4e-10. Up to 16
// tokens are batch-invariant (kernels/README.md). (residual_test.cc has larger batches.)
TEST_P(ExactOf, FineMatricesRoundTo16Bits) {
  const DType dtype = GetParam();
  if (!UsesInt8(dtype)) return;
  constexpr size_t kRows = 600, kCols = 768;
  const RandomMatrix weights(dtype, kRows, kCols, 3);
  Matrix matrix = weights.view();
  matrix.uses_residual = true;
  matrix.scale = 0.5f;
  const std::vector<float> bias = NormalFloats(kRows, 5);
  ThreadPool pool(2);
  ForEachTarget([&] {
    std::vector<float> alone;
    for (const size_t n_tokens : {size_t{1}, size_t{7}, size_t{16}}) {
      const std::vector<float> input = NormalFloats(n_tokens * kCols, 4);
      Activations x(n_tokens, kCols, 2, /*residual_cols=*/kCols);
      x.Set(input.data(), n_tokens, kCols);
      std::vector<float> out(n_tokens * kRows), plain(n_tokens * kRows);
      // Beside another product of the same input, which needs another order of the input.
      const Product products[] = {{weights.view(), plain.data(), kRows},
                                  {matrix, out.data(), kRows, bias.data()},
                                  {weights.view(), plain.data(), kRows}};
      MatMul(pool, products, x);
      double error = 0, plain_error = 0, power = 0;
      for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t r = 0; r < kRows; ++r) {
          const double expected = UnroundedDot(matrix, r, input.data() + t * kCols);
          const double found = 2 * (double{out[t * kRows + r]} - double{bias[r]});
          const double usual = plain[t * kRows + r];
          error += (found - expected) * (found - expected);
          plain_error += (usual - expected) * (usual - expected);
          power += expected * expected;
        }
      }
      EXPECT_LE(error / power, 1e-9) << n_tokens << " tokens";
      EXPECT_GE(plain_error / power, 1e-6) << n_tokens << " tokens";
      const std::vector<float> first(out.begin(), out.begin() + kRows);
      if (n_tokens == 1) alone = first;
      EXPECT_EQ(first, alone) << n_tokens << " tokens";
    }
  });
}

// A layer of experts, whose hidden vectors are not rounded either.
TEST_P(ExactOf, RoundsNothingBetweenExpertsMatrices) {
  const DType dtype = GetParam();
  constexpr size_t kWidth = 256, kHidden = 512, kTokens = 40;
  const RandomMatrix gate(dtype, kHidden, kWidth, 1), up(dtype, kHidden, kWidth, 2);
  const RandomMatrix down(dtype, kWidth, kHidden, 3);
  ExpertLayer layer{{gate.view(), 1}, {up.view(), 1}, {down.view(), 1}};
  for (ExpertStack* const stack : {&layer.gate, &layer.up, &layer.down}) stack->first.exact = true;
  const std::vector<uint32_t> experts(kTokens, 0);
  const std::vector<float> shares(kTokens, 1);
  const std::vector<float> input = NormalFloats(kTokens * kWidth, 4);
  ThreadPool pool(2);
  for (const size_t n_tokens : {size_t{3}, kTokens}) {
    ExpertScratch scratch(n_tokens, 1, 1, kWidth, kHidden, 2);
    std::vector<float> out(n_tokens * kWidth);
    Experts(pool, layer, input.data(), n_tokens, experts.data(), shares.data(), 1, scratch,
            out.data());
    double error = 0, power = 0;
    for (size_t t = 0; t < n_tokens; ++t) {
      std::vector<float> hidden(kHidden);
      for (size_t r = 0; r < kHidden; ++r) {
        const float* const x = input.data() + t * kWidth;
        const double g = UnroundedDot(layer.gate.first, r, x);
        const double u = UnroundedDot(layer.up.first, r, x);
        hidden[r] = static_cast<float>(g / (1 + std::exp(-g)) * u);
      }
      for (size_t r = 0; r < kWidth; ++r) {
        const double expected = UnroundedDot(layer.down.first, r, hidden.data());
        error += (out[t * kWidth + r] - expected) * (out[t * kWidth + r] - expected);
        power += expected * expected;
      }
    }
    EXPECT_LE(error / power, 1e-10) << n_tokens << " tokens";  // exp() of floats takes part
  }
}

INSTANTIATE_TEST_SUITE_P(Types, ExactOf, testing::ValuesIn([] {
                           std::vector<DType> types;
                           for (const gguf::DTypeInfo& row : gguf::AllDTypes()) {
                             if (IsWeightType(row.type)) types.push_back(row.type);
                           }
                           return types;
                         }()),
                         [](const auto& test) { return std::string(gguf::Info(test.param).name); });

}  // namespace
}  // namespace kernels
