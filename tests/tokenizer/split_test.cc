// Where each model's patterns cut text: by hand from the patterns.
#include "tokenizer/split.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tokenizer {
namespace {

using Words = std::vector<std::string>;

Words Split(const std::string& name, const std::string& text) {
  const SplitRule* rule = FindSplitRule(name);
  if (rule == nullptr) return {"no rule"};
  Words words;
  Splitter(*rule).Split(text, [&](std::string_view word) { words.emplace_back(word); });
  return words;
}

TEST(Split, Gpt2) {
  EXPECT_EQ(Split("gpt-2", "Hello, y'all! it's 12345 'RE"),
            (Words{"Hello", ",", " y", "'", "all", "!", " it", "'s", " 12345", " '", "RE"}));
  EXPECT_EQ(Split("gpt-2", "a  b\n\n c \n"), (Words{"a", " ", " b", "\n\n", " c", " \n"}));
  EXPECT_EQ(Split("gpt-2", ""), Words{});
}

TEST(Split, Llama3) {
  EXPECT_EQ(Split("llama-bpe", "Hello, y'all! it'S 12345 'RE"),
            (Words{"Hello", ",", " y", "'all", "!", " it", "'S", " ", "123", "45", " '", "RE"}));
  EXPECT_EQ(Split("llama-bpe", "a  b\n\n c!\n\n\td"),
            (Words{"a", " ", " b", "\n\n", " c", "!\n\n", "\td"}));
  EXPECT_EQ(Split("llama-bpe", "x \n \n y"), (Words{"x", " \n \n", " y"}));
  EXPECT_EQ(Split("llama-bpe", "\u043D\u0435\u0449\u043E \u1780\u17B6"),
            (Words{"\u043D\u0435\u0449\u043E", " \u1780", "\u17B6"}));  // a vowel sign is no letter
}

TEST(Split, Qwen2) {
  EXPECT_EQ(Split("qwen2", "it'll be 2024!\n"),
            (Words{"it", "'ll", " be", " ", "2", "0", "2", "4", "!\n"}));
}

// As another engine of regular expressions cuts these with the pattern that the model states.
TEST(Split, Tekken) {
  EXPECT_EQ(
      Split("tekken", "Hello camelCase HTTPServer it's 2024"),
      (Words{"Hello", " camel", "Case", " HTTPServer", " it", "'s", " ", "2", "0", "2", "4"}));
  EXPECT_EQ(Split("tekken", "a//b !?/\n c  d\n\n"),
            (Words{"a", "//", "b", " !?/\n", " c", " ", " d", "\n\n"}));
  // A vowel sign belongs to its word; so do letters without case and modifiers.
  EXPECT_EQ(Split("tekken", "\u1780\u17B6 \u4E2D\u6587x \u0130\u01C5a\u02B0B"),
            (Words{"\u1780\u17B6", " \u4E2D\u6587x",
                   " \u0130\u01C5"
                   "a\u02B0",
                   "B"}));
}

// The same was found with another engine of regular expressions, here and in those that follow.
TEST(Split, Qwen35) {
  const std::string text = "x\u0301y \u1780\u17B6!\u0301\n42";
  EXPECT_EQ(Split("qwen35", text), (Words{"x\u0301y", " \u1780\u17B6", "!\u0301", "\n", "4", "2"}));
  EXPECT_EQ(Split("qwen2", text), (Words{"x", "\u0301y", " \u1780", "\u17B6!\u0301\n", "4", "2"}));
}

TEST(Split, SeedCoder) {
  EXPECT_EQ(Split("seed-coder", "it's!\n\n f(12);\n"),
            (Words{"it", "'s", "!", "\n\n", " f", "(", "1", "2", ");", "\n"}));
}

TEST(Split, Gpt4o) {
  EXPECT_EQ(Split("gpt-4o", "Hello camelCase HTTPServer it'S 20245"),
            (Words{"Hello", " camel", "Case", " HTTPServer", " it'S", " ", "202", "45"}));
  EXPECT_EQ(Split("gpt-4o", "I'LL y'all x//\n \u1780\u17B6"),
            (Words{"I'LL", " y", "'all", " x", "//\n", " \u1780\u17B6"}));
}

TEST(Split, DeepSeek3) {
  EXPECT_EQ(Split("deepseek-v3", "Hi, you're\n\n20245  \u4E2D\u6587\u3042\u3002x!?\n "),
            (Words{"Hi", ",", " you", "'re", "\n\n", "202", "45", "  ", "\u4E2D\u6587\u3042",
                   "\u3002", "x", "!?\n", " "}));
  EXPECT_EQ(Split("deepseek-v3", "(abc) [a]_b {x\u0301} `q`\\w^2"),
            (Words{"(abc", ")", " [", "a", "]_", "b", " {", "x\u0301", "}", " `", "q", "`\\", "w",
                   "^", "2"}));
}

TEST(Split, SmolLm) {
  // Digits first: the space before one is a word, and "'s" is looked for in the rest.
  EXPECT_EQ(Split("smollm", "in 2024's \u00BD"),
            (Words{"in", " ", "2", "0", "2", "4", "'s", " ", "\u00BD"}));
}

TEST(Split, Default) {
  EXPECT_EQ(Split("default", "it's (a+b) 1234567 x"),
            (Words{"it", "'", "s", " ", "(", "a", "+", "b", ")", " ", "123", "456", "7", " x"}));
}

TEST(Split, DeepSeek) {
  EXPECT_EQ(Split("deepseek-llm", "Hi, you\n\n2024  \u4E2D\u6587\u3002x  "),
            (Words{"Hi", ",", " you", "\n", "\n", "2", "0", "2", "4", "  ", "\u4E2D\u6587",
                   "\u3002", "x", "  "}));
}

TEST(Split, DeepSeekCoder) {
  EXPECT_EQ(Split("deepseek-coder", "if (a_b==\"c\") {\n\treturn 42;\n}"),
            (Words{"if", " (", "a", "_", "b", "==", "\"", "c", "\")", " {", "\n", "\treturn", " ",
                   "4", "2", ";", "\n", "}"}));
  EXPECT_EQ(Split("deepseek-coder", "Hi, \u4F60\u597D\u3002x  \u00BD+ y"),
            (Words{"Hi", ",", " ", "\u4F60\u597D", "\u3002", "x", "  ", "\u00BD", "+", " y"}));
}

TEST(Split, SpaceIsUnicodeWhiteSpace) {
  // NEL, no-break, ideographic and other spaces are; the Mongolian vowel separator is not (any
  // more).
  EXPECT_EQ(Split("gpt-2", "a\u00A0\u3000\u0085b"), (Words{"a", "\u00A0\u3000", "\u0085", "b"}));
  EXPECT_EQ(Split("gpt-2", "a \u180E\u180E"), (Words{"a", " \u180E\u180E"}));
}

TEST(Split, KnowsTheNamesThatFilesUse) {
  for (const std::string name : {"llama-bpe",     "llama3",         "llama-v3",
                                 "falcon3",       "lfm2",           "pixtral",
                                 "dbrx",          "glm4",           "smaug-bpe",
                                 "chatglm-bpe",   "gpt-2",          "olmo",
                                 "exaone4",       "qwen2",          "hunyuan",
                                 "qwen35",        "seed-coder",     "deepseek-r1-qwen",
                                 "tekken",        "gpt-4o",         "llama4",
                                 "smollm",        "starcoder",      "refact",
                                 "exaone",        "default",        "minerva-7b",
                                 "deepseek-llm",  "deepseek-coder", "deepseek-v3",
                                 "hunyuan-dense", "granite-docling"}) {
    EXPECT_NE(FindSplitRule(name), nullptr) << name;
    EXPECT_NE(SplitRuleNames().find(name), std::string::npos) << name;
  }
  EXPECT_EQ(FindSplitRule(""), nullptr);
  EXPECT_EQ(FindSplitRule("llama"), nullptr);
}

}  // namespace
}  // namespace tokenizer
