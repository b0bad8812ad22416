// Random vocabularies and texts: each must give an error or an answer. The test fails by crashing,
// by hanging, or if an id does not exist. Sanitizers find most faults.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/tokenizer/vocab_file.h"

namespace tokenizer {
namespace {

using test::BpeSpec;
using test::SpmSpec;
using test::VocabFile;
using test::VocabSpec;

template <typename T>
const T& Pick(std::mt19937& random, const std::vector<T>& list) {
  return list[random() % list.size()];
}

std::string Token(std::mt19937& random) {
  static const std::vector<std::string> kParts = {
      "a",    "b",     "<",    "|>",         "<|im_end|>", " ",     "\u2581", "\u0120",
      "\xFF", "\xE2",  "\n",   "<0x41>",     "<0x-1>",     "",      "\u00E9", "\t",
      "<s>",  "<unk>", "\x80", "\U0001F999", "\xF0\x9F",   "\u0100"};
  std::string token;
  for (size_t n = random() % 4; n > 0; --n) token += Pick(random, kParts);
  if (random() % 20 == 0) token += '\0';
  return token;
}

void AddNonsense(std::mt19937& random, VocabSpec& spec) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> scores = {0, -1, -2, 1, -1e9f, infinity, -infinity, -0.0f};
  for (size_t n = random() % 60; n > 0; --n) {
    auto type = static_cast<TokenType>(1 + random() % 6);
    const std::string token = Token(random);
    if (type == TokenType::kByte && ByteOfToken(token) < 0) type = TokenType::kNormal;
    spec.Add(token, Pick(random, scores), type);
  }
  for (size_t n = random() % 4; n > 0; --n) {  // changes the valid part
    const size_t i = random() % spec.tokens.size();
    if (spec.types[i] != TokenType::kByte) spec.types[i] = static_cast<TokenType>(1 + random() % 5);
    spec.scores[i] = Pick(random, scores);
  }
  for (const char* key : {"bos", "eos", "unknown"}) {
    if (random() % 3 > 0) continue;
    const auto id = static_cast<uint32_t>(random() % (spec.tokens.size() + 1));
    spec.more.Add(std::string("tokenizer.ggml.") + key + "_token_id", id);
  }
  for (const char* key : {"add_bos_token", "add_eos_token", "add_space_prefix"}) {
    if (random() % 2) spec.more.Add(std::string("tokenizer.ggml.") + key, random() % 2 == 0);
  }
}

void AddMerges(std::mt19937& random, VocabSpec& spec) {
  for (size_t n = random() % 30; n > 0; --n) {
    const std::string left = Pick(random, spec.tokens);
    const std::string right = Pick(random, spec.tokens);
    const bool sound =
        !left.empty() && !right.empty() && (left + right).find(' ') == std::string::npos;
    if (sound) test::AddMerge(spec, left, right);
  }
  if (random() % 8 == 0) spec.merges.push_back(Token(random));
}

// Returns whether the vocabulary was accepted.
bool UseAll(std::mt19937& random, const VocabSpec& spec) {
  bool accepted = false;
  const std::string error = test::ErrorOf([&] {
    const VocabFile file(spec);
    accepted = true;
    for (TokenId id = -1; id <= static_cast<TokenId>(spec.tokens.size()); ++id) {
      file->Decode({id, id}, random() % 2 == 0);
    }
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (size_t n = random() % 20; n > 0; --n) text += Token(random);
      const test::Ids ids = file->Encode(
          text, {.add_special = random() % 2 == 0, .parse_special = random() % 2 == 0});
      for (const TokenId id : ids) ASSERT_TRUE(file->vocab().Has(id));
      file->Decode(ids);
    }
  });
  EXPECT_EQ(accepted, error.empty()) << error;
  return accepted;
}

TEST(Hostile, SpmVocabularies) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 150; ++round) {
    VocabSpec spec = SpmSpec();
    if (random() % 4 == 0) {  // without some byte tokens
      spec.tokens.resize(200);
      spec.scores.resize(200);
      spec.types.resize(200);
    }
    AddNonsense(random, spec);
    accepted += UseAll(random, spec);
  }
  EXPECT_GT(accepted, 50);
}

TEST(Hostile, RawBpeVocabularies) {
  std::mt19937 random(1);
  int accepted = 0;
  for (int round = 0; round < 150; ++round) {
    VocabSpec spec = SpmSpec();
    spec.model = "gemma4";
    for (const char* token : {"a", "b", "<", "\u2581", "\u00E9", "\n"}) spec.Add(token);
    AddNonsense(random, spec);
    AddMerges(random, spec);
    accepted += UseAll(random, spec);
  }
  EXPECT_GT(accepted, 50);
}

// The text is a long run of unknown characters, without a space to cut it at.
TEST(Hostile, LongUnknownTexts) {
  VocabSpec spec = SpmSpec();
  spec.tokens.pop_back();  // without all bytes, characters without a token are unknown
  spec.scores.pop_back();
  spec.types.pop_back();
  const VocabFile file(spec);
  const std::clock_t start = std::clock();
  EXPECT_FALSE(file->Encode(std::string(4'000'000, 'x')).empty());
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20);  // minutes if not cut
}

TEST(Hostile, BpeVocabularies) {
  std::mt19937 random(1);
  int accepted = 0;
  const std::vector<std::string> pres = {"llama-bpe", "gpt-2",        "smollm",
                                         "default",   "deepseek-llm", "deepseek-v3"};
  for (int round = 0; round < 150; ++round) {
    VocabSpec spec = BpeSpec(Pick(random, pres));
    AddNonsense(random, spec);
    AddMerges(random, spec);
    accepted += UseAll(random, spec);
  }
  EXPECT_GT(accepted, 50);
}

}  // namespace
}  // namespace tokenizer
