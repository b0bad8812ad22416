// Which experts a token goes to.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include "kernels/experts.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

constexpr double kEps = std::numeric_limits<float>::epsilon();

struct Routed {
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};
Routed Choose(const std::vector<float>& logits, size_t n_used, ExpertWeights kind) {
  Routed routed{std::vector<uint32_t>(n_used), std::vector<float>(n_used)};
  Route(logits.data(), logits.size(), n_used, kind, routed.experts.data(), routed.weights.data());
  return routed;
}

TEST(Route, TakesTheLargestInOrder) {
  const std::vector<float> logits = {0.5f, -1.0f, 3.0f, 0.25f, 2.0f};
  EXPECT_EQ(Choose(logits, 1, ExpertWeights::kNormed).experts, (std::vector<uint32_t>{2}));
  EXPECT_EQ(Choose(logits, 3, ExpertWeights::kNormed).experts, (std::vector<uint32_t>{2, 4, 0}));
  EXPECT_EQ(Choose(logits, 5, ExpertWeights::kPlain).experts,
            (std::vector<uint32_t>{2, 4, 0, 3, 1}));
}

TEST(Route, TakesTheLowerIndexOfEqualOnes) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.0f, 2.0f, 2.0f, 1.0f};
  EXPECT_EQ(Choose(logits, 4, ExpertWeights::kNormed).experts, (std::vector<uint32_t>{1, 3, 4, 0}));
}

TEST(Route, WeighsBySoftmax) {
  for (const size_t n_experts : {1, 8, 128}) {
    const std::vector<float> logits = NormalFloats(n_experts, 1);
    const size_t n_used = std::min<size_t>(n_experts, 8);
    for (const ExpertWeights kind : {ExpertWeights::kNormed, ExpertWeights::kPlain}) {
      const Routed routed = Choose(logits, n_used, kind);
      double sum = 0;
      if (kind == ExpertWeights::kPlain) {
        for (const float logit : logits) sum += std::exp(double{logit});
      } else {
        for (const uint32_t e : routed.experts) sum += std::exp(double{logits[e]});
      }
      for (size_t i = 0; i < n_used; ++i) {
        const double expected = std::exp(double{logits[routed.experts[i]]}) / sum;
        // A difference of logits of at most 8, exp, a sum of n, a quotient.
        const double roundings = 8 + 1 + static_cast<double>(n_experts) + 1;
        EXPECT_NEAR(routed.weights[i], expected, kEps * roundings * expected);
      }
    }
  }
}

TEST(Route, DoesNotOverflow) {
  const Routed routed = Choose({1000.0f, -1000.0f, 999.0f}, 2, ExpertWeights::kPlain);
  EXPECT_EQ(routed.experts, (std::vector<uint32_t>{0, 2}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(-1.0)), 4 * kEps);
}

TEST(Route, ChoosesDifferentExpertsWhateverTheLogits) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<std::vector<float>> all = {{NAN, NAN, NAN, NAN},
                                               {NAN, 1.0f, NAN, 2.0f},
                                               {-kInf, NAN, -kInf, -kInf},
                                               {kInf, kInf, 0.0f, NAN}};
  for (const std::vector<float>& logits : all) {
    for (size_t n_used = 1; n_used <= 4; ++n_used) {
      for (const ExpertWeights kind : {ExpertWeights::kNormed, ExpertWeights::kPlain}) {
        const Routed routed = Choose(logits, n_used, kind);
        const std::set<uint32_t> different(routed.experts.begin(), routed.experts.end());
        EXPECT_EQ(different.size(), n_used);
        for (const uint32_t e : routed.experts) EXPECT_LT(e, 4u);
      }
    }
  }
  EXPECT_EQ(Choose(all[1], 3, ExpertWeights::kNormed).experts, (std::vector<uint32_t>{3, 1, 0}));
}

}  // namespace
}  // namespace kernels
