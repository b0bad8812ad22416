// Each sampling step against numbers worked out by hand.
#include "engine/sampling/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/engine/sampling/rows_of_logits.h"

namespace engine {
namespace {

using tokenizer::TokenId;

std::vector<TokenId> Ids(Candidates candidates) {
  std::vector<TokenId> ids;
  for (const Candidate& c : candidates.items()) ids.push_back(c.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(TopK, KeepsTheMostLikely) {
  const std::vector<double> p = {0.1, 0.4, 0.2, 0.3};
  RowOfLogits candidates = WithProbabilities(p);
  TopK(candidates, 2);
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{1, 3}));
  candidates = WithProbabilities(p);
  TopK(candidates, 0);
  EXPECT_EQ(candidates.size(), 4u);
  TopK(candidates, 9);
  EXPECT_EQ(candidates.size(), 4u);
}

TEST(TopP, KeepsTheNucleus) {
  const std::vector<double> p = {0.1, 0.4, 0.2, 0.3};
  for (const auto& [top_p, expected] : std::vector<std::pair<float, std::vector<TokenId>>>{
           {0.0f, {1}},         // one stays whatever happens
           {0.39f, {1}},        // 0.4 >= 0.39
           {0.41f, {1, 3}},     // 0.4 < 0.41 <= 0.7
           {0.89f, {1, 2, 3}},  // 0.7 < 0.89 <= 0.9
           {0.95f, {0, 1, 2, 3}},
           {1.0f, {0, 1, 2, 3}}}) {
    RowOfLogits candidates = WithProbabilities(p);
    TopP(candidates, top_p);
    EXPECT_EQ(Ids(candidates), expected) << top_p;
  }
}

// A probability that is exactly p is enough.
TEST(TopP, EndsWhereTheSumIsP) {
  RowOfLogits candidates = WithProbabilities({0.5, 0.5});
  TopP(candidates, 0.5f);
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{0}));
}

// The nucleus is found by sorting less and less likely tokens: in a flat vocabulary every token is
// less likely than the first thresholds.
TEST(TopP, LargeFlatVocabulary) {
  for (const size_t n : {4u, 31u, 33u, 255u, 257u, 9000u}) {
    RowOfLogits candidates =
        WithProbabilities(std::vector<double>(n, 1.0 / static_cast<double>(n)));
    TopP(candidates, 0.5f);
    EXPECT_NEAR(static_cast<double>(candidates.size()), static_cast<double>(n) / 2, 1.0);
    EXPECT_EQ(candidates.items()[0].id, 0);
  }
}

TEST(MinP, ComparesWithTheBest) {
  RowOfLogits candidates = WithProbabilities({0.1, 0.4, 0.21, 0.29});
  MinP(candidates, 0.5f);  // at least 0.2
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{1, 2, 3}));
  MinP(candidates, 7.0f);  // no token is seven times as likely as the best, so the best stays
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{1}));
}

// Surprisals -ln p: 0.69, 1.39, 2.08, 2.08; entropy 1.21. Distances: 0.52, 0.17, 0.87, 0.87.
TEST(Typical, KeepsWhatIsAsSurprisingAsExpected) {
  const std::vector<double> p = {0.5, 0.25, 0.125, 0.125};
  RowOfLogits candidates = WithProbabilities(p);
  Typical(candidates, 0.2f);
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{1}));
  candidates = WithProbabilities(p);
  Typical(candidates, 0.7f);
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{0, 1}));
  candidates = WithProbabilities(p);
  Typical(candidates, 1.0f);
  EXPECT_EQ(candidates.size(), 4u);
}

TEST(Temperature, DividesLogits) {
  RowOfLogits candidates({1, -2});
  Temperature(candidates, 0.5f);
  EXPECT_FLOAT_EQ(candidates[0].logit, 2);
  EXPECT_FLOAT_EQ(candidates[1].logit, -4);
}

TEST(Penalties, ByHand) {
  RowOfLogits candidates({2, -2, 1, 5});
  std::vector<TokenId> recent = {1, 0, 0};
  ApplyPenalties(candidates, recent, {.repeat = 2.0f, .frequency = 0.25f, .presence = 0.5f});
  EXPECT_FLOAT_EQ(candidates[0].logit, 2.0f / 2 - 2 * 0.25f - 0.5f);
  EXPECT_FLOAT_EQ(candidates[1].logit, -2.0f * 2 - 1 * 0.25f - 0.5f);
  EXPECT_FLOAT_EQ(candidates[2].logit, 1);  // not seen lately
  EXPECT_FLOAT_EQ(candidates[3].logit, 5);
}

// Logits 0 0 4: the mean is 4/3, the deviation sqrt(32)/3 = 1.8856.
TEST(TopNSigma, CountsDeviationsBelowTheBest) {
  const auto kept = [](float n) {
    RowOfLogits candidates({0, 4, 0});
    TopNSigma(candidates, n);
    return Ids(candidates);
  };
  EXPECT_EQ(kept(2.12f), (std::vector<TokenId>{1}));        // down to 4 - 3.9975
  EXPECT_EQ(kept(2.13f), (std::vector<TokenId>{0, 1, 2}));  // down to 4 - 4.016
  EXPECT_EQ(kept(0), (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(kept(-1), (std::vector<TokenId>{0, 1, 2}));
  EXPECT_EQ(kept(1e-9f), (std::vector<TokenId>{1}));
}

TEST(Xtc, ExcludesAllTopChoicesButTheLeastLikely) {
  const std::vector<double> p = {0.1, 0.4, 0.2, 0.3};
  const auto kept = [&](float threshold) {
    RowOfLogits candidates = WithProbabilities(p);
    Xtc(candidates, threshold);
    return Ids(candidates);
  };
  EXPECT_EQ(kept(0.15f), (std::vector<TokenId>{0, 2}));
  EXPECT_EQ(kept(0.25f), (std::vector<TokenId>{0, 2, 3}));
  EXPECT_EQ(kept(0.35f), (std::vector<TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(kept(0.0f), (std::vector<TokenId>{0}));
  EXPECT_EQ(kept(0.9f), (std::vector<TokenId>{0, 1, 2, 3}));
}

// What one step sorted does not count as sorted after another has changed it.
TEST(Xtc, LeavesNoWrongOrder) {
  std::vector<double> p = {0.3, 0.25, 0.2};
  for (int i = 0; i < 10; ++i) p.push_back(0.025 + 0.001 * (i < 5 ? -i : i - 4));
  RowOfLogits candidates = WithProbabilities(p);
  Xtc(candidates, 0.1f);
  TopK(candidates, 3);
  EXPECT_EQ(Ids(candidates), (std::vector<TokenId>{2, 11, 12}));
}

TEST(DropAboveSurprisal, DropsWhatIsAboveMu) {
  const std::vector<double> p = {0.5, 0.25, 0.125, 0.125};  // 1, 2, 3, 3 bits
  const auto kept = [&](double mu) {
    RowOfLogits candidates = WithProbabilities(p);
    DropAboveSurprisal(candidates, mu);
    return Ids(candidates);
  };
  EXPECT_EQ(kept(3.01), (std::vector<TokenId>{0, 1, 2, 3}));
  EXPECT_EQ(kept(2.01), (std::vector<TokenId>{0, 1}));
  EXPECT_EQ(kept(1.99), (std::vector<TokenId>{0}));
  EXPECT_EQ(kept(-7), (std::vector<TokenId>{0}));
}

// Two of equal odds are as unsure as two can be; one at 8/9 has the entropy 0.3488 of log 2, a
// share of 0.5033.
TEST(DynamicTemperature, FollowsTheEntropy) {
  const auto ratio = [](std::vector<double> p, float low, float high, float exponent) {
    RowOfLogits candidates = WithProbabilities(p);
    DynamicTemperature(candidates, low, high, exponent);
    return candidates[0].logit / std::log(p[0]);
  };
  EXPECT_NEAR(ratio({0.5, 0.5}, 0.5f, 2.0f, 1), 1 / 2.0, 1e-5);
  constexpr double kShare = 0.503258;
  EXPECT_NEAR(ratio({8.0 / 9, 1.0 / 9}, 0.5f, 2.0f, 1), 1 / (0.5 + 1.5 * kShare), 1e-4);
  EXPECT_NEAR(ratio({8.0 / 9, 1.0 / 9}, 0.5f, 2.0f, 2), 1 / (0.5 + 1.5 * kShare * kShare), 1e-4);
  RowOfLogits alone = WithProbabilities({1.0});
  DynamicTemperature(alone, 0.0f, 0.0f, 1);
  EXPECT_EQ(alone[0].logit, 0);
}

}  // namespace
}  // namespace engine
