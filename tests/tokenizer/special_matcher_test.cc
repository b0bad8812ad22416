#include "tokenizer/special_matcher.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tokenizer/errors.h"

namespace tokenizer {
namespace {

using Entries = std::vector<SpecialMatcher::Entry>;
using Match = SpecialMatcher::Match;

const std::function<void()> kNoTick = [] {};

Match Find(const SpecialMatcher& matcher, std::string_view text, size_t from, bool control = true,
           std::span<const ByteSpan> plain = {}) {
  return SpecialMatcher::Search(matcher, text, control, plain, kNoTick).Next(from);
}

TEST(SpecialMatcher, TakesTheLongestOfTheFirst) {
  const SpecialMatcher matcher(Entries{{"<|a|>", 1}, {"<|a|><|b|>", 2}, {"|><|", 3}, {"<", 4}});
  const std::string text = "x<|a|><|b|>";
  Match match = Find(matcher, text, 0);
  EXPECT_EQ(match.begin, 1u);
  EXPECT_EQ(match.length, 10u);
  EXPECT_EQ(match.id, 2);
  match = Find(matcher, text, 2);
  EXPECT_EQ(match.begin, 4u);
  EXPECT_EQ(match.id, 3);
  match = Find(matcher, text, 7);
  EXPECT_EQ(match.begin, text.size());
  EXPECT_EQ(match.length, 0u);
}

TEST(SpecialMatcher, NothingMatchesNothing) {
  EXPECT_EQ(Find(SpecialMatcher(), "abc", 0).length, 0u);
  EXPECT_EQ(Find(SpecialMatcher(Entries{{"", 1}}), "abc", 0).length, 0u);
  EXPECT_EQ(Find(SpecialMatcher(Entries{{"a", 1}}), "", 0).length, 0u);
}

TEST(SpecialMatcher, OfEqualTextsTheLastCounts) {
  const SpecialMatcher matcher(Entries{{"ab", 1}, {"a", 2}, {"ab", 3}});
  EXPECT_EQ(Find(matcher, "ab", 0).id, 3);
}

TEST(SpecialMatcher, ControlTokensWhereTheyAreRead) {
  const SpecialMatcher matcher(
      Entries{{"<", 1}, {"<|a|>", 2, false}, {"<|a|><", 3}, {"|", 4, false}});
  EXPECT_EQ(Find(matcher, "<|a|>", 0, /*control=*/false).id, 1);
  EXPECT_EQ(Find(matcher, "<|a|>", 0, /*control=*/true).id, 2);
  EXPECT_EQ(Find(matcher, "<|a|><", 0, /*control=*/false).id, 3);
  // A control token with a plain byte is not found. The match is the longest user-defined token.
  const std::vector<ByteSpan> plain = {{4, 5}};
  EXPECT_EQ(Find(matcher, "<|a|>", 0, true, plain).id, 1);
  EXPECT_EQ(Find(matcher, "<|a|>", 1, true, plain).id, 4);
  EXPECT_EQ(Find(matcher, "<|a|>", 3, true, plain).id, 4);
}

// Compares the matcher with the definition, which tries each entry at each position.
TEST(SpecialMatcher, RandomTexts) {
  std::mt19937 random(1);
  const auto text_of = [&](size_t longest) {
    std::string text;
    const char letters[] = {'\0', 'b', '\xFF'};
    for (size_t n = random() % (longest + 1); n > 0; --n) text += letters[random() % 3];
    return text;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> texts;
    for (int32_t i = 0; i < 12; ++i) texts.push_back(text_of(round % 2 == 0 ? 6 : 14));
    if (round % 5 == 0) {  // each token begins with the previous one
      for (size_t i = 1; i < texts.size(); ++i) texts[i] = texts[i - 1] + texts[i].substr(0, 2);
    }
    Entries entries;
    for (int32_t i = 0; i < 12; ++i) entries.push_back({texts[static_cast<size_t>(i)], i});
    const SpecialMatcher matcher(entries);
    const std::string text = text_of(40) + texts[11] + text_of(9);
    SpecialMatcher::Search search(matcher, text, false, {}, kNoTick);
    for (size_t from = 0; from <= text.size(); ++from) {
      Match expected = {text.size(), 0, -1};
      for (size_t at = from; at < text.size() && expected.length == 0; ++at) {
        for (const auto& entry : entries) {
          const bool here =
              !entry.text.empty() && text.compare(at, entry.text.size(), entry.text) == 0;
          if (here && entry.text.size() >= expected.length) {
            expected = {at, entry.text.size(), entry.id};
          }
        }
      }
      const Match match = search.Next(from);
      ASSERT_EQ(match.begin, expected.begin);
      ASSERT_EQ(match.length, expected.length);
      ASSERT_EQ(match.id, expected.id);
    }
  }
}

// The text is so long that the sums of its prefixes are dropped and computed again.
TEST(SpecialMatcher, LongTexts) {
  const std::string longest(5000, 'a');
  const SpecialMatcher matcher(Entries{{longest, 1}, {"ab", 2}});
  std::string text(100'000, 'a');
  text[50'003] = 'b';
  SpecialMatcher::Search search(matcher, text, false, {}, kNoTick);
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size();) {
    const Match match = search.Next(at);
    begins.push_back(match.begin);
    at = match.begin + match.length;
    if (match.length == 0) break;
  }
  // Ten of the longest token, "ab" after two surplus letters, nine more, then no match.
  ASSERT_EQ(begins.size(), 21u);
  EXPECT_EQ(begins[9], 45'000u);
  EXPECT_EQ(begins[10], 50'002u);
}

// Tokens have 16,000 equal letters, and the text nearly matches them. The cost of a position must
// not grow with the token's length. The time limit allows for a slow machine: if each position cost
// a token's length, the test would take minutes.
TEST(SpecialMatcher, LongEqualTokensTakeLinearTime) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < 200; ++i) texts.push_back(std::string(16'000 + i, 'a') + "b");
  Entries entries;
  for (const std::string& text : texts) {
    entries.push_back({text, static_cast<int32_t>(entries.size()), entries.size() % 2 == 0});
  }
  const SpecialMatcher matcher(entries);
  const std::string text(2'000'000, 'a');
  const std::clock_t start = std::clock();
  EXPECT_EQ(Find(matcher, text, 0).length, 0u);
  // The text contains a whole token, but as plain text.
  const std::string whole = text + "b";
  const std::vector<ByteSpan> plain = {{0, whole.size()}};
  EXPECT_EQ(Find(matcher, whole, 0, true, plain).begin, whole.size() - 16'199);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20);
}

TEST(SpecialMatcher, SearchesCanBeEnded) {
  const SpecialMatcher matcher(Entries{{"aab", 1}});
  const std::function<void()> tick = [] { throw Interrupted(); };
  const std::string text(1'000'000, 'a');
  SpecialMatcher::Search search(matcher, text, true, {}, tick);
  EXPECT_THROW(search.Next(1), Interrupted);
}

}  // namespace
}  // namespace tokenizer
