#include "tokenizer/token_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tokenizer {
namespace {

std::string RandomText(std::mt19937& random) {
  std::string text;
  for (size_t n = random() % 20; n > 0; --n) text += static_cast<char>(random() % 3);
  return text;
}

// Compares the index with std::map, for short texts with few letters, NULs and duplicates.
TEST(TokenIndex, FindsWhatAMapFinds) {
  std::mt19937 random(1);
  std::deque<std::string> texts;  // growing moves no text
  std::map<std::string, int32_t> expected;
  for (int32_t i = 0; i < 20000; ++i) {
    texts.push_back(RandomText(random));
    expected[texts.back()] = i;  // the last duplicate counts
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const TokenIndex index(views);
  EXPECT_FALSE(index.AllDiffer());
  for (int i = 0; i < 20000; ++i)
    texts.push_back(RandomText(random));  // the index lacks some of them
  const std::vector<std::string_view> wanted(texts.begin(), texts.end());
  const std::vector<int32_t> found = index.FindAll(wanted);
  ASSERT_EQ(found.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto entry = expected.find(texts[i]);
    const int32_t id = entry == expected.end() ? -1 : entry->second;
    ASSERT_EQ(index.Find(texts[i]), id);
    ASSERT_EQ(found[i], id);
  }
}

// The table has the first eight bytes of each text. It must distinguish padding from NUL.
TEST(TokenIndex, TellsPaddingFromNul) {
  const std::string nul(3, '\0');
  const std::vector<std::string_view> tokens = {std::string_view(nul).substr(0, 1), nul, "a"};
  const TokenIndex index(tokens);
  EXPECT_EQ(index.Find(std::string_view(nul).substr(0, 1)), 0);
  EXPECT_EQ(index.Find(std::string_view(nul).substr(0, 2)), -1);
  EXPECT_EQ(index.Find(nul), 1);
  EXPECT_EQ(index.Find(""), -1);
  EXPECT_EQ(index.Find(std::string("a\0", 2)), -1);
}

TEST(TokenIndex, TextsThatDifferLate) {
  const std::vector<std::string_view> tokens = {"12345678", "123456789", "12345678x", "1234567890"};
  const TokenIndex index(tokens);
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(index.Find(tokens[i]), static_cast<int32_t>(i));
  }
  EXPECT_TRUE(index.AllDiffer());
  EXPECT_EQ(index.Find("12345678y"), -1);
  EXPECT_EQ(index.Find("1234567"), -1);
}

}  // namespace
}  // namespace tokenizer
