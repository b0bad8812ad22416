// DRY, compared with a literal implementation of its definition.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "engine/sampling/dry_penalty.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// For each place after a repetition of the text's end, its length in tokens, found one by one.
std::map<TokenId, size_t> LongestByDefinition(const std::vector<TokenId>& text,
                                              const std::set<TokenId>& breakers) {
  std::map<TokenId, size_t> longest;
  const size_t n = text.size();
  for (size_t x = 1; x < n; ++x) {
    if (breakers.contains(text[x])) continue;
    size_t m = 0;
    while (m < x && text[x - 1 - m] == text[n - 1 - m] && !breakers.contains(text[x - 1 - m])) ++m;
    if (m > 0) longest[text[x]] = std::max(longest[text[x]], m);
  }
  return longest;
}

std::vector<float> Logits(const std::vector<TokenId>& text, const pronk::Dry& options,
                          const std::vector<TokenId>& breakers, size_t n) {
  const std::vector<float> row(n, 0.0f);
  Candidates candidates;
  candidates.Assign(row);
  DryPenalty dry;
  dry.Apply(candidates, text, options, breakers);
  std::vector<float> logits;
  for (const Candidate& c : candidates.items()) logits.push_back(c.logit);
  return logits;
}

TEST(Dry, IsItsDefinition) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    constexpr TokenId kTokens = 4;  // few, so that much repeats
    std::vector<TokenId> text(random() % 60);
    for (TokenId& id : text) id = static_cast<TokenId>(random() % kTokens);
    const pronk::Dry options = {.multiplier = 0.8f,
                                .allowed_length = static_cast<int>(random() % 4),
                                .last_n = round % 3 == 0 ? static_cast<int>(random() % 30) : -1};
    std::vector<TokenId> breakers;
    if (round % 2 == 0) breakers = {static_cast<TokenId>(random() % kTokens)};
    const size_t n = options.last_n < 0 ? text.size() : static_cast<size_t>(options.last_n.value);
    const std::vector<TokenId> seen(text.end() - static_cast<ptrdiff_t>(std::min(n, text.size())),
                                    text.end());
    const auto longest = LongestByDefinition(seen, {breakers.begin(), breakers.end()});
    const std::vector<float> logits = Logits(text, options, breakers, kTokens);
    for (TokenId id = 0; id < kTokens; ++id) {
      const auto found = longest.find(id);
      const int excess =
          found == longest.end() ? -1 : static_cast<int>(found->second) - options.allowed_length;
      // One rounding of the product to float.
      const double expected =
          excess < 0 ? 0 : -static_cast<double>(options.multiplier.value) * std::pow(1.75, excess);
      EXPECT_NEAR(logits[static_cast<size_t>(id)], expected, 1e-7 * std::abs(expected)) << round;
    }
  }
}

TEST(Dry, ByHand) {
  pronk::Dry options = {.multiplier = 1};
  // The end 1 2 3 precedes 4, and 2 3 alone precedes 5.
  const std::vector<TokenId> text = {1, 2, 3, 4, 0, 2, 3, 5, 1, 2, 3};
  EXPECT_EQ(Logits(text, options, {}, 6), (std::vector<float>{0, 0, 0, 0, -1.75f, -1}));
  EXPECT_EQ(Logits(text, options, {2}, 6), (std::vector<float>(6, 0)));  // 3 alone may repeat
  options.allowed_length = 1;
  EXPECT_EQ(Logits(text, options, {2}, 6), (std::vector<float>{0, 0, 0, 0, -1, -1}));
  options.multiplier = 0;
  EXPECT_EQ(Logits(text, options, {2}, 6), (std::vector<float>(6, 0)));
}

// A text that repeats one token gives powers beyond any float.
TEST(Dry, LongRepetitionsCanBeCompared) {
  const pronk::Dry options = {.multiplier = 1e6f};
  const std::vector<float> logits = Logits(std::vector<TokenId>(20000, 1), options, {}, 3);
  EXPECT_EQ(logits[0], 0);
  EXPECT_LT(logits[1], -1e38f);
  EXPECT_TRUE(std::isfinite(logits[1]));
}

}  // namespace
}  // namespace engine
