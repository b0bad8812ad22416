// Layers of experts against sums in double.
#include "kernels/experts/experts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "kernels/half.h"
#include "kernels/matmul/registry.h"
#include "kernels/ops/rounding.h"
#include "tests/kernels/each_target.h"
#include "tests/kernels/matmul/product_reference.h"
#include "tests/kernels/ops/activation_reference.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

using gguf::DType;

struct Stack {
  Stack(DType dtype, size_t n, size_t rows, size_t cols, bool with_factors, unsigned seed)
      : n_experts(n),
        weights(dtype, n * rows, cols, seed),
        scales(NormalFloats(n, seed + 1)),
        bias(NormalFloats(n * rows, seed + 2)),
        has_factors(with_factors) {
    weights_of.resize(n * rows * cols);
    for (size_t r = 0; r < n * rows; ++r) {
      DequantizeRow(dtype, weights.view().row(r), cols, weights_of.data() + r * cols);
    }
  }
  ExpertStack view() const {
    Matrix first = weights.view();
    first.rows /= n_experts;
    if (!has_factors) return {first, n_experts};
    return {first, n_experts, scales.data(), bias.data()};
  }

  size_t n_experts;
  RandomMatrix weights;
  std::vector<float> weights_of;  // as floats
  std::vector<float> scales, bias;
  bool has_factors;
};

struct Types {
  std::string name;
  DType gate, up, down;
  size_t n_embd, n_ff;
};

struct Layer {
  Layer(const Types& t, size_t n_experts, bool with_factors, Activation a)
      : gate(t.gate, n_experts, t.n_ff, t.n_embd, with_factors, 1),
        up(t.up, n_experts, t.n_ff, t.n_embd, with_factors, 11),
        down(t.down, n_experts, t.n_embd, t.n_ff, with_factors, 21),
        activation(a) {}
  ExpertLayer view() const {
    return {has_gate ? gate.view() : ExpertStack{}, up.view(), down.view(), activation};
  }
  size_t n_experts() const { return up.n_experts; }
  size_t n_embd() const { return up.view().first.cols; }
  size_t n_ff() const { return up.view().first.rows; }

  Stack gate, up, down;
  Activation activation;
  bool has_gate = true;
};

// The input of a product as the kernels read it, rounded to the form of the batch.
struct Seen {
  std::vector<float> x;
  BatchForm form;
  // The largest step of the rounding. An input that differs in the last bits may be off by one.
  double step = 0;
};

Seen SeenAs(BatchForm form, std::vector<float> input) {
  Seen seen{std::move(input), form};
  const size_t n = seen.x.size();
  if (form == BatchForm::kInt8) {
    std::vector<int8_t> q(n);
    std::vector<float> scales(n / 32);
    std::vector<int16_t> sums(n / 16);
    RoundActivations(seen.x.data(), n, q.data(), scales.data(), sums.data());
    for (size_t i = 0; i < n; ++i) {
      seen.x[i] = scales[i / 32] * static_cast<float>(q[i]);
      seen.step = std::max(seen.step, double{scales[i / 32]});
    }
  }
  if (form == BatchForm::kBf16) {
    for (float& v : seen.x) {
      seen.step = std::max(seen.step, std::abs(double{v}) / 128);
      v = Bf16ToF32(F32ToBf16(v));
    }
  }
  return seen;
}

// Tokens and where they go.
struct Batch {
  Batch(const Layer& layer, size_t tokens, size_t used, unsigned seed)
      : n_tokens(tokens), n_used(used), x(NormalFloats(tokens * layer.n_embd(), seed)) {
    for (float& v : x) v *= 0.2f;
    for (size_t t = 0; t < tokens; ++t) {
      std::vector<float> logits =
          NormalFloats(layer.n_experts(), seed + static_cast<unsigned>(t) + 1);
      experts.resize((t + 1) * used);
      weights.resize((t + 1) * used);
      Route({}, logits.data(), layer.n_experts(), nullptr, used, &experts[t * used],
            &weights[t * used]);
    }
  }
  size_t NumSlots(uint32_t e) const {
    return static_cast<size_t>(std::count(experts.begin(), experts.end(), e));
  }

  size_t n_tokens, n_used;
  std::vector<float> x;
  std::vector<uint32_t> experts;
  std::vector<float> weights;
  // The reference's results for a slot's expert, by the forms in which gate, up and down read their
  // input. Most targets have the same forms, and the reference takes longer than all targets.
  using Forms = std::array<BatchForm, 3>;
  mutable std::map<std::pair<size_t, Forms>, std::vector<Expected>> expected;
};

std::vector<float> RunExperts(const Layer& layer, const Batch& batch, int threads,
                              ExpertScratch& scratch) {
  ThreadPool pool(threads);
  std::vector<float> out(batch.n_tokens * layer.n_embd(), NAN);
  pool.Run([&] {
    Experts(pool, layer.view(), batch.x.data(), batch.n_tokens, batch.experts.data(),
            batch.weights.data(), batch.n_used, scratch, out.data());
  });
  return out;
}

ExpertScratch ScratchFor(const Layer& layer, const Batch& batch, size_t threads) {
  return ExpertScratch(batch.n_tokens, layer.n_experts(), batch.n_used, layer.n_embd(),
                       layer.n_ff(), threads);
}

// Row `row` of expert e times x, whose number i is off by errors[i]. The product itself, and BF16
// weights, are rounded as in gemm_test.cc.
Expected Dot(const Stack& stack, size_t e, size_t row, const Seen& x,
             const std::vector<double>& errors) {
  const size_t rows = stack.view().first.rows, cols = x.x.size();
  const float* const w = stack.weights_of.data() + (e * rows + row) * cols;
  const bool bf16 = x.form == BatchForm::kBf16;
  double sum = 0, magnitude = 0, error = 0, largest = 0, largest_term = 0;
  for (size_t i = 0; i < cols; ++i) {
    const double term = double{bf16 ? Bf16ToF32(F32ToBf16(w[i])) : w[i]} * double{x.x[i]};
    sum += term;
    magnitude += std::abs(term);
    largest = std::max(largest, std::abs(double{w[i]}));
    largest_term = std::max(largest_term, std::abs(term));
    if (!errors.empty()) error += std::abs(double{w[i]}) * errors[i];
  }
  if (!errors.empty()) error += 2 * x.step * largest;
  const bool quantized = gguf::Info(stack.view().first.dtype).block_size > 1;
  const double n = static_cast<double>(cols);
  error += kEps / 2 * (quantized && !bf16 ? 6 * n / 32 * 16 : n + 1) * magnitude;
  if (quantized && bf16) error += 4 * largest_term / 128;
  if (!stack.has_factors) return {sum, error};
  const double scale = double{stack.scales[e]}, bias = double{stack.bias[e * rows + row]};
  const double value = sum * scale + bias;
  return {value, error * std::abs(scale) + kEps * (std::abs(sum * scale) + std::abs(bias))};
}

// The output of an expert for x: the rows of down.
std::vector<Expected> Expert(const Layer& layer, size_t e, const std::vector<float>& x,
                             const Batch::Forms& forms) {
  const Seen gate_x = SeenAs(forms[0], x), up_x = SeenAs(forms[1], x);
  std::vector<float> hidden;
  std::vector<double> errors;
  for (size_t r = 0; r < layer.n_ff(); ++r) {
    const Expected u = Dot(layer.up, e, r, up_x, {});
    const Expected g = layer.has_gate ? Dot(layer.gate, e, r, gate_x, {}) : u;
    const GatedExpected h = ExpectGated(layer.activation, g.value, u.value);
    hidden.push_back(static_cast<float>(h.value));
    // The slope of activations without squares is below 1.2, and their value at most the gate
    // and ln 2, or 1.
    const double slope = 1.2 * (std::abs(u.value) + 1),
                 max_gate = std::max(std::abs(g.value) + 0.7, 1.0);
    const double of_square = (2 * std::abs(g.value) + g.tolerance) * g.tolerance;
    double error = slope * g.tolerance + max_gate * u.tolerance;
    if (layer.activation == Activation::kReluSquared) error = of_square;
    if (layer.activation == Activation::kGatedReluSquared) {
      error = of_square * (std::abs(u.value) + u.tolerance) + g.value * g.value * u.tolerance;
    }
    errors.push_back(error + h.tolerance);
  }
  const Seen down_x = SeenAs(forms[2], hidden);
  std::vector<Expected> out;
  for (size_t r = 0; r < layer.n_embd(); ++r) out.push_back(Dot(layer.down, e, r, down_x, errors));
  return out;
}

void ExpectEqual(const Layer& layer, const Batch& batch, const std::vector<float>& out) {
  for (size_t t = 0; t < batch.n_tokens; ++t) {
    const auto x = batch.x.begin() + static_cast<ptrdiff_t>(t * layer.n_embd());
    const std::vector<float> token(x, x + static_cast<ptrdiff_t>(layer.n_embd()));
    std::vector<Expected> sums(layer.n_embd(), {0, 0});
    for (size_t i = t * batch.n_used; i < (t + 1) * batch.n_used; ++i) {
      const uint32_t e = batch.experts[i];
      const bool one_form = !layer.has_gate || BatchFormFor(layer.gate.view().first.dtype) ==
                                                   BatchFormFor(layer.up.view().first.dtype);
      const bool by_panels = one_form && batch.n_tokens > kMaxInvariantTokens &&
                             batch.NumSlots(e) > kDefaultMaxRowTokens;
      const auto form = [&](const Stack& stack) {
        const DType dtype = stack.view().first.dtype;
        if (by_panels) return BatchFormFor(dtype);
        return UsesInt8(dtype) ? BatchForm::kInt8 : BatchForm::kFloats;
      };
      const Batch::Forms forms = {form(layer.gate), form(layer.up), form(layer.down)};
      std::vector<Expected>& results = batch.expected[{i, forms}];
      if (results.empty()) results = Expert(layer, e, token, forms);
      const double weight = double{batch.weights[i]};
      for (size_t r = 0; r < sums.size(); ++r) {
        const double value = weight * results[r].value;
        sums[r].value += value;
        sums[r].tolerance += std::abs(weight) * results[r].tolerance +
                             kEps * static_cast<double>(batch.n_used) * std::abs(value);
      }
    }
    for (size_t r = 0; r < sums.size(); ++r) {
      ASSERT_NEAR(out[t * layer.n_embd() + r], sums[r].value, sums[r].tolerance + 1e-30)
          << "row " << r << ", token " << t << " of " << batch.n_tokens;
    }
  }
}

class ExpertsOf : public testing::TestWithParam<Types> {};

// From one token to a large batch, in which some experts use panels.
TEST_P(ExpertsOf, EqualTheReference) {
  for (const Activation activation : kActivations) {
    const Layer layer(GetParam(), 5, activation != Activation::kGelu, activation);
    for (const size_t n_tokens : {1, 2, 8, 16, 17, 40}) {
      const Batch batch(layer, n_tokens, 2, static_cast<unsigned>(n_tokens));
      ForEachTarget([&] {
        ExpertScratch scratch = ScratchFor(layer, batch, 1);
        ExpectEqual(layer, batch, RunExperts(layer, batch, 1, scratch));
      });
    }
  }
}

TEST_P(ExpertsOf, EqualTheReferenceWithoutAGate) {
  Layer layer(GetParam(), 5, true, Activation::kReluSquared);
  layer.has_gate = false;
  for (const size_t n_tokens : {1, 16, 17, 40}) {
    const Batch batch(layer, n_tokens, 2, static_cast<unsigned>(n_tokens));
    ForEachTarget([&] {
      ExpertScratch scratch = ScratchFor(layer, batch, 3);
      const std::vector<float> out = RunExperts(layer, batch, 1, scratch);
      ExpectEqual(layer, batch, out);
      EXPECT_EQ(RunExperts(layer, batch, 3, scratch), out);
    });
  }
}

TEST_P(ExpertsOf, TakeAllTokensOnOneExpert) {
  const Layer layer(GetParam(), 3, true, Activation::kSilu);
  for (const size_t n_tokens : {3, 19}) {
    Batch batch(layer, n_tokens, 1, 5);
    std::fill(batch.experts.begin(), batch.experts.end(), 2u);
    ForEachTarget([&] {
      ExpertScratch scratch = ScratchFor(layer, batch, 1);
      ExpectEqual(layer, batch, RunExperts(layer, batch, 1, scratch));
    });
  }
}

TEST_P(ExpertsOf, GiveTheSameBitsWithAnyNumberOfThreads) {
  const Layer layer(GetParam(), 4, true, Activation::kSwigluOai);
  for (const size_t n_tokens : {1, 5, 40}) {
    const Batch batch(layer, n_tokens, 3, 7);
    ForEachTarget([&] {
      ExpertScratch scratch = ScratchFor(layer, batch, 3);
      const std::vector<float> expected = RunExperts(layer, batch, 1, scratch);
      for (const int threads : {2, 3}) {
        ASSERT_EQ(RunExperts(layer, batch, threads, scratch), expected) << threads << " threads";
      }
    });
  }
}

void ExpectTheBitsOfTokensAlone(const Layer& layer) {
  const Batch batch(layer, kMaxInvariantTokens, 2, 9);
  ForEachTarget([&] {
    ExpertScratch scratch = ScratchFor(layer, batch, 1);
    const std::vector<float> expected = RunExperts(layer, batch, 1, scratch);
    for (size_t t = 0; t < batch.n_tokens; ++t) {
      Batch alone = batch;
      alone.n_tokens = 1;
      alone.x.erase(alone.x.begin(), alone.x.begin() + static_cast<ptrdiff_t>(t * layer.n_embd()));
      alone.experts = {batch.experts[2 * t], batch.experts[2 * t + 1]};
      alone.weights = {batch.weights[2 * t], batch.weights[2 * t + 1]};
      const std::vector<float> out = RunExperts(layer, alone, 1, scratch);
      for (size_t r = 0; r < layer.n_embd(); ++r) {
        ASSERT_EQ(out[r], expected[t * layer.n_embd() + r]) << "row " << r << ", token " << t;
      }
    }
  });
}

TEST_P(ExpertsOf, GiveTokensOfSmallBatchesTheBitsThatTheyHaveAlone) {
  Layer gated(GetParam(), 4, true, Activation::kGelu);
  ExpectTheBitsOfTokensAlone(gated);
  Layer alone(GetParam(), 4, true, Activation::kReluSquared);
  alone.has_gate = false;
  ExpectTheBitsOfTokensAlone(alone);
}

INSTANTIATE_TEST_SUITE_P(
    Types, ExpertsOf,
    testing::Values(Types{"F32", DType::kF32, DType::kF32, DType::kF32, 37, 51},
                    Types{"BF16", DType::kBF16, DType::kBF16, DType::kBF16, 70, 33},
                    Types{"Q4_0", DType::kQ4_0, DType::kQ4_0, DType::kQ4_0, 96, 160},
                    Types{"MXFP4", DType::kMXFP4, DType::kMXFP4, DType::kMXFP4, 160, 96},
                    Types{"Q4_K", DType::kQ4_K, DType::kQ4_K, DType::kQ4_K, 256, 256},
                    Types{"Mixed", DType::kQ4_K, DType::kQ6_K, DType::kQ5_0, 256, 288},
                    Types{"Forms", DType::kQ8_0, DType::kBF16, DType::kF32, 64, 45}),
    [](const auto& test) { return test.param.name; });

// A batch does not affect the next one.
TEST(Experts, UseTheirScratchAgain) {
  const Types types{"", DType::kQ4_0, DType::kQ4_0, DType::kQ4_0, 64, 64};
  const Layer layer(types, 6, false, Activation::kSilu);
  const Batch large(layer, 50, 2, 1), small(layer, 20, 2, 2);
  ExpertScratch used = ScratchFor(layer, large, 1), fresh = ScratchFor(layer, small, 1);
  RunExperts(layer, large, 1, used);
  EXPECT_EQ(RunExperts(layer, small, 1, used), RunExperts(layer, small, 1, fresh));
}

}  // namespace
}  // namespace kernels
