// The ids that the vocabularies of Llama 2 and Llama 3 give, from the golden data beside the
// checkout. Where that is absent, spm_test and bpe_test check the same on small vocabularies.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "tests/support/data.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"

namespace tokenizer {
namespace {

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const std::string path = test::SharedPath("models/vocab-" + GetParam() + ".gguf");
    if (path.empty()) GTEST_SKIP() << "no golden data beside the checkout";
    file_ = std::make_unique<gguf::File>(gguf::File::Open(path));
    tokenizer_ = Tokenizer::Create(*file_);
  }
  std::string Read(const std::string& ending) const {
    return test::ReadText(test::SharedPath("golden/tokenizer/" + GetParam() + ending));
  }

  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Golden, Ids) {
  const std::string kSeparator = "\n__ggml_vocab_test__\n";
  std::string inputs = Read(".inp");
  std::istringstream outputs(Read(".out"));
  size_t n_cases = 0;
  for (size_t end; (end = inputs.find(kSeparator)) != std::string::npos; ++n_cases) {
    const std::string text = inputs.substr(0, end);
    inputs.erase(0, end + kSeparator.size());
    std::string line;
    ASSERT_TRUE(std::getline(outputs, line));
    std::istringstream numbers(line);
    std::vector<TokenId> expected;
    for (TokenId id; numbers >> id;) expected.push_back(id);
    EXPECT_EQ(tokenizer_->Encode(text, {.add_bos = false}), expected) << '"' << text << '"';
    EXPECT_EQ(tokenizer_->Decode(expected), text);
  }
  EXPECT_EQ(n_cases, 46u);
}

TEST_P(Golden, EveryTokenDecodesAndComesBack) {
  const Vocabulary& vocab = tokenizer_->vocab();
  for (TokenId id = 0; vocab.Has(id); ++id) {
    const std::string text = tokenizer_->Piece(id);
    const std::string spelling = tokenizer_->Piece(id, true);
    ASSERT_FALSE(spelling.empty()) << id;
    ASSERT_EQ(tokenizer_->Find(vocab.tokens[static_cast<size_t>(id)]), id);
    if (text.empty()) {  // control or unknown
      ASSERT_EQ(tokenizer_->Encode(spelling, {.add_bos = false, .parse_special = true}),
                std::vector<TokenId>{id});
    } else {
      ASSERT_EQ(tokenizer_->Decode(tokenizer_->Encode(text)), text) << id;
    }
  }
}

// The text of random tokens, which is any mixture of scripts and half characters.
TEST_P(Golden, RandomTokensComeBack) {
  std::mt19937 random(1);
  const auto n_tokens = static_cast<uint32_t>(tokenizer_->vocab().size());
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 20; ++i)
      text += tokenizer_->Piece(static_cast<TokenId>(random() % n_tokens));
    ASSERT_EQ(tokenizer_->Decode(tokenizer_->Encode(text)), text);
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Golden, testing::Values("llama-spm", "llama-bpe"),
                         [](const auto& test) { return test.param.substr(6); });

}  // namespace
}  // namespace tokenizer
