// Unigram vocabularies in XLM-RoBERTa's form. The sentencepiece library trained the model and gave
// the expected ids (tests/data/make_unigram.py). Also tests damaged character tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gguf/writer.h"
#include "tests/support/data.h"
#include "tests/support/error_of.h"
#include "tests/support/json.h"
#include "tests/tokenizer/vocab_file.h"

namespace tokenizer {
namespace {

using test::Ids;
using test::kPlain;

constexpr const char* kCharsmap = "tokenizer.ggml.precompiled_charsmap";

gguf::File Open() { return gguf::File::Open(test::DataPath("unigram/unigram.gguf").string()); }

std::vector<std::pair<std::string, Ids>> Expected() {
  std::vector<std::pair<std::string, Ids>> expected;
  const std::string path = test::DataPath("unigram/unigram.json").string();
  for (const test::Json& one : test::Json::parse(test::ReadText(path)))
    expected.emplace_back(one[0].get<std::string>(), one[1].get<Ids>());
  return expected;
}

TEST(Unigram, GivesSentencepiecesIds) {
  const gguf::File file = Open();
  const auto tokenizer = Tokenizer::Create(file);
  for (const auto& [text, ids] : Expected()) {
    EXPECT_EQ(tokenizer->Encode(text, kPlain), ids) << text;
    Ids around = {0};
    around.insert(around.end(), ids.begin(), ids.end());
    around.push_back(2);
    EXPECT_EQ(tokenizer->Encode(text), around) << text;
  }
  EXPECT_GE(Expected().size(), 20u);
}

// The library gets long texts in parts, cut before spaces and line ends.
TEST(Unigram, GivesLongTextsTheirWordsIds) {
  const gguf::File file = Open();
  const auto tokenizer = Tokenizer::Create(file);
  const Ids words = tokenizer->Encode("balakimo su,", kPlain);
  std::string text;
  Ids expected;
  for (int i = 0; i < 3000; ++i) {
    text += i % 7 == 0 ? "  balakimo\tsu, " : " balakimo su,";
    expected.insert(expected.end(), words.begin(), words.end());
  }
  EXPECT_EQ(tokenizer->Encode(text, kPlain), expected);
  std::replace(text.begin(), text.end(), ' ', '\n');
  EXPECT_EQ(tokenizer->Encode(text, kPlain), expected);
}

TEST(Unigram, FindsSpecialTokensAndPieces) {
  const gguf::File file = Open();
  const auto tokenizer = Tokenizer::Create(file);
  const TokenId mask = tokenizer->Find("<mask>");
  const Ids bala = tokenizer->Encode("bala", kPlain), kimo = tokenizer->Encode("kimo", kPlain);
  Ids expected = bala;
  expected.push_back(mask);
  expected.insert(expected.end(), kimo.begin(), kimo.end());
  EXPECT_EQ(tokenizer->Encode("bala<mask>kimo", {.add_special = false, .parse_special = true}),
            expected);
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("  bala   kimo ")), "bala kimo");
  EXPECT_EQ(tokenizer->vocab().unk, 3);
}

// Returns the message of opening the file with this table, or of tokenizing texts with it.
std::string ErrorWith(const std::vector<uint8_t>& charsmap) {
  const gguf::File good = Open();
  gguf::Writer writer;
  for (const auto& entry : good.metadata().entries()) {
    if (entry.key != kCharsmap) writer.Add(entry);
  }
  writer.AddArray<uint8_t>(kCharsmap, std::span<const uint8_t>(charsmap));
  const std::vector<std::byte> bytes = writer.ToBytes();
  return test::ErrorOf([&] {
    const gguf::File file = gguf::File::Parse("f.gguf", bytes);
    const auto tokenizer = Tokenizer::Create(file);
    auto texts = Expected();
    texts.push_back({std::string(50, 'b'), {}});
    texts.push_back({std::string("\0b\0\0kimo\0", 9), {}});
    for (const auto& [text, ids] : texts) {
      for (const TokenId id : tokenizer->Encode(text)) ASSERT_TRUE(tokenizer->vocab().Has(id));
    }
  });
}

TEST(Unigram, RefusesBrokenTables) {
  const std::string broken =
      "f.gguf: key \"tokenizer.ggml.precompiled_charsmap\": expected a table of characters, found "
      "a "
      "broken one";
  std::vector<uint8_t> good;
  for (const int64_t byte : Open().metadata().GetInts(kCharsmap))
    good.push_back(static_cast<uint8_t>(byte));
  EXPECT_EQ(ErrorWith(good), "");
  for (const size_t n : {size_t{0}, size_t{1}, size_t{4}, size_t{600}, good.size() - 1}) {
    EXPECT_EQ(ErrorWith({good.begin(), good.begin() + static_cast<ptrdiff_t>(n)}), broken) << n;
  }
  std::mt19937 random(1);
  size_t n_refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::vector<uint8_t> damaged = good;
    for (size_t n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = static_cast<uint8_t>(random() % 256);
    const std::string error = ErrorWith(damaged);
    EXPECT_TRUE(error.empty() || error == broken) << error;
    n_refused += !error.empty();
  }
  EXPECT_GT(n_refused, 100u);
  // In the first trie "b" leads back to itself, so that a walk may have any length. In the second
  // NUL leads out of the trie.
  for (const uint32_t unit : {0x62u << 10 | 0x100 | 0x62, 0u}) {
    std::vector<uint32_t> words(513);
    words[0] = 512 * 4;
    words[1] = 256 << 10;
    words[1 + 256] = unit != 0 ? 0x80000000 : 0x1FFFFFu << 10;
    words[1 + (256 ^ 'b')] = unit;
    std::vector<uint8_t> table(words.size() * 4 + 2);
    std::memcpy(table.data(), words.data(), words.size() * 4);
    table[table.size() - 2] = 'x';
    EXPECT_EQ(ErrorWith(table), broken) << unit;
  }
  // One character would become a very long text.
  std::vector<uint8_t> longer(good.begin(), good.end() - 1);
  longer.insert(longer.end(), 100, 'x');
  longer.push_back(0);
  EXPECT_EQ(ErrorWith(longer), broken);
}

}  // namespace
}  // namespace tokenizer
