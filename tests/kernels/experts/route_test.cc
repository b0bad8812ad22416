// The choice of a token's experts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/experts/experts.h"
#include "tests/kernels/random_weights.h"

namespace kernels {
namespace {

struct Routed {
  std::vector<uint32_t> experts;
  std::vector<float> weights;
};
Routed Choose(std::vector<float> logits, size_t n_used, const Router& router,
              const float* bias = nullptr) {
  Routed routed{std::vector<uint32_t>(n_used), std::vector<float>(n_used)};
  Route(router, logits.data(), logits.size(), bias, n_used, routed.experts.data(),
        routed.weights.data());
  return routed;
}

constexpr Router kNormed{}, kUnnormed{.normed = false};
constexpr Router kKinds[] = {kNormed,
                             kUnnormed,
                             {.gate = Router::Gate::kSigmoid},
                             {.gate = Router::Gate::kSigmoid, .normed = false, .scale = 2.5f}};

// The definition, in double: sorts all experts of the groups that take part.
struct Share {
  uint32_t expert;
  double weight;
};
std::vector<Share> Reference(const std::vector<float>& logits, size_t n_used, const Router& router,
                             const float* bias) {
  const size_t n = logits.size(), size = n / router.n_groups;
  std::vector<double> p(n);
  double sum = 0;
  for (size_t e = 0; e < n; ++e) {
    const double x = logits[e];
    p[e] = router.gate == Router::Gate::kSigmoid ? 1 / (1 + std::exp(-x)) : std::exp(x);
    sum += p[e];
  }
  if (router.gate == Router::Gate::kSoftmax) {
    for (double& share : p) share /= sum;
  }
  const auto score = [&](size_t e) { return p[e] + (bias != nullptr ? double{bias[e]} : 0); };
  const auto group_score = [&](size_t g) {
    std::vector<double> scores;
    for (size_t e = g * size; e < (g + 1) * size; ++e) scores.push_back(score(e));
    std::sort(scores.rbegin(), scores.rend());
    return size == 1 ? scores[0] : scores[0] + scores[1];
  };
  std::vector<size_t> groups(router.n_groups);
  std::iota(groups.begin(), groups.end(), 0);
  std::stable_sort(groups.begin(), groups.end(),
                   [&](size_t a, size_t b) { return group_score(a) > group_score(b); });
  groups.resize(router.n_groups_used);
  std::vector<Share> shares;
  for (uint32_t e = 0; e < n; ++e) {
    if (std::count(groups.begin(), groups.end(), e / size) > 0) shares.push_back({e, p[e]});
  }
  std::stable_sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) {
    return score(a.expert) > score(b.expert);
  });
  shares.resize(n_used);
  double chosen = 0;
  for (const Share& share : shares) chosen += share.weight;
  for (Share& share : shares) {
    if (router.normed) share.weight /= std::max(chosen, 6.103515625e-5);
    share.weight *= double{router.scale};
  }
  return shares;
}

void ExpectReference(const std::vector<float>& logits, size_t n_used, const Router& router,
                     const float* bias) {
  const std::vector<Share> expected = Reference(logits, n_used, router, bias);
  const Routed routed = Choose(logits, n_used, router, bias);
  // A difference of logits up to 20, exp, a sum of n and one of n_used, two quotients, a product.
  const double roundings = 20 + 1 + static_cast<double>(logits.size() + n_used) + 3;
  for (size_t i = 0; i < n_used; ++i) {
    ASSERT_EQ(routed.experts[i], expected[i].expert) << i;
    ASSERT_NEAR(routed.weights[i], expected[i].weight, kEps * roundings * expected[i].weight);
  }
}

TEST(Route, TakesTheLargestInOrder) {
  const std::vector<float> logits = {0.5f, -1.0f, 3.0f, 0.25f, 2.0f};
  EXPECT_EQ(Choose(logits, 1, kNormed).experts, (std::vector<uint32_t>{2}));
  EXPECT_EQ(Choose(logits, 3, kNormed).experts, (std::vector<uint32_t>{2, 4, 0}));
  EXPECT_EQ(Choose(logits, 5, kUnnormed).experts, (std::vector<uint32_t>{2, 4, 0, 3, 1}));
}

TEST(Route, TakesTheLowerIndexOfEqualOnes) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.0f, 2.0f, 2.0f, 1.0f};
  EXPECT_EQ(Choose(logits, 4, kNormed).experts, (std::vector<uint32_t>{1, 3, 4, 0}));
}

TEST(Route, WeighsBySoftmax) {
  for (const size_t n_experts : {1, 8, 128}) {
    const std::vector<float> logits = NormalFloats(n_experts, 1);
    const size_t n_used = std::min<size_t>(n_experts, 8);
    for (const Router& kind : {kNormed, kUnnormed}) {
      const Routed routed = Choose(logits, n_used, kind);
      double sum = 0;
      if (!kind.normed) {
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
  const Routed routed = Choose({1000.0f, -1000.0f, 999.0f}, 2, kUnnormed);
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
      for (Router kind : kKinds) {
        for (const std::vector<float>& bias : all) {
          for (kind.n_groups = 1; kind.n_groups <= 4; kind.n_groups *= 2) {
            // The groups may have fewer experts than requested.
            for (kind.n_groups_used = 1; kind.n_groups_used <= kind.n_groups;
                 ++kind.n_groups_used) {
              for (const float* const b : {static_cast<const float*>(nullptr), bias.data()}) {
                const Routed routed = Choose(logits, n_used, kind, b);
                const std::set<uint32_t> different(routed.experts.begin(), routed.experts.end());
                ASSERT_EQ(different.size(), n_used);
                for (const uint32_t e : routed.experts) ASSERT_LT(e, 4u);
              }
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(Choose(all[1], 3, kNormed).experts, (std::vector<uint32_t>{3, 1, 0}));
}

// All orders of 6 logits in every shape of groups, with and without a bias.
TEST(Route, IsTheDefinition) {
  std::vector<size_t> order(6);
  std::iota(order.begin(), order.end(), 0);
  const std::vector<float> values = {-9.0f, -3.1f, -0.7f, 0.4f, 1.1f, 6.0f};
  const std::vector<float> bias = {0.3f, -0.2f, 0.05f, 0.0f, -0.4f, 0.11f};
  do {
    std::vector<float> logits;
    for (const size_t i : order) logits.push_back(values[i]);
    for (Router router : kKinds) {
      for (const size_t n_groups : {1, 2, 3, 6}) {
        router.n_groups = n_groups;
        for (const size_t used : {size_t{1}, (n_groups + 1) / 2, n_groups}) {
          router.n_groups_used = used;
          const size_t n_used = std::min<size_t>(3, used * 6 / n_groups);
          ASSERT_NO_FATAL_FAILURE(ExpectReference(logits, n_used, router, nullptr));
          ASSERT_NO_FATAL_FAILURE(ExpectReference(logits, n_used, router, bias.data()));
        }
      }
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// The sizes of DeepSeek-V3, and the largest number of experts.
TEST(Route, IsTheDefinitionForManyExperts) {
  const Router router{
      .gate = Router::Gate::kSigmoid, .scale = 2.5f, .n_groups = 8, .n_groups_used = 4};
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<float> logits = NormalFloats(256, seed), bias = NormalFloats(256, seed + 100);
    ASSERT_NO_FATAL_FAILURE(ExpectReference(logits, 8, router, bias.data()));
    ASSERT_NO_FATAL_FAILURE(ExpectReference(logits, 8, router, nullptr));
  }
  const std::vector<float> logits = NormalFloats(1 << 16, 1), bias = NormalFloats(1 << 16, 2);
  Router most = router;
  most.n_groups = most.n_groups_used = kMaxExpertGroups;
  ASSERT_NO_FATAL_FAILURE(ExpectReference(logits, 8, most, bias.data()));
}

TEST(Route, DividesByNoLessThanTheLeastSum) {
  const Router router{.gate = Router::Gate::kSigmoid};
  ASSERT_NO_FATAL_FAILURE(ExpectReference({-12.0f, -15.0f, -19.0f}, 2, router, nullptr));
  const Routed routed = Choose({-1000.0f, -1000.0f, -1000.0f}, 2, router);
  EXPECT_EQ(routed.weights, (std::vector<float>{0.0f, 0.0f}));
}

TEST(Route, TakesTheBiasForTheChoiceAlone) {
  const std::vector<float> bias = {0.0f, 0.0f, 10.0f};
  const Routed routed = Choose({3.0f, 0.0f, -3.0f}, 1,
                               {.gate = Router::Gate::kSigmoid, .normed = false}, bias.data());
  EXPECT_EQ(routed.experts, (std::vector<uint32_t>{2}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(3.0)), kEps);
}

// Logits that differ although their p are equal.
TEST(Route, TellsLargeLogitsApart) {
  const Routed routed = Choose({30.0f, 40.0f, 35.0f}, 2, {.gate = Router::Gate::kSigmoid});
  EXPECT_EQ(routed.experts, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(routed.weights, (std::vector<float>{0.5f, 0.5f}));
}

// Logits 2 and 1.97 are near each other, 1 is not near them, and no other remaining logit is near
// 1.
TEST(Route, TakesExpertsOneByOne) {
  const Router router{.gate = Router::Gate::kSparseMixer, .normed = false};
  const Routed routed = Choose({1.0f, 2.0f, -3.0f, 1.97f}, 3, router);
  EXPECT_EQ(routed.experts, (std::vector<uint32_t>{1, 3, 0}));
  EXPECT_NEAR(routed.weights[0], 1 / (1 + std::exp(-0.03)), kEps);
  EXPECT_EQ(routed.weights[1], 1);
  EXPECT_EQ(routed.weights[2], 1);
}

}  // namespace
}  // namespace kernels
