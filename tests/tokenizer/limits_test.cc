// Tests the cost of the largest accepted vocabularies, and that one more token is refused.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/support/error_of.h"
#include "tests/tokenizer/vocab_file.h"

namespace tokenizer {
namespace {

using test::BpeSpec;
using test::SpmSpec;
using test::VocabSpec;

// Writes vocabularies to files and measures the cost of reading them.
class Limits : public testing::Test {
 protected:
  static VocabSpec WithTokens(VocabSpec spec, size_t n_tokens) {
    while (spec.tokens.size() < n_tokens) spec.Add("t" + std::to_string(spec.tokens.size()));
    return spec;
  }

  gguf::File Write(const VocabSpec& spec) const {
    gguf::Writer writer = spec.more;
    spec.AddTo(writer);
    writer.WriteFile(dir_.Path("vocab.gguf"));
    return gguf::File::Open(dir_.Path("vocab.gguf"));
  }

  void ExpectError(const VocabSpec& spec, const std::string& what) const {
    const gguf::File file = Write(spec);
    test::ResetPeak();
    const size_t before = test::CountAllocations().bytes;
    EXPECT_TRUE(test::Has(test::ErrorOf([&] { Tokenizer::Create(file); }),
                          "vocab.gguf: key \"tokenizer.ggml." + what));
    // Elements are counted before they are copied.
    EXPECT_LT(test::CountAllocations().peak - before, 64'000'000u) << what;
  }

  // Reads the vocabulary and uses it once, with at most `most_bytes` more than the file's size.
  void ExpectCost(const VocabSpec& spec, size_t most_bytes) const {
    const gguf::File file = Write(spec);
    test::ResetPeak();
    const size_t before = test::CountAllocations().bytes;
    const auto start = std::chrono::steady_clock::now();
    EXPECT_FALSE(Tokenizer::Create(file)->Encode("t300t4000").empty());
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    EXPECT_LT(test::CountAllocations().peak - before, file.file_bytes() + most_bytes);
  }

  test::TempDir dir_;
};

TEST_F(Limits, MoreTokens) {
  const std::string what = "tokens\": expected 1 to 1048576 tokens, found 1048577";
  ExpectError(WithTokens(SpmSpec(), kMaxVocabularySize + 1), what);
  ExpectError(WithTokens(BpeSpec("gpt-2"), kMaxVocabularySize + 1), what);
}

TEST_F(Limits, MoreMerges) {
  VocabSpec spec = BpeSpec("gpt-2");
  test::AddMerge(spec, "a", "b");
  spec.merges.resize(kMaxMerges + 1, "a b");
  ExpectError(spec, "merges\": expected 1 to 1048576 merges, found 1048577");
}

// The types would be eight times as large in memory as in the file.
TEST_F(Limits, MoreTypesThanTokens) {
  VocabSpec spec = SpmSpec();
  spec.types.clear();
  const std::vector<uint8_t> types(20'000'000, 1);
  spec.more.AddArray("tokenizer.ggml.token_type", std::span<const uint8_t>(types));
  ExpectError(spec, "token_type\": expected 259 elements, one per token, found 20000000");
}

TEST_F(Limits, MostTokensOfSpm) {  // most is for sentencepiece's tables
  ExpectCost(WithTokens(SpmSpec(), kMaxVocabularySize), 250'000'000);
}

TEST_F(Limits, MostTokensAndMergesOfBpe) {
  VocabSpec spec = BpeSpec("gpt-2");
  test::AddMerge(spec, "a", "b");
  spec.merges.resize(kMaxMerges, "a b");
  ExpectCost(WithTokens(spec, kMaxVocabularySize), 64'000'000);
}

}  // namespace
}  // namespace tokenizer
