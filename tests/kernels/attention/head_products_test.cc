// Products of heads: sums in double for floats, and for every type the bits that each head gets
// from MatMul, which has an oracle of its own (matmul_test.cc, gemm_test.cc).
#include "kernels/attention/head_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernels/each_target.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

struct Shape {
  DType dtype;
  size_t n_heads, rows, cols;
};

// Heads of a latent attention's queries and values; rows that fill neither a grain nor a panel.
constexpr Shape kShapes[] = {
    {DType::kF32, 3, 37, 29},   {DType::kF16, 4, 70, 33},    {DType::kBF16, 2, 33, 96},
    {DType::kQ8_0, 5, 64, 128}, {DType::kQ4_0, 16, 19, 160}, {DType::kQ4_K, 2, 128, 512},
    {DType::kQ6_K, 1, 40, 256},
};
constexpr size_t kTokens[] = {1, 2, 7, 16, 17, 40, 193};

struct Heads {
  Heads(const Shape& s, size_t tokens)
      : shape(s),
        n_tokens(tokens),
        weights(s.dtype, s.n_heads * s.rows, s.cols, 1),
        scales(NormalFloats(s.n_heads, 2)),
        bias(NormalFloats(s.n_heads * s.rows, 3)),
        x(NormalFloats(tokens * x_token_stride(), 4)) {}

  // Vectors have gaps between them, like the part of a query that RoPE rotates.
  size_t x_head_stride() const { return shape.cols + 5; }
  size_t x_token_stride() const { return shape.n_heads * x_head_stride() + 3; }
  size_t out_head_stride() const { return shape.rows + 7; }
  size_t out_token_stride() const { return shape.n_heads * out_head_stride() + 1; }
  const float* input(size_t t, size_t h) const {
    return x.data() + t * x_token_stride() + h * x_head_stride();
  }
  size_t output(size_t t, size_t h) const { return t * out_token_stride() + h * out_head_stride(); }

  ExpertStack stack(bool with_factors) const {
    Matrix first = weights.view();
    first.rows = shape.rows;
    first.scale = 0.5f;
    if (!with_factors) return {first, shape.n_heads};
    return {first, shape.n_heads, scales.data(), bias.data()};
  }

  std::vector<float> Run(bool with_factors, size_t first, size_t n, int threads) const {
    ThreadPool pool(threads);
    HeadScratch scratch(n_tokens, shape.cols, pool.size());
    std::vector<float> out(n * out_token_stride(), kNothing);
    pool.Run([&] {
      HeadProducts(pool, stack(with_factors), {input(first, 0), x_head_stride(), x_token_stride()},
                   n, {out.data(), out_head_stride(), out_token_stride()}, scratch);
    });
    return out;
  }

  static constexpr float kNothing = 12345;  // must not be written
  Shape shape;
  size_t n_tokens;
  RandomMatrix weights;
  std::vector<float> scales, bias, x;
};

// The products by MatMul, head after head.
std::vector<float> EachByMatMul(const Heads& heads, bool with_factors) {
  const Shape& s = heads.shape;
  ThreadPool pool(1);
  std::vector<float> out(heads.n_tokens * heads.out_token_stride(), Heads::kNothing);
  for (size_t h = 0; h < s.n_heads; ++h) {
    std::vector<float> x;
    for (size_t t = 0; t < heads.n_tokens; ++t) {
      x.insert(x.end(), heads.input(t, h), heads.input(t, h) + s.cols);
    }
    Activations input(heads.n_tokens, s.cols);
    input.Set(x.data(), heads.n_tokens, s.cols);
    const ExpertStack stack = heads.stack(with_factors);
    const Product product{stack.expert(h), out.data() + heads.output(0, h),
                          heads.out_token_stride(), stack.expert_bias(h)};
    MatMul(pool, {&product, 1}, input);
  }
  return out;
}

TEST(HeadProducts, AreThoseOfEachHead) {
  for (const Shape& shape : kShapes) {
    for (const size_t n_tokens : kTokens) {
      const Heads heads(shape, n_tokens);
      ForEachTarget([&] {
        for (const bool with_factors : {false, true}) {
          const std::vector<float> expected = EachByMatMul(heads, with_factors);
          for (const int threads : {1, 3}) {
            ASSERT_EQ(heads.Run(with_factors, 0, n_tokens, threads), expected)
                << gguf::Info(shape.dtype).name << ", " << n_tokens << " tokens, " << threads
                << " threads";
          }
        }
      });
    }
  }
}

TEST(HeadProducts, AreTheDefinition) {
  const Shape& shape = kShapes[0];
  for (const size_t n_tokens : kTokens) {
    const Heads heads(shape, n_tokens);
    ForEachTarget([&] {
      const std::vector<float> out = heads.Run(true, 0, n_tokens, 1);
      for (size_t t = 0; t < n_tokens; ++t) {
        for (size_t h = 0; h < shape.n_heads; ++h) {
          for (size_t r = 0; r < shape.rows; ++r) {
            const auto* row =
                reinterpret_cast<const float*>(heads.weights.view().row(h * shape.rows + r));
            double sum = 0, magnitude = 0;
            for (size_t c = 0; c < shape.cols; ++c) {
              const double term = double{row[c]} * double{heads.input(t, h)[c]};
              sum += term;
              magnitude += std::abs(term);
            }
            const double scale = heads.scales[h], bias = heads.bias[h * shape.rows + r];
            magnitude = magnitude * std::abs(scale) + std::abs(bias);
            // Sums of cols products, a product and a sum.
            const double roundings = static_cast<double>(shape.cols) + 3;
            ASSERT_NEAR(out[heads.output(t, h) + r], sum * scale + bias,
                        std::numeric_limits<float>::epsilon() / 2 * roundings * magnitude);
          }
        }
      }
    });
  }
}

TEST(HeadProducts, GiveATokenTheSameBitsInAFewAsAlone) {
  for (const Shape& shape : kShapes) {
    const Heads heads(shape, 16);
    ForEachTarget([&] {
      const std::vector<float> all = heads.Run(true, 0, 16, 2);
      for (size_t t = 0; t < 16; ++t) {
        const std::vector<float> alone = heads.Run(true, t, 1, 1);
        for (size_t i = 0; i < alone.size(); ++i) {
          ASSERT_EQ(alone[i], all[t * heads.out_token_stride() + i]);
        }
      }
    });
  }
}

}  // namespace
}  // namespace kernels
