// Candidates compared with their definition, as a row and as a list.
#include "engine/sampling/candidates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "engine/sampling/steps.h"
#include "tests/engine/sampling/rows_of_logits.h"

namespace engine {
namespace {

using tokenizer::TokenId;

TEST(Candidates, BestTakesTheLowestIdOfEquals) {
  RowOfLogits candidates({1, 3, 2, 3});
  EXPECT_EQ(candidates.Best().id, 1);
}

// A mask has whole words of 64 bits; bits after the last logit name no token.
TEST(Candidates, MasksEndWithTheLogits) {
  const std::vector<float> logits(70, 1.0f);
  const std::vector<uint64_t> all(2, ~uint64_t{0});
  Candidates candidates;
  for (const size_t n : {3u, 64u, 65u}) {
    candidates.Assign(std::span(logits).first(n), all);
    EXPECT_EQ(candidates.size(), n);
  }
}

TEST(Candidates, ProbabilitiesAreTheSoftmax) {
  RowOfLogits candidates = WithProbabilities({0.1, 0.6, 0.3});
  const std::span<const double> p = candidates.Probabilities();
  EXPECT_NEAR(p[0], 0.1, 1e-6);
  EXPECT_NEAR(p[1], 0.6, 1e-6);
  EXPECT_NEAR(p[2], 0.3, 1e-6);
}

// A changed logit is kept beside the row. If it changes again, also after other logits, the last
// value counts.
TEST(Candidates, ChangesAddUp) {
  RowOfLogits candidates({0, 1, 2, 3, 4, 5, 6, 7});
  const auto add = [&](const std::vector<TokenId>& ids, float amount) {
    candidates.ChangeListed(ids, std::identity(), [&](Candidate& c) { c.logit += amount; });
  };
  add({2, 5}, 10);
  EXPECT_EQ(candidates.Best().id, 5);
  add({0, 2, 2, 7}, 6);
  EXPECT_EQ(candidates.Best().id, 2);
  add({5}, -20);
  add({2}, -18);
  EXPECT_EQ(candidates.Best().id, 7);
  std::vector<float> logits;
  for (const Candidate& c : candidates.items()) logits.push_back(c.logit);
  EXPECT_EQ(logits, (std::vector<float>{6, 1, 0, 3, 4, -5, 6, 13}));
}

TEST(Candidates, LargeLogitsDoNotOverflow) {
  RowOfLogits candidates({3e38f, 3e38f, -3e38f});
  const std::span<const double> p = candidates.Probabilities();
  EXPECT_DOUBLE_EQ(p[0], 0.5);
  EXPECT_DOUBLE_EQ(p[1], 0.5);
  EXPECT_DOUBLE_EQ(p[2], 0.0);
}

// A vocabulary as a row, also with a mask, and the same tokens as a list. Logits have a grid, so
// that some are equal.
TEST(Candidates, RowsAreAsLists) {
  constexpr size_t kTokens = 5000;
  std::mt19937 random(5);
  std::vector<float> logits(kTokens);
  for (float& logit : logits)
    logit =
        static_cast<float>(std::round(std::normal_distribution<double>(0, 3)(random) * 16) / 16);
  std::vector<uint64_t> mask(kTokens / 64 + 1, ~uint64_t{0});
  for (const size_t id : {0, 63, 64, 77, 4000}) mask[id / 64] &= ~(uint64_t{1} << id % 64);
  std::vector<TokenId> recent = {4, 4, 77, 4999, 5000, -1};
  const auto best = static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
  std::vector<TokenId> around_best;
  for (TokenId id = std::max(best - 99, 0); id <= best + 99; ++id) around_best.push_back(id);
  std::vector<std::pair<TokenId, float>> biases = {
      {-3, 1}, {5, 30}, {5, 2}, {77, -INFINITY}, {best, -INFINITY}, {4999, INFINITY}, {5001, 1}};
  std::ranges::sort(biases);
  using Step = std::function<void(Candidates&)>;
  for (const Step& step : std::vector<Step>{
           [](Candidates& c) { TopK(c, 1); }, [](Candidates& c) { TopK(c, 40); },
           [](Candidates& c) { TopK(c, 256); }, [](Candidates& c) { TopK(c, 6000); },
           [](Candidates& c) { TopP(c, 0.9f); }, [](Candidates& c) { TopP(c, 0.999999f); },
           [](Candidates& c) { MinP(c, 0.05f); }, [](Candidates& c) { Typical(c, 0.5f); },
           [](Candidates& c) { TopNSigma(c, 1); }, [](Candidates& c) { Temperature(c, 0.5f); },
           [](Candidates& c) { Xtc(c, 0.01f); },
           [&](Candidates& c) {
             ApplyPenalties(c, recent, {.repeat = 1.5f, .frequency = 0.5f, .presence = 1});
           },
           [&](Candidates& c) {
             c.AddBiases(biases);
             ApplyPenalties(c, recent, {.repeat = 1.5f});  // brings no dropped token back
             EXPECT_EQ(c.Best().id, 5);
             EXPECT_TRUE(std::ranges::none_of(c.items(), [](auto& each) { return each.id == 77; }));
           },
           [&](Candidates& c) {
             ApplyPenalties(c, recent, {.repeat = 1.5f});
             ApplyPenalties(c, around_best, {.presence = 20});
             TopK(c, 100);
           },
           [&](Candidates& c) {
             ApplyPenalties(c, around_best, {.presence = 20});
             MinP(c, 0.01f);
           },
           [&](Candidates& c) {
             c.AddBiases(biases);
             TopNSigma(c, 2);
           },
           [&](Candidates& c) {
             c.AddBiases(biases);
             TopK(c, 40);
           }}) {
    for (const bool is_broken : {false, true}) {
      std::vector<float> values = logits;
      if (is_broken) values[3] = values[4321] = NAN, values[4322] = INFINITY;
      for (const auto& allowed : {std::vector<uint64_t>(), mask}) {
        Candidates row, list;
        row.Assign(values, allowed);
        list.Assign(values, allowed);
        EXPECT_EQ(list.items().size(), row.size());  // a list from now on
        for (Candidates* const c : {&row, &list}) {
          EXPECT_EQ(c->DropBroken(), is_broken);
          step(*c);
          TopP(*c, 0.99f);
        }
        ASSERT_EQ(row.size(), list.size());
        EXPECT_EQ(row.Best().id, list.Best().id);
        for (size_t i = 0; i < row.size(); ++i) {
          ASSERT_EQ(row.items()[i].id, list.items()[i].id) << i;
          ASSERT_EQ(row.items()[i].logit, list.items()[i].logit) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace engine
