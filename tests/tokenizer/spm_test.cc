// SPM vocabularies: ids worked out by hand, or by the definition of the algorithm.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gguf/utf8.h"
#include "tests/tokenizer/vocab_file.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

using test::Ids;
using test::kFirstByte;
using test::kMark;
using test::kPlain;
using test::SpmSpec;
using test::VocabFile;
using test::VocabSpec;

TokenId ByteId(int byte) { return kFirstByte + byte; }

// The vocabulary of the examples. Pairs merge in the order of the scores.
struct SpmExample {
  VocabSpec spec = SpmSpec();
  TokenId space = spec.Add(kMark, -10);
  TokenId h = spec.Add("h", -11);
  TokenId e = spec.Add("e", -12);
  TokenId l = spec.Add("l", -13);
  TokenId o = spec.Add("o", -14);
  TokenId he = spec.Add("he", -2);
  TokenId ll = spec.Add("ll", -1);
  TokenId hell = spec.Add("hell", -4);
  TokenId lo = spec.Add("lo", -3);
  TokenId space_he = spec.Add(kMark + "he", -6);
};

TEST(Spm, MergesByScore) {
  const SpmExample x;
  const VocabFile file(x.spec);
  // "▁hello": ll (-1), he (-2), hell (-4). Then lo cannot merge, and ▁hell is not a piece.
  EXPECT_EQ(file->Encode("hello", kPlain), (Ids{x.space, x.hell, x.o}));
  // "▁helo": he (-2), lo (-3), ▁he (-6).
  EXPECT_EQ(file->Encode("helo", kPlain), (Ids{x.space_he, x.lo}));
  EXPECT_EQ(file->Encode("helo"), (Ids{1, x.space_he, x.lo}));
  EXPECT_EQ(file->Decode(file->Encode("helo")), "helo");
}

TEST(Spm, KeepsAllSpaces) {
  const SpmExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("", kPlain), Ids{});
  EXPECT_EQ(file->Encode(" ", kPlain), (Ids{x.space, x.space}));
  EXPECT_EQ(file->Encode("  he ", kPlain), (Ids{x.space, x.space, x.space_he, x.space}));
  EXPECT_EQ(file->Decode(file->Encode("  he ")), "  he ");
}

TEST(Spm, FallsBackToBytes) {
  const SpmExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("h\u00E4\n", kPlain),
            (Ids{x.space, x.h, ByteId(0xC3), ByteId(0xA4), ByteId('\n')}));
  const std::string nul("h\0h", 3);
  EXPECT_EQ(file->Encode(nul, kPlain), (Ids{x.space, x.h, ByteId(0), x.h}));
  EXPECT_EQ(file->Decode(file->Encode(nul)), nul);
}

TEST(Spm, BytesThatAreNoUtf8) {
  const SpmExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he\xFFlo\xE2\x82", kPlain),
            (Ids{x.space_he, ByteId(0xFF), x.lo, ByteId(0xE2), ByteId(0x82)}));
  EXPECT_EQ(file->Encode("\xFFhe", kPlain), (Ids{x.space, ByteId(0xFF), x.he}));
  EXPECT_EQ(file->Decode(file->Encode("\xFFhe")), "\xFFhe");
}

TEST(Spm, SpecialTokensOnlyWhereAsked) {
  SpmExample x;
  const TokenId user = x.spec.Add("<he>", 0, TokenType::kUserDefined);
  const TokenId user2 = x.spec.Add(kMark + kMark, 0, TokenType::kUserDefined);
  const VocabFile file(x.spec);
  const Ids as_text = file->Encode("<s>", kPlain);
  EXPECT_EQ(as_text, (Ids{x.space, ByteId('<'), ByteId('s'), ByteId('>')}));
  EXPECT_EQ(file->Encode("<s>he</s>", {.add_special = true, .parse_special = true}),
            (Ids{1, 1, x.space_he, 2}));
  EXPECT_EQ(file->Encode("<unk>", {.add_special = false, .parse_special = true}), (Ids{0}));
  // User-defined tokens are found in any text, and their U+2581 is a space.
  EXPECT_EQ(file->Encode("lo<he>lo", kPlain), (Ids{x.space, x.lo, user, x.space, x.lo}));
  EXPECT_EQ(file->Encode("lo  lo", kPlain), (Ids{x.space, x.lo, user2, x.space, x.lo}));
  EXPECT_EQ(file->Decode(file->Encode("lo  lo<he>")), "lo  lo<he>");
}

TEST(Spm, Pieces) {
  const SpmExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Piece(x.space_he), " he");
  EXPECT_EQ(file->Piece(ByteId(0xE2)), "\xE2");
  EXPECT_EQ(file->Piece(1), "");
  EXPECT_EQ(file->Piece(1, true), "<s>");
  EXPECT_EQ(file->Piece(0), "");
  EXPECT_EQ(file->Piece(-1), "");
  EXPECT_EQ(file->Piece(1 << 30), "");
  EXPECT_EQ(file->Find(kMark + "he"), x.space_he);
  EXPECT_EQ(file->Find("nothing"), -1);
  EXPECT_EQ(file->Decode({1, x.space_he, -1, 1 << 30, 2}, true), "<s>he</s>");
}

TEST(Spm, VocabulariesThatSentencepieceWouldRefuse) {
  SpmExample x;
  const TokenId he2 = x.spec.Add("he", -2);                         // duplicate
  x.spec.Add("", -1);                                               // empty
  x.spec.Add("l\xFF", -1);                                          // not UTF-8
  x.spec.Add("<unk>", 0, TokenType::kUnknown);                      // a second unknown token
  const TokenId byte2 = x.spec.Add("<0x0a>", 0, TokenType::kByte);  // a second byte token
  x.spec.Add("", 0, TokenType::kControl);
  x.spec.Add("", 0, TokenType::kUserDefined);
  x.spec.Add(std::string("a\0b", 3), 0, TokenType::kUserDefined);
  x.spec.scores[static_cast<size_t>(x.lo)] = -INFINITY;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he\nlohe", kPlain), (Ids{x.space_he, byte2, x.lo, he2}));
}

TEST(Spm, UnusedPiecesAreTakenApartAgain) {
  SpmExample x;
  x.spec.types[static_cast<size_t>(x.he)] = TokenType::kUnused;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("heo", kPlain), (Ids{x.space_he, x.o}));  // he merges first
  EXPECT_EQ(file->Encode("lhe", kPlain), (Ids{x.space, x.l, x.h, x.e}));
}

TEST(Spm, UnusedPiecesCannotExhaustTheStack) {
  VocabSpec spec = SpmSpec();
  spec.Add(kMark);
  for (size_t n = 1; n <= 3000; ++n) {
    spec.Add(std::string(n, 'a'), static_cast<float>(n), TokenType::kUnused);
  }
  const std::string text(3000, 'a');
  const VocabFile file(spec);
  EXPECT_EQ(file->Decode(file->Encode(text)), text);
}

TEST(Spm, WithoutAllByteTokens) {
  SpmExample x;
  x.spec.types[static_cast<size_t>(ByteId('\n'))] = TokenType::kNormal;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("h\nh", kPlain), (Ids{x.space, x.h, 0, x.h}));
  EXPECT_EQ(file->Encode("h\xFFh", kPlain), (Ids{x.space, x.h, ByteId(0xFF), x.h}));
}

TEST(Spm, WithoutUnknownToken) {
  SpmExample x;
  x.spec.types[0] = TokenType::kControl;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->vocab().unk, -1);
  EXPECT_EQ(file->Encode("h\u00E4", kPlain), (Ids{x.space, x.h, ByteId(0xC3), ByteId(0xA4)}));
}

// If a byte has no token, only characters with this byte are unknown.
TEST(Spm, BytesOfSomeCharacters) {
  SpmExample x;
  x.spec.types[static_cast<size_t>(ByteId('\t'))] = TokenType::kNormal;
  x.spec.tokens[static_cast<size_t>(ByteId('\t'))] = "\t";
  x.spec.types[static_cast<size_t>(ByteId('\n'))] = TokenType::kNormal;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("\t\u00E4", kPlain),
            (Ids{x.space, ByteId('\t'), ByteId(0xC3), ByteId(0xA4)}));
  EXPECT_EQ(file->Encode("h\n\nh", kPlain), (Ids{x.space, x.h, 0, x.h}));  // one unknown token
}

// Some added tokens strip white space, as in Phi-3, whose files have no key for this.
TEST(Spm, AddedTokensThatTakeWhiteSpace) {
  for (const bool has_key : {false, true}) {
    SpmExample x;
    const TokenId user = x.spec.Add("<|user|>", 0, TokenType::kControl);
    const TokenId other = x.spec.Add("<|x|>", 0, TokenType::kControl);
    if (has_key) {
      const int32_t ids[] = {user};
      x.spec.more.AddArray("tokenizer.pronk.rstrip", std::span<const int32_t>(ids));
      const int32_t left[] = {other};
      x.spec.more.AddArray("tokenizer.pronk.lstrip", std::span<const int32_t>(left));
    } else {
      x.spec.more.Add("general.name", "Phi 3 mini, a Phi-3 model");
    }
    const VocabFile file(x.spec);
    const EncodeOptions special = {.add_special = false, .parse_special = true};
    EXPECT_EQ(file->Encode("<|user|>\n \u00A0he", special), (Ids{user, x.space_he}));
    EXPECT_EQ(file->Encode("<|user|> \n<|user|>", special), (Ids{user, user}));
    EXPECT_EQ(file->Encode("<s> he", special), (Ids{1, x.space, x.space_he}));
    if (has_key) {
      EXPECT_EQ(file->Encode("he \n <|x|>", special), (Ids{x.space_he, other}));
      EXPECT_EQ(file->Encode("<|user|>  <|x|> he", special),
                (Ids{user, other, x.space, x.space_he}));
    }
  }
}

// Mistral v0.3 puts a space only before the text, and not before a space.
TEST(Spm, SpaceBeforeTheFirstWord) {
  SpmExample x;
  x.spec.more.Add("tokenizer.pronk.space_prefix", "first");
  const VocabFile file(x.spec);
  const EncodeOptions special = {.add_special = false, .parse_special = true};
  EXPECT_EQ(file->Encode("he<s>he", special), (Ids{x.space_he, 1, x.he}));
  EXPECT_EQ(file->Encode("<s>he", special), (Ids{1, x.he}));
  EXPECT_EQ(file->Encode(" he", special), Ids{x.space_he});
  EXPECT_EQ(file->Decode({1, x.space_he}), " he");
}

// Merges by the definition: of all neighbours that form a piece, the pair with the highest score
// first, the leftmost of equal pairs.
Ids ScoredByDefinition(const std::map<std::string, TokenId>& pieces, const VocabSpec& spec,
                       const std::string& text) {
  std::vector<std::string> symbols;
  for (size_t at = 0; at < text.size();) {
    const size_t n = gguf::NextUtf8(std::string_view(text).substr(at)).length;
    const std::string character = text.substr(at, n);
    symbols.push_back(character == " " ? kMark : character);
    at += n;
  }
  for (;;) {
    size_t best = symbols.size();
    float best_score = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto piece = pieces.find(symbols[i] + symbols[i + 1]);
      if (piece == pieces.end()) continue;
      const float score = spec.scores[static_cast<size_t>(piece->second)];
      if (best == symbols.size() || score > best_score) {
        best = i;
        best_score = score;
      }
    }
    if (best == symbols.size()) break;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& symbol : symbols) {
    const auto piece = pieces.find(symbol);
    if (piece != pieces.end()) {
      ids.push_back(piece->second);
    } else {
      for (const char byte : symbol) ids.push_back(ByteId(static_cast<uint8_t>(byte)));
    }
  }
  return ids;
}

TEST(Spm, RandomVocabulariesAgainstTheDefinition) {
  std::mt19937 random(1);
  const std::vector<std::string> letters = {"a", "b", "\u00E9", "\U0001F999"};
  const auto text_of = [&](size_t n, const std::string& space) {
    std::string text;
    for (; n > 0; --n) text += random() % 5 == 0 ? space : letters[random() % letters.size()];
    return text;
  };
  for (int round = 0; round < 30; ++round) {
    VocabSpec spec = SpmSpec();
    std::map<std::string, TokenId> pieces;
    pieces[kMark] = spec.Add(kMark);
    for (int i = 0; i < 60; ++i) {
      const std::string text = text_of(1 + random() % 4, kMark);
      if (pieces.contains(text)) continue;
      pieces[text] = spec.Add(text, -static_cast<float>(random() % 20));
    }
    const VocabFile file(spec);
    for (int i = 0; i < 50; ++i) {
      const std::string text = text_of(random() % 40, " ");
      const Ids expected = text.empty() ? Ids{} : ScoredByDefinition(pieces, spec, " " + text);
      ASSERT_EQ(file->Encode(text, kPlain), expected) << text;
      ASSERT_EQ(file->Decode(expected), text);
    }
  }
}

// sentencepiece gets long texts in parts. No piece can contain a place where they are cut.
TEST(Spm, LongTextIsTheSumOfItsWords) {
  const SpmExample x;
  const VocabFile file(x.spec);
  std::string text;
  Ids expected;
  std::mt19937 random(1);
  while (text.size() < 300000) {
    std::string word;
    for (size_t n = 1 + random() % 12; n > 0; --n) word += "helo"[random() % 4];
    if (!text.empty()) text += ' ';
    text += word;
    const Ids ids = file->Encode(word, kPlain);  // includes the space before the word
    expected.insert(expected.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(file->Encode(text, kPlain), expected);
}

// A piece contains each possible cut. Its last space may follow another space.
TEST(Spm, LongTextIsNotCutWhereAPieceMayLie) {
  for (const auto& [part, shorter, piece] : {std::tuple("o o", "o" + kMark, "o" + kMark + "o"),
                                             {"o  ", kMark + kMark, "o" + kMark + kMark}}) {
    SpmExample x;
    x.spec.Add(shorter, -2);
    const TokenId across = x.spec.Add(piece, -1);
    const VocabFile file(x.spec);
    std::string text;
    for (int i = 0; i < 50000; ++i) text += part;
    Ids expected = {x.space};
    expected.insert(expected.end(), 50000, across);
    EXPECT_EQ(file->Encode(text, kPlain), expected) << part;
  }
}

TEST(Spm, OneWordOfMegabytes) {
  const SpmExample x;
  const VocabFile file(x.spec);
  std::string text;
  while (text.size() < 3 << 20) text += "hello\u00E9";
  EXPECT_EQ(file->Decode(file->Encode(text)), text);
}

TEST(Spm, AnyBytesComeBack) {
  const SpmExample x;
  const VocabFile file(x.spec);
  std::mt19937 random(1);
  const std::string letters = "helo \n\xC3\xA9\xE2\x82\xAC\xF0\xFF";
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t n = random() % 30; n > 0; --n) {
      text += random() % 4 ? letters[random() % letters.size()] : static_cast<char>(random());
    }
    if (text.find(kMark) != std::string::npos) continue;  // the only character that is replaced
    ASSERT_EQ(file->Decode(file->Encode(text)), text);
  }
}

}  // namespace
}  // namespace tokenizer
