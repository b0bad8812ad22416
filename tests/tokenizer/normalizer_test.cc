// Tests normal forms, and the steps of a normalizer. Python's unicodedata gave the expected texts.
#include "tokenizer/normalizer.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_of.h"
#include "tests/tokenizer/vocab_file.h"
#include "tokenizer/characters.h"
#include "tokenizer/normal_form.h"

namespace tokenizer {
namespace {

struct Forms {
  const char *text, *nfd, *nfc, *nfkd, *nfkc;
};

TEST(Normalizer, NormalForms) {
  for (const Forms& x : {
           Forms{"plain", "plain", "plain", "plain", "plain"},
           {"caf\u00E9", "cafe\u0301", "caf\u00E9", "cafe\u0301", "caf\u00E9"},
           // Marks are sorted by combining class, and compose in this order.
           {"q\u0307\u0323", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307", "q\u0323\u0307"},
           {"\u1E69", "s\u0323\u0307", "\u1E69", "s\u0323\u0307", "\u1E69"},
           {"s\u0307\u0323", "s\u0323\u0307", "\u1E69", "s\u0323\u0307", "\u1E69"},
           // Hangul is composed by arithmetic.
           {"\uAC01\uAC00", "\u1100\u1161\u11A8\u1100\u1161", "\uAC01\uAC00",
            "\u1100\u1161\u11A8\u1100\u1161", "\uAC01\uAC00"},
           // Composition exclusions and singletons.
           {"\u0958\u212B", "\u0915\u093CA\u030A", "\u0915\u093C\u00C5", "\u0915\u093CA\u030A",
            "\u0915\u093C\u00C5"},
           {"\uFB01\u00BD\uFF21", "\uFB01\u00BD\uFF21", "\uFB01\u00BD\uFF21", "fi1\u20442A",
            "fi1\u20442A"},
           {"\u0301\u0651\u064B", "\u064B\u0651\u0301", "\u064B\u0651\u0301", "\u064B\u0651\u0301",
            "\u064B\u0651\u0301"},
       }) {
    EXPECT_EQ(ToNormalForm(x.text, NormalForm::kNfd), x.nfd) << x.text;
    EXPECT_EQ(ToNormalForm(x.text, NormalForm::kNfc), x.nfc) << x.text;
    EXPECT_EQ(ToNormalForm(x.text, NormalForm::kNfkd), x.nfkd) << x.text;
    EXPECT_EQ(ToNormalForm(x.text, NormalForm::kNfkc), x.nfkc) << x.text;
  }
  EXPECT_EQ(ToLowerCase("\u0130\u00C9\u1C89A"), "i\u0307\u00E9\u1C8Aa");
}

// Returns the error message for these steps.
std::string ErrorOfSteps(const std::vector<std::string_view>& words) {
  test::VocabSpec spec = test::SpmSpec();
  spec.more.AddStrings(kNormalizerKey, words);
  return test::ErrorOf([&] { const test::VocabFile file(spec); });
}

TEST(Normalizer, StepsAreChecked) {
  EXPECT_EQ(ErrorOfSteps({}), "");
  EXPECT_EQ(ErrorOfSteps({"NFC", "Replace", "ab", "b", "Prepend", "x", "StripLeft"}), "");
  EXPECT_TRUE(test::Has(ErrorOfSteps({"NFX"}), "or Prepend, found \"NFX\""));
  EXPECT_TRUE(test::Has(ErrorOfSteps({"Replace", "a"}), "expected 2 texts after Replace"));
  EXPECT_TRUE(test::Has(ErrorOfSteps({"Replace", "", "a"}), "expected texts of at most 256 bytes"));
  const std::string many(65, 'x');
  EXPECT_TRUE(test::Has(ErrorOfSteps({"Replace", "a", many}), "at most 64 times as long"));
}

// Qwen's files do not name NFC, so the pattern implies it.
TEST(Normalizer, FollowsFromThePattern) {
  for (const char* pre : {"qwen2", "dbrx"}) {
    test::VocabSpec spec;
    spec.model = "gpt2";
    spec.pre = pre;
    for (const char* token : {"e", "\u00CC", "\u0123", "\u00C3", "\u00A9", "\u00C3\u00A9"})
      spec.Add(token);
    spec.scores.clear();
    spec.merges = {"\u00C3 \u00A9"};
    const test::VocabFile file(spec);
    const auto ids = file->Encode("e\u0301", {.add_special = false});
    EXPECT_EQ(ids == test::Ids{5}, std::string(pre) == "qwen2");
  }
}

}  // namespace
}  // namespace tokenizer
