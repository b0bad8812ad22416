// Tests where each model's patterns cut text. The expected words were determined by hand.
#include "tokenizer/split.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/error_of.h"

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
            (Words{"\u043D\u0435\u0449\u043E", " \u1780", "\u17B6"}));  // vowel signs: not letters
}

TEST(Split, Qwen2) {
  EXPECT_EQ(Split("qwen2", "it'll be 2024!\n"),
            (Words{"it", "'ll", " be", " ", "2", "0", "2", "4", "!\n"}));
}

// Another regular expression engine gave the expected words, with the model's published pattern.
TEST(Split, Tekken) {
  EXPECT_EQ(
      Split("tekken", "Hello camelCase HTTPServer it's 2024"),
      (Words{"Hello", " camel", "Case", " HTTPServer", " it", "'s", " ", "2", "0", "2", "4"}));
  EXPECT_EQ(Split("tekken", "a//b !?/\n c  d\n\n"),
            (Words{"a", "//", "b", " !?/\n", " c", " ", " d", "\n\n"}));
  // Vowel signs, letters without case and modifiers belong to a word.
  EXPECT_EQ(Split("tekken", "\u1780\u17B6 \u4E2D\u6587x \u0130\u01C5a\u02B0B"),
            (Words{"\u1780\u17B6", " \u4E2D\u6587x",
                   " \u0130\u01C5"
                   "a\u02B0",
                   "B"}));
}

// Another regular expression engine gave the expected words, here and below.
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

TEST(Split, GraniteEmbedding) {
  EXPECT_EQ(Split("granite-embed-multi-97m", "camelCase it's 20245"),
            (Words{"camel", "Case", " it's", " ", "202", "45"}));
  EXPECT_TRUE(FindSplitRule("granite-embed-multi-97m")->ignore_merges);
  EXPECT_FALSE(FindSplitRule("gpt-4o")->ignore_merges);
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
  // Digits are cut first, so the space before a digit is a word. Then "'s" is cut from the rest.
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

// From here on, the expected words were determined by hand from the models' published patterns.
TEST(Split, KimiAndYoutu) {
  EXPECT_EQ(Split("kimi-k2", "Hi\u4E2D\u6587camelCase it's 20245!\n"),
            (Words{"Hi", "\u4E2D\u6587", "camel", "Case", " it's", " ", "202", "45", "!\n"}));
  // A middle dot belongs to several scripts, an iteration mark is Chinese.
  EXPECT_EQ(Split("kimi-k2", "\u4E2D\u30FB\u6587\u3005a"),
            (Words{"\u4E2D", "\u30FB", "\u6587\u3005", "a"}));
  EXPECT_EQ(Split("gpt-4o", "Hi\u4E2D\u6587camel"), (Words{"Hi\u4E2D\u6587camel"}));
  EXPECT_EQ(Split("youtu", "ab\uAC00\u4E2D\uFF01\u2026\u3105x 12/"),
            (Words{"ab", "\uAC00", "\u4E2D", "\uFF01\u2026", "\u3105", "x", " ", "1", "2", "/"}));
}

// Digits form groups of three from the right. In superbpe, words and spaces stay together.
TEST(Split, GroupsOfDigitsFromTheRight) {
  EXPECT_EQ(Split("superbpe", "by the way 1234567, 12 or 123456"),
            (Words{"by the way ", "1", "234", "567", ", ", "12", " or ", "123", "456"}));
  EXPECT_EQ(Split("superbpe", "\u216712 \u2167123"),  // a Roman numeral is not a digit
            (Words{"\u216712", " ", "\u2167", "123"}));
  EXPECT_EQ(Split("tiny_aya", "n 12345.6 1234x"),
            (Words{"n", " ", "12", "345", ".", "6", " ", "123", "4", "x"}));
  EXPECT_EQ(Split("afmoe", "12345a\u4E2D1234"), (Words{"12", "345", "a", "\u4E2D", "1", "234"}));
}

// The time for a long number must be linear.
TEST(Split, ManyDigits) {
  for (const char* name : {"superbpe", "tiny_aya", "afmoe"}) {
    EXPECT_EQ(Split(name, std::string(100'000, '7')).size(), 33'334u) << name;
  }
}

TEST(Split, RelativesOfQwen2AndLlama3) {
  EXPECT_EQ(Split("exaone-moe", "a b  c!\n\nit's 12"),
            (Words{"a b", " ", " c", "!\n", "\n", "it", "'s", " ", "1", "2"}));
  EXPECT_EQ(Split("bailingmoe2", "it'D !!\n\n\nx"), (Words{"it", "'D", " !!\n\n\n", "x"}));
  EXPECT_EQ(Split("minicpm5", "it's 20245 x!\n"),
            (Words{"it", "'s", " ", "202", "45", " x", "!\n"}));
  EXPECT_EQ(Split("laguna", "a!\n\nb 12"), (Words{"a", "!", "\n\n", "b", " ", "1", "2"}));
  EXPECT_EQ(Split("ufakzeka", "TBMM'nin 12"), (Words{"TBMM", "'nin", " ", "1", "2"}));
  EXPECT_EQ(Split("spark2_5", "hi!\n\n20245"),
            (Words{"hi", "!", "\n", "\n", "2", "0", "2", "4", "5"}));
  EXPECT_EQ(Split("jais-2", "a" + std::string(7, ' ') + "b"), (Words{"a", "    ", "  ", " b"}));
}

TEST(Split, BloomAndFalcon) {
  EXPECT_EQ(Split("poro-chat", "Hei, 123 (a)"), (Words{"Hei", ",", " 123", " (", "a", ")"}));
  EXPECT_EQ(Split("viking", "Hei, 123"), (Words{"Hei", ",", " ", "1", "2", "3"}));
  EXPECT_EQ(Split("falcon", "a`b 12345"), (Words{"a", "`", "b", " ", "123", "45"}));
}

TEST(Split, SpaceIsUnicodeWhiteSpace) {
  // NEL and no-break and ideographic spaces are white space, the Mongolian vowel separator is not.
  EXPECT_EQ(Split("gpt-2", "a\u00A0\u3000\u0085b"), (Words{"a", "\u00A0\u3000", "\u0085", "b"}));
  EXPECT_EQ(Split("gpt-2", "a \u180E\u180E"), (Words{"a", " \u180E\u180E"}));
}

// Every name that llama.cpp knows in the summer of 2026. The names of a row have one pattern.
TEST(Split, KnowsTheNamesThatFilesUse) {
  size_t n = 0;
  for (const char* const row :
       {"default",
        "minicpm5",
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        "deepseek-llm",
        "deepseek-v3 hunyuan-dense hy_v4 joyai-llm",
        "deepseek-coder",
        "spark2_5",
        "youtu",
        "falcon",
        "gpt-2 mpt phi-2 gigachat a.x-4.0 mellum jais exaone4 trillion granite-docling "
        "jina-es jina-de jina-v2-es jina-v2-de",
        "olmo modern-bert",
        "roberta-bpe jina-v1-en jina-v2-code",
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
        "jais-2",
        "qwen2 deepseek-r1-qwen f2llmv2 megrez",
        "kormo stablelm2 hunyuan grok-2 solar-open",
        "qwen35",
        "dbrx smaug-bpe glm4 chatglm-bpe",
        "bloom poro-chat gpt3-finnish",
        "viking",
        "tekken",
        "gpt-4o llama4 kanana2 talkie minimax-m2",
        "granite-embed-multi-97m",
        "tiny_aya cohere2moe",
        "superbpe",
        "bailingmoe bailingmoe2 llada-moe",
        "seed-coder",
        "exaone-moe",
        "kimi-k2",
        "ufakzeka",
        "afmoe",
        "laguna",
        "chameleon",
        "whitespace"}) {
    std::istringstream names(row);
    const SplitRule* first = nullptr;
    for (std::string name; names >> name; ++n) {
      const SplitRule* const rule = FindSplitRule(name);
      if (first == nullptr) first = rule;
      ASSERT_NE(rule, nullptr) << name;
      EXPECT_EQ(rule, first) << name;
      EXPECT_TRUE(test::Has(SplitRuleNames(), name)) << name;
    }
  }
  size_t n_ours = 0;
  for (const SplitRule& rule : SplitRules()) n_ours += rule.Names().size();
  EXPECT_EQ(n, n_ours);  // the list above is complete
  // These names are refused.
  for (const std::string name :
       {// These merge text, not bytes (gemma4 is known as a vocabulary).
        "gemma4", "granite-embed-multi-311m", "sarvam-moe",
        // No public file or log has these family names as patterns (Mistral's is tekken).
        "hy-v3", "hy_v3", "mistral", "llama", ""}) {
    EXPECT_EQ(FindSplitRule(name), nullptr) << name;
  }
}

TEST(Split, Chameleon) {
  EXPECT_EQ(Split("chameleon", "<sentinel:12>IMGIMGABCZ a    b12, it's"),
            (Words{"<", "sentinel", ":", "1", "2", ">", "IMGIMGABCZ", " a", "    ", "b", "1", "2",
                   ",", " it", "'", "s"}));
}

// Letters, marks and digits of Unicode 15 and 16 are known, even if PCRE2 does not know them.
TEST(Split, NewerCharacters) {
  // U+1C89 and U+1C8A are Cyrillic letters of both cases, U+11F50 a digit, U+11F03 a vowel sign.
  EXPECT_EQ(Split("gpt-4o", "a\u1C89\u1C8A \U00011F50\U00011F50!"),
            (Words{"a", "\u1C89\u1C8A", " ", "\U00011F50\U00011F50", "!"}));
  EXPECT_EQ(Split("qwen35", "\U00011F04\U00011F03."), (Words{"\U00011F04\U00011F03", "."}));
  EXPECT_EQ(Split("kimi-k2", "x\U00031350\U0002EBF0y"), (Words{"x", "\U00031350\U0002EBF0", "y"}));
}

// A pattern that reads each character of a run repeatedly would take hours here.
TEST(Split, TimeIsLinear) {
  for (const SplitRule& rule : SplitRules()) {
    const Splitter splitter(rule);
    for (const std::string unit :
         {"1", "a", "\u0301", " ", "1a", "a1 ", "\n", " \n", "'", "\u4e2d", "\u00bd"}) {
      for (const std::string end : {"", "a", "!"}) {
        std::string text;
        while (text.size() < 100'000) text += unit;
        text += end;
        size_t n = 0;
        splitter.Split(text, [&](std::string_view word) { n += word.size(); });
        EXPECT_EQ(n, text.size()) << rule.Names()[0];
      }
    }
  }
}

// The words of jais-2 are parts of a run. If each word searched the rest of its run, this would
// take minutes.
TEST(Split, RunsOfSpacesInPowersOfTwo) {
  EXPECT_EQ(Split("jais-2", "!\n\t\t\nb   \n c     d"),
            (Words{"!\n", "\t\t\n", "b", "   \n", " c", "    ", " d"}));
  const std::string text = std::string(size_t{512} << 15, '\t') + "\u0301";
  size_t n = 0;
  Splitter(*FindSplitRule("jais-2")).Split(text, [&](std::string_view) { ++n; });
  EXPECT_GT(n, size_t{1} << 15);
}

// Each repetition of a group takes space on the matcher's stack.
TEST(Split, LongRunsFitTheStack) {
  for (const SplitRule& rule : SplitRules()) {
    const Splitter splitter(rule);
    for (const std::string unit : {"a", "a ", "\u00e9\u0301", "1", " ", "\u4e2d", "aB", "."}) {
      std::string text = "x", again;
      while (text.size() < 50'000) text += unit;
      splitter.Split(text, [&](std::string_view word) { again += word; });
      EXPECT_EQ(again, text) << rule.Names()[0] << ": " << unit;
    }
  }
}

}  // namespace
}  // namespace tokenizer
