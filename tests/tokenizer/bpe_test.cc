// Byte-level BPE vocabularies: ids worked out by hand, or by the definition of the algorithm.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/tokenizer/vocab_file.h"
#include "tokenizer/spelling.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

using test::AddMerge;
using test::BpeSpec;
using test::Ids;
using test::kPlain;
using test::VocabFile;
using test::VocabSpec;

const std::string kSpace = "\u0120";  // a space in the byte alphabet

// One name for each row of patterns.
const std::vector<std::string> kPatterns = {
    "gpt-2",  "llama-bpe", "dbrx",    "qwen2",        "qwen35",         "seed-coder", "tekken",
    "gpt-4o", "smollm",    "default", "deepseek-llm", "deepseek-coder", "deepseek-v3"};

struct BpeExample {
  explicit BpeExample(const std::string& pre) : spec(BpeSpec(pre)) {}
  VocabSpec spec;
  TokenId ll = AddMerge(spec, "l", "l");
  TokenId he = AddMerge(spec, "h", "e");
  TokenId lo = AddMerge(spec, "l", "o");
  TokenId hell = AddMerge(spec, "he", "ll");
  TokenId space_he = AddMerge(spec, kSpace, "he");
};

TEST(ByteAlphabet, SpellsEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    std::string spelling;
    AppendSpelling(text, spelling);
    EXPECT_EQ(spelling, test::ByteCharacter(byte)) << byte;
    EXPECT_EQ(BytesOfSpelling(spelling), text) << byte;
  }
  EXPECT_EQ(BytesOfSpelling(""), "");
  for (const std::string other :
       {" ", "\n", "\u00AD", "\u0144", "\u2581", "\xC4", "\xC4x", "\xFF"}) {
    EXPECT_EQ(BytesOfSpelling(other), std::nullopt) << other;
  }
}

TEST(Bpe, MergesByRank) {
  const BpeExample x("gpt-2");
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("hello"), (Ids{x.hell, 'o'}));
  EXPECT_EQ(file->Encode("helo"), (Ids{x.he, x.lo}));
  EXPECT_EQ(file->Encode("lllo"), (Ids{x.ll, x.lo}));  // the leftmost ll first
  EXPECT_EQ(file->Encode("l he"), (Ids{'l', x.space_he}));
  EXPECT_EQ(file->Encode(""), Ids{});
  EXPECT_EQ(file->Encode("\u00E9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(file->Decode({x.hell, 'o', x.space_he}), "hello he");
}

TEST(Bpe, OfAMergeThatIsThereTwiceTheFirstCounts) {
  BpeExample x("gpt-2");
  AddMerge(x.spec, "h", "e");
  AddMerge(x.spec, "l", "l");
  EXPECT_EQ(VocabFile(x.spec)->Encode("hello"), (Ids{x.hell, 'o'}));
}

TEST(Bpe, OfTokensThatAreSpeltTheSameTheLastCounts) {
  BpeExample x("gpt-2");
  const TokenId he = x.spec.Add("he");
  EXPECT_EQ(VocabFile(x.spec)->Encode("helhello"), (Ids{he, 'l', x.hell, 'o'}));
}

TEST(Bpe, WholeWordsBeforeMergesWhereThePatternSaysSo) {
  for (const std::string pre : {"llama-bpe", "smaug-bpe"}) {
    BpeExample x(pre);
    const TokenId hello = x.spec.Add("hello");  // no merge makes this token
    const TokenId control = x.spec.Add("hel", 0, TokenType::kControl);
    const VocabFile file(x.spec);
    EXPECT_EQ(file->Encode("hello", kPlain),
              pre == "llama-bpe" ? (Ids{hello}) : (Ids{x.hell, 'o'}));
    EXPECT_EQ(file->Encode("hel", kPlain), (Ids{x.he, 'l'}));
    EXPECT_EQ(file->Encode("hel", {.add_special = false, .parse_special = true}), (Ids{control}));
  }
}

TEST(Bpe, BytesThatAreNoUtf8) {
  const BpeExample x("gpt-2");
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he\xFFlo\xE2\x82"), (Ids{x.he, 0xFF, x.lo, 0xE2, 0x82}));
  const std::string nul("he\0", 3);
  EXPECT_EQ(file->Encode(nul), (Ids{x.he, 0}));
}

TEST(Bpe, SpecialTokens) {
  BpeExample x("llama-bpe");
  const TokenId begin = x.spec.Add("<|begin|>", 0, TokenType::kControl);
  const TokenId think = x.spec.Add("<think>", 0, TokenType::kUserDefined);
  const TokenId pad = x.spec.Add("[\u2581pad]");  // not in the byte alphabet, but normal
  x.spec.more.Add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(begin));
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he"), (Ids{begin, x.he}));
  EXPECT_EQ(file->Encode("<|begin|>", {.add_special = false, .parse_special = true}), (Ids{begin}));
  EXPECT_EQ(file->Encode("<|begin|>", kPlain).size(), 9u);
  EXPECT_EQ(file->Encode("he<think>lo", kPlain), (Ids{x.he, think, x.lo}));
  EXPECT_EQ(file->Piece(think), "<think>");
  EXPECT_EQ(file->Piece(begin), "");
  EXPECT_EQ(file->Piece(begin, true), "<|begin|>");
  EXPECT_EQ(file->Piece(pad), "[\u2581pad]");
  EXPECT_EQ(file->Piece('\n'), "\n");
  EXPECT_EQ(file->Decode({begin, x.space_he, think}), " he<think>");
}

TEST(Bpe, WithoutAllBytes) {
  BpeExample x("gpt-2");
  x.spec.tokens[0xFF] = "gone";
  x.spec.tokens['e'] = "gone too";
  x.spec.merges.clear();
  AddMerge(x.spec, "l", "l");
  EXPECT_EQ(VocabFile(x.spec)->Encode("hell\xFF"), (Ids{'h', x.ll}));
  const TokenId unk = x.spec.Add("<unk>", 0, TokenType::kUnknown);
  EXPECT_EQ(VocabFile(x.spec)->Encode("hell\xFF"), (Ids{'h', unk, x.ll, unk}));
}

// Merges by the definition: the pair with the lowest rank first, the leftmost of equal pairs.
Ids MergedByDefinition(const std::map<std::pair<TokenId, TokenId>, size_t>& ranks,
                       const Ids& results, const std::string& word) {
  Ids ids;
  for (const char byte : word) ids.push_back(static_cast<uint8_t>(byte));
  for (;;) {
    size_t best = ids.size();
    size_t best_rank = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rank = ranks.find({ids[i], ids[i + 1]});
      if (rank == ranks.end() || (best != ids.size() && rank->second >= best_rank)) continue;
      best = i;
      best_rank = rank->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = results[best_rank];
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, RandomVocabulariesAgainstTheDefinition) {
  std::mt19937 random(1);
  const std::string letters = "abc";
  for (int round = 0; round < 30; ++round) {
    VocabSpec spec = BpeSpec("gpt-2");
    std::map<std::pair<TokenId, TokenId>, size_t> ranks;
    Ids results;
    std::vector<TokenId> parts = {'a', 'b', 'c'};
    while (results.size() < 40) {
      const TokenId left = parts[random() % parts.size()];
      const TokenId right = parts[random() % parts.size()];
      if (!ranks.emplace(std::pair(left, right), results.size()).second) continue;
      results.push_back(AddMerge(spec, spec.tokens[static_cast<size_t>(left)],
                                 spec.tokens[static_cast<size_t>(right)]));
      parts.push_back(results.back());
    }
    const VocabFile file(spec);
    for (int i = 0; i < 50; ++i) {
      std::string word;
      for (size_t n = random() % 60; n > 0; --n) word += letters[random() % letters.size()];
      ASSERT_EQ(file->Encode(word), MergedByDefinition(ranks, results, word)) << word;
    }
  }
}

// A word of n bytes takes O(n log n) time. Quadratic time would be hours here.
TEST(Bpe, OneWordOfMegabytes) {
  VocabSpec spec = BpeSpec("gpt-2");
  std::string token = "a";
  for (int i = 0; i < 10; ++i, token += token) AddMerge(spec, token, token);
  const VocabFile file(spec);
  const TokenId longest = 265;  // 1024 letters
  EXPECT_EQ(file->Encode(std::string((5 << 20) + 3, 'a')).size(), (5u << 10) + 2);
  EXPECT_EQ(file->Encode(std::string(2048, 'a')), (Ids{longest, longest}));
}

TEST(Bpe, LongRunsOfSpaces) {
  for (const std::string& pre : kPatterns) {
    BpeExample x(pre);
    const VocabFile file(x.spec);
    const std::string text = std::string(1 << 20, ' ') + "he" + std::string(1 << 20, '\n') + "!";
    EXPECT_EQ(file->Decode(file->Encode(text)), text) << pre;
  }
}

TEST(Bpe, AnyBytesComeBack) {
  std::mt19937 random(1);
  const std::string letters = "hel 0'\n\r!\xC3\xA9\xE2\x82\xAC\xF0\xFF";
  for (const std::string& pre : kPatterns) {
    BpeExample x(pre);
    x.spec.more.AddStrings(kNormalizerKey, {});  // otherwise NFC changes Qwen's texts
    const VocabFile file(x.spec);
    for (int round = 0; round < 500; ++round) {
      std::string text;
      for (size_t n = random() % 40; n > 0; --n) {
        text += random() % 4 ? letters[random() % letters.size()] : static_cast<char>(random());
      }
      ASSERT_EQ(file->Decode(file->Encode(text)), text);
    }
  }
}

}  // namespace
}  // namespace tokenizer
