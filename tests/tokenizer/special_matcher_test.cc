#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tokenizer {
namespace {

using Entries = std::vector<SpecialMatcher::Entry>;

TEST(SpecialMatcher, TakesTheLongestOfTheFirst) {
  const SpecialMatcher matcher(Entries{{"<|a|>", 1}, {"<|a|><|b|>", 2}, {"|><|", 3}, {"<", 4}});
  const std::string text = "x<|a|><|b|>";
  SpecialMatcher::Match match = matcher.Find(text, 0);
  EXPECT_EQ(match.begin, 1u);
  EXPECT_EQ(match.length, 10u);
  EXPECT_EQ(match.id, 2);
  match = matcher.Find(text, 2);
  EXPECT_EQ(match.begin, 4u);
  EXPECT_EQ(match.id, 3);
  match = matcher.Find(text, 7);
  EXPECT_EQ(match.begin, text.size());
  EXPECT_EQ(match.length, 0u);
}

TEST(SpecialMatcher, NothingMatchesNothing) {
  EXPECT_EQ(SpecialMatcher().Find("abc", 0).length, 0u);
  EXPECT_EQ(SpecialMatcher(Entries{{"", 1}}).Find("abc", 0).length, 0u);
  EXPECT_EQ(SpecialMatcher(Entries{{"a", 1}}).Find("", 0).length, 0u);
}

TEST(SpecialMatcher, OfEqualTextsTheLastCounts) {
  const SpecialMatcher matcher(Entries{{"ab", 1}, {"a", 2}, {"ab", 3}});
  EXPECT_EQ(matcher.Find("ab", 0).id, 3);
}

// Against the definition, tried entry by entry.
TEST(SpecialMatcher, RandomTexts) {
  std::mt19937 random(1);
  const auto text_of = [&](size_t longest) {
    std::string text;
    const char letters[] = {'\0', 'b', '\xFF'};
    for (size_t n = random() % (longest + 1); n > 0; --n) text += letters[random() % 3];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    Entries entries;
    for (int32_t i = 0; i < 8; ++i) entries.push_back({text_of(6), i});
    const SpecialMatcher matcher(entries);
    const std::string text = text_of(40);
    for (size_t from = 0; from <= text.size(); ++from) {
      SpecialMatcher::Match expected = {text.size(), 0, -1};
      for (size_t at = from; at < text.size() && expected.length == 0; ++at) {
        for (const auto& entry : entries) {
          const bool here =
              !entry.text.empty() && text.compare(at, entry.text.size(), entry.text) == 0;
          if (here && entry.text.size() >= expected.length) {
            expected = {at, entry.text.size(), entry.id};
          }
        }
      }
      const SpecialMatcher::Match match = matcher.Find(text, from);
      ASSERT_EQ(match.begin, expected.begin);
      ASSERT_EQ(match.length, expected.length);
      ASSERT_EQ(match.id, expected.id);
    }
  }
}

}  // namespace
}  // namespace tokenizer
