// Drafts that continue as the text did before, compared with a plain search.
#include "engine/draft/lookup_drafter.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <span>
#include <vector>

namespace engine {
namespace {

using tokenizer::TokenId;

std::vector<TokenId> LookUp(LookupDrafter& drafter, const std::vector<TokenId>& text, size_t n) {
  std::vector<TokenId> drafts;
  if (drafter.FindDrafts(text)) drafter.Draft(text, n, drafts);
  return drafts;
}

TEST(LookupDrafter, GoesOnAsTheLastTime) {
  using Ids = std::vector<TokenId>;
  LookupDrafter drafter(100);
  EXPECT_EQ(LookUp(drafter, {}, 3), Ids{});
  EXPECT_EQ(LookUp(drafter, {1}, 3), Ids{});
  EXPECT_EQ(LookUp(drafter, {1, 2}, 3), Ids{});
  EXPECT_EQ(LookUp(drafter, {1, 2, 3, 4, 9, 1, 2}, 3), (Ids{3, 4, 9}));
  drafter.Truncate(0);
  // After the text's end it continues with its own drafts.
  EXPECT_EQ(LookUp(drafter, {1, 2, 3, 1, 2}, 7), (Ids{3, 1, 2, 3, 1, 2, 3}));
  drafter.Truncate(0);
  // The longest match, and of several the latest.
  EXPECT_EQ(LookUp(drafter, {7, 1, 2, 5, 8, 1, 2, 6, 9, 1, 2, 4, 7, 1, 2}, 1), Ids{5});
  drafter.Truncate(0);
  EXPECT_EQ(LookUp(drafter, {1, 2, 5, 1, 2, 6, 8, 1, 2}, 1), Ids{6});
}

TEST(LookupDrafter, FindsWhatAPlainSearchFinds) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    LookupDrafter drafter(400);
    std::vector<TokenId> text;
    for (size_t n = 0; n < 30; ++n) {
      text.push_back(static_cast<TokenId>(random() % 4));
      if (random() % 10 == 0) {
        text.resize(text.size() / 2);
        drafter.Truncate(text.size());
      }
      // The longest match of all earlier places; of equally long ones the latest.
      size_t longest = 1, begin = 0;
      for (size_t place = text.size(); place-- > 1;) {
        size_t same = 0;
        while (same < place && text[place - 1 - same] == text[text.size() - 1 - same]) ++same;
        if (same > longest) {
          longest = same;
          begin = place;
        }
      }
      const std::vector<TokenId> drafts = LookUp(drafter, text, 1);
      ASSERT_EQ(!drafts.empty(), longest >= 2);
      if (longest >= 2) {
        ASSERT_EQ(drafts[0], text[begin]);
      }
    }
  }
}

TEST(LookupDrafter, GoesThroughALongTextOfOneWord) {
  constexpr size_t kTokens = 100'000;
  LookupDrafter drafter(kTokens);
  const std::vector<TokenId> text(kTokens, 3);  // every place matches
  for (size_t n = 1; n <= kTokens; n += 1000) drafter.FindDrafts(std::span(text).first(n));
  EXPECT_EQ(drafter.FindDrafts(text), std::optional(drafter.n_kinds() - 1));
}

}  // namespace
}  // namespace engine
