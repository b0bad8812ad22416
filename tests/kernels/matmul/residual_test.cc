// Products that also multiply the rounding residuals of activations, against sums in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/matmul/reference.h"
#include "kernels/matmul/registry.h"
#include "kernels/ops/rounding.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr size_t kRows = 48, kCols = 576;

// Normal numbers with three channels that are 40 times as large, as models have them.
std::vector<float> Inputs(size_t n_tokens) {
  std::vector<float> x = NormalFloats(n_tokens * kCols, 5);
  for (size_t t = 0; t < n_tokens; ++t) {
    for (const size_t channel : {7, 300, 301}) x[t * kCols + channel] *= 40;
  }
  return x;
}

std::vector<float> Multiply(const Matrix& w, const std::vector<float>& input, int n_threads = 1) {
  ThreadPool pool(n_threads);
  const size_t n_tokens = input.size() / w.cols;
  Activations x(n_tokens, w.cols, static_cast<size_t>(n_threads), w.cols);
  x.Set(input.data(), n_tokens, w.cols);
  std::vector<float> out(n_tokens * w.rows, NAN);
  const Product product{w, out.data(), w.rows};
  pool.Run([&] { MatMul(pool, {&product, 1}, x); });
  return out;
}

std::vector<double> Exact(const Matrix& w, const std::vector<float>& input) {
  std::vector<double> out;
  std::vector<float> weights(w.cols);
  for (size_t t = 0; t < input.size() / w.cols; ++t) {
    for (size_t r = 0; r < w.rows; ++r) {
      DequantizeRow(w.dtype, w.row(r), w.cols, weights.data());
      out.push_back(std::inner_product(weights.begin(), weights.end(), input.data() + t * w.cols,
                                       0.0, std::plus<>(),
                                       [](float a, float b) { return double{a} * b; }));
    }
  }
  return out;
}

// The relative squared error.
double Loss(const std::vector<float>& out, const std::vector<double>& exact) {
  double lost = 0, power = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    lost += (out[i] - exact[i]) * (out[i] - exact[i]);
    power += exact[i] * exact[i];
  }
  return lost / power;
}

TEST(RoundWithResidual, BothHaveSixteenBits) {
  const std::vector<float> x = Inputs(1);
  ForEachTarget([&] {
    std::vector<int8_t> q[3] = {std::vector<int8_t>(kCols), std::vector<int8_t>(kCols),
                                std::vector<int8_t>(kCols)};
    std::vector<float> scales[3];
    std::vector<int16_t> sums[3];
    for (auto& s : scales) s.resize(kCols / 32);
    for (auto& s : sums) s.resize(kCols / 16);
    RoundActivations(x.data(), kCols, q[0].data(), scales[0].data(), sums[0].data());
    RoundWithResidual(x.data(), kCols, {q[1].data(), scales[1].data(), sums[1].data()},
                      {q[2].data(), scales[2].data(), sums[2].data()});
    EXPECT_EQ(q[1], q[0]);
    EXPECT_EQ(scales[1], scales[0]);
    EXPECT_EQ(sums[1], sums[0]);
    for (size_t i = 0; i < kCols; ++i) {
      const double step = scales[2][i / 32];
      const double both = double{scales[1][i / 32]} * q[1][i] + step * q[2][i];
      // Half a step, and three roundings of the number itself.
      EXPECT_NEAR(both, x[i], 0.51 * step + 2e-7 * std::abs(x[i])) << i;
    }
    for (size_t i = 0; i < kCols / 16; ++i) {
      EXPECT_EQ(sums[2][i], std::accumulate(&q[2][16 * i], &q[2][16 * i] + 16, 0)) << i;
    }
  });
}

// Row-by-row products multiply all residuals, batches only the dominant blocks.
TEST(ResidualProduct, LosesLess) {
  for (const DType dtype : {DType::kQ4_1, DType::kQ8_0}) {
    const RandomMatrix weights(dtype, kRows, kCols, 3);
    Matrix w = weights.view();
    for (const size_t n_tokens : {1, 16, 45}) {
      const std::vector<float> input = Inputs(n_tokens);
      const std::vector<double> exact = Exact(w, input);
      ForEachTarget([&] {
        w.uses_residual = false;
        const double plain = Loss(Multiply(w, input), exact);
        w.uses_residual = true;
        const std::vector<float> out = Multiply(w, input);
        const bool batch = n_tokens > MaxRowTokens(w);
        if (batch && BatchFormFor(w) != BatchForm::kInt8) return;
        EXPECT_GT(plain, 1e-5);
        EXPECT_LT(Loss(out, exact), batch ? plain / 20 : 1e-8) << n_tokens;
        EXPECT_EQ(Multiply(w, input, 3), out);
      });
    }
  }
}

// The dominant blocks of its neighbours in a tile do not change a token's results.
TEST(ResidualProduct, ATokenHasTheSameBitsInAnyBatch) {
  const RandomMatrix weights(DType::kQ4_0, kRows, kCols, 4);
  Matrix w = weights.view();
  w.uses_residual = true;
  std::vector<float> input = Inputs(45);
  ForEachTarget([&] {
    const std::vector<float> out = Multiply(w, input);
    std::vector<float> other = input;
    for (size_t t = 0; t < 45; t += 2) other[t * kCols + 100 + t] = 1000;
    const std::vector<float> among = Multiply(w, other);
    for (size_t t = 1; t < 45; t += 2) {
      for (size_t r = 0; r < kRows; ++r) ASSERT_EQ(among[t * kRows + r], out[t * kRows + r]) << t;
    }
  });
}

// Alone and among other tokens, with one thread and with three: the scratch of an `up` with a
// residual does not overlap the gate's results.
TEST(ResidualProduct, MayBeTheUpOfAGatedLayer) {
  constexpr size_t kHidden = 600;
  const RandomMatrix gates(DType::kQ4_1, kHidden, kCols, 11), ups(DType::kQ4_1, kHidden, kCols, 12);
  GatedLayer layer = {.gate = gates.view(), .up = ups.view()};
  constexpr size_t kTokens = 45;
  const std::vector<float> input = Inputs(kTokens);
  const std::vector<double> up = Exact(layer.up, input);
  ForEachTarget([&] {
    const auto multiply = [&](size_t first, size_t n, int n_threads, bool uses_residual) {
      ThreadPool pool(n_threads);
      Activations x(n, kCols, static_cast<size_t>(n_threads), kCols);
      x.Set(input.data() + first * kCols, n, kCols);
      std::vector<float> out(n * kHidden, NAN);
      layer.up.uses_residual = uses_residual;
      pool.Run([&] { GatedMatMul(pool, layer, x, out.data()); });
      return out;
    };
    for (const size_t n : {1, 9, 16, 45}) {
      const bool batch = n > MaxRowTokens(layer.up);
      if (batch && BatchFormFor(layer.up) != BatchForm::kInt8) continue;
      const std::vector<float> out = multiply(0, n, 1, true);
      EXPECT_EQ(multiply(0, n, 3, true), out);
      // The gate multiplies rounded activations, so its results follow from the results with a
      // plain `up`.
      double plain = 0, with_residual = 0, power = 0;
      const std::vector<float> rounded = multiply(0, n, 1, false);
      layer.up.uses_residual = false;
      const std::vector<float> rounded_up =
          Multiply(layer.up, {input.begin(), input.begin() + static_cast<ptrdiff_t>(n * kCols)});
      for (size_t i = 0; i < out.size(); ++i) {
        if (rounded[i] == 0 || std::abs(rounded_up[i]) < 1) continue;
        const double gate = double{rounded[i]} / double{rounded_up[i]}, exact = gate * up[i];
        plain += (rounded[i] - exact) * (rounded[i] - exact);
        with_residual += (out[i] - exact) * (out[i] - exact);
        power += exact * exact;
      }
      EXPECT_GT(plain, 1e-6 * power) << n;
      EXPECT_LT(with_residual, plain / 20) << n;
      if (batch) continue;
      for (size_t t = 0; t < n; ++t) {
        const std::vector<float> alone = multiply(t, 1, 1, true);
        ASSERT_TRUE(std::equal(alone.begin(), alone.end(), &out[t * kHidden])) << t;
      }
    }
  });
}

// An input without room for residuals is multiplied as by other matrices.
TEST(ResidualProduct, WithoutBuffersIsAnOrdinaryOne) {
  const RandomMatrix weights(DType::kQ8_0, kRows, kCols, 3);
  for (const size_t n_tokens : {1, 16, 45}) {
    const std::vector<float> input = Inputs(n_tokens);
    ForEachTarget([&] {
      Matrix w = weights.view();
      const std::vector<float> expected = Multiply(w, input);
      w.uses_residual = true;
      ThreadPool pool(2);
      Activations x(n_tokens, kCols, 2);
      x.Set(input.data(), n_tokens, kCols);
      std::vector<float> out(n_tokens * kRows, NAN);
      const Product product{w, out.data(), kRows};
      pool.Run([&] {
        MatMul(pool, {&product, 1}, x);
        RefineLargest(pool, product, 1, x);
      });
      EXPECT_EQ(out, expected);
    });
  }
}

TEST(RefineLargest, TakesTheLargestResultsAgain) {
  constexpr size_t kVocabulary = 600;
  const RandomMatrix weights(DType::kQ8_0, kVocabulary, kCols, 6);
  const Matrix w = weights.view();
  for (const size_t n_tokens : {1, 3, 45}) {
    const std::vector<float> input = Inputs(n_tokens);
    const std::vector<double> exact = Exact(w, input);
    const auto of_token = [&](size_t t) {
      return exact.begin() + static_cast<ptrdiff_t>(t * kVocabulary);
    };
    ForEachTarget([&] {
      const std::vector<float> before = Multiply(w, input);
      std::vector<float> first;
      for (const int n_threads : {1, 3}) {
        ThreadPool pool(n_threads);
        Activations x(n_tokens, kCols, static_cast<size_t>(n_threads), kCols);
        x.Set(input.data(), n_tokens, kCols);
        std::vector<float> out = before;
        // The margin covers about a twentieth of a token's results.
        double power = 0;
        for (const double v : exact) power += v * v;
        const float deviation =
            static_cast<float>(std::sqrt(power / static_cast<double>(exact.size())));
        pool.Run([&] { RefineLargest(pool, {w, out.data(), kVocabulary}, 1.5f * deviation, x); });
        for (size_t t = 0; t < n_tokens; ++t) {
          size_t n_changed = 0;
          const size_t best = static_cast<size_t>(
              std::max_element(of_token(t), of_token(t) + kVocabulary) - of_token(t));
          EXPECT_NEAR(out[t * kVocabulary + best], exact[t * kVocabulary + best], 1e-3 * deviation);
          const float largest = before[t * kVocabulary + best];
          for (size_t i = t * kVocabulary; i < (t + 1) * kVocabulary; ++i) {
            if (out[i] == before[i]) continue;
            ++n_changed;
            EXPECT_GT(before[i], largest - 1.6f * deviation);
            EXPECT_NEAR(out[i], exact[i], 1e-3 * deviation);
          }
          EXPECT_GT(n_changed, 0u);
          EXPECT_LE(n_changed, kMaxRefined);
        }
        if (first.empty()) first = out;
        EXPECT_EQ(out, first) << n_threads << " threads";
      }
    });
  }
}

// Equal results could all be candidates; a result that is not a number is not a candidate.
TEST(RefineLargest, LimitsItsWork) {
  constexpr size_t kVocabulary = 3000;
  const std::vector<std::byte> zeros(kVocabulary * gguf::RowBytes(DType::kQ8_0, kCols));
  const Matrix w{DType::kQ8_0, zeros.data(), kVocabulary, kCols};
  const std::vector<float> input = Inputs(1);
  std::vector<float> out(kVocabulary, 2.0f);
  out[1] = NAN;
  ThreadPool pool(1);
  Activations x(1, kCols, 1, kCols);
  x.Set(input.data(), 1, kCols);
  pool.Run([&] { RefineLargest(pool, {w, out.data(), kVocabulary}, 1, x); });
  EXPECT_EQ(std::ranges::count(out, 0.0f), static_cast<ptrdiff_t>(kMaxRefined));
  EXPECT_TRUE(std::isnan(out[1]));
}

}  // namespace
}  // namespace kernels
