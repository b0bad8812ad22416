// "gemma4" vocabularies: ids worked out by hand.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/support/error_of.h"
#include "tests/tokenizer/vocab_file.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

using test::AddMerge;
using test::Ids;
using test::kFirstByte;
using test::kMark;
using test::kPlain;
using test::VocabFile;
using test::VocabSpec;

TokenId Byte(int byte) { return kFirstByte + byte; }

// <unk>, <s>, </s>, the byte tokens, then text.
struct RawExample {
  RawExample() {
    spec.model = "gemma4";
    spec.scores.clear();
  }
  VocabSpec spec = test::SpmSpec();
  TokenId h = spec.Add("h"), e = spec.Add("e"), l = spec.Add("l"), o = spec.Add("o");
  TokenId space = spec.Add(kMark), newline = spec.Add("\n"), eacute = spec.Add("\u00E9");
  TokenId ll = AddMerge(spec, "l", "l");
  TokenId he = AddMerge(spec, "h", "e");
  TokenId lo = AddMerge(spec, "l", "o");
  TokenId space_he = AddMerge(spec, kMark, "he");
  TokenId two_spaces = AddMerge(spec, kMark, kMark);
  TokenId o_he = AddMerge(spec, "o", kMark + "he");  // contains a space
  TokenId three_newlines = spec.Add("\n\n\n");       // no merge makes this
};

TEST(RawBpe, MergesByRankAcrossSpaces) {
  const RawExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("hello", kPlain), (Ids{x.he, x.ll, x.o}));
  EXPECT_EQ(file->Encode("helo", kPlain), (Ids{x.he, x.lo}));
  EXPECT_EQ(file->Encode(" he", kPlain), Ids{x.space_he});
  EXPECT_EQ(file->Encode("o he", kPlain), Ids{x.o_he});
  EXPECT_EQ(file->Encode("   he", kPlain), (Ids{x.two_spaces, x.space_he}));
  EXPECT_EQ(file->Encode("  ", kPlain), Ids{x.two_spaces});
  EXPECT_EQ(file->Encode("", kPlain), Ids{});
  EXPECT_EQ(file->Decode({x.he, x.ll, x.o_he, x.two_spaces, x.eacute}), "hello he  \u00E9");
}

TEST(RawBpe, RunsOfLineEnds) {
  const RawExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he\n\n\nhe", kPlain), (Ids{x.he, x.three_newlines, x.he}));
  EXPECT_EQ(file->Encode("\n\n", kPlain), (Ids{x.newline, x.newline}));
  EXPECT_EQ(file->Encode("\n he\n", kPlain), (Ids{x.newline, x.space_he, x.newline}));
}

TEST(RawBpe, WhatIsNoTokenBecomesItsBytes) {
  const RawExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("h\u20ACe", kPlain), (Ids{x.h, Byte(0xE2), Byte(0x82), Byte(0xAC), x.e}));
  EXPECT_EQ(file->Encode("z\u00E9\xFFh\xC3", kPlain),
            (Ids{Byte('z'), x.eacute, Byte(0xFF), x.h, Byte(0xC3)}));
  EXPECT_EQ(file->Encode("</s>", kPlain),
            (Ids{Byte('<'), Byte('/'), Byte('s'), Byte('>')}));  // not the control token
  const std::string text = std::string("a\0b", 3) + "\xFF \xE2\x82\r\n\u4E2D";
  EXPECT_EQ(file->Decode(file->Encode(text)), text);
}

TEST(RawBpe, BosWhateverTheFileSays) {
  RawExample x;
  x.spec.more.Add("tokenizer.ggml.bos_token_id", uint32_t{1});
  x.spec.more.Add("tokenizer.ggml.add_bos_token", false);
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("he"), (Ids{1, x.he}));
  EXPECT_FALSE(file->vocab().add_space_prefix);
}

TEST(RawBpe, SpecialTokens) {
  RawExample x;
  const TokenId turn = x.spec.Add("<|turn>", 0, TokenType::kControl);
  const TokenId spaces = x.spec.Add(kMark + kMark + kMark, 0, TokenType::kUserDefined);
  const VocabFile file(x.spec);
  EXPECT_EQ(file->Encode("<|turn>he   he", {.add_special = false, .parse_special = true}),
            (Ids{turn, x.he, spaces, x.he}));
  EXPECT_EQ(file->Piece(spaces), "   ");
  EXPECT_EQ(file->Piece(turn), "");
}

TEST(RawBpe, WithoutAllBytes) {
  RawExample x;
  x.spec.tokens[kFirstByte + 'z'] = "<0x00>";
  // tokenizers 0.23.3 gave these ids (BPE with byte_fallback and fuse_unk).
  for (const auto& [text, expected] : std::vector<std::pair<std::string, Ids>>{
           {"hz", {x.h, 0}},
           {"hzzo", {x.h, 0, x.o}},
           {"hz\u20ACe", {x.h, Byte(0xE2), Byte(0x82), Byte(0xAC), 0, x.e}},
           {"zyz", {Byte('y'), 0}},
           {"hz\nh", {x.h, 0, x.newline, x.h}},
           {"hzy\n\nz", {x.h, Byte('y'), 0, x.newline, x.newline, 0}}}) {
    EXPECT_EQ(VocabFile(x.spec)->Encode(text, kPlain), expected) << text;
  }
  x.spec.types[0] = TokenType::kControl;
  EXPECT_TRUE(test::Has(test::ErrorOf([&] { VocabFile file(x.spec); }),
                        "found 255 byte tokens and no unknown one"));
}

TEST(RawBpe, MergesMustBeOfTokens) {
  RawExample x;
  x.spec.merges.push_back("he zz");
  EXPECT_TRUE(test::Has(test::ErrorOf([&] { VocabFile file(x.spec); }), "as merge 6"));
  x.spec.merges.clear();
  EXPECT_TRUE(test::Has(test::ErrorOf([&] { VocabFile file(x.spec); }), "merges"));
}

// A line is a word, however long; it is cut between characters.
TEST(RawBpe, OneLineOfMegabytes) {
  const RawExample x;
  const VocabFile file(x.spec);
  std::string text = "h";
  while (text.size() < (size_t{5} << 20)) text += "\u00E9";
  const Ids ids = file->Encode(text, kPlain);
  EXPECT_EQ(ids.size(), text.size() / 2 + 1);
  EXPECT_EQ(file->Decode(ids), text);
}

TEST(RawBpe, AnyBytesComeBack) {
  std::mt19937 random(1);
  const std::string letters = "helo  \n\n\xC3\xA9\xE2\x82\xAC\xF0\xFF";
  const RawExample x;
  const VocabFile file(x.spec);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t n = random() % 40; n > 0; --n) text += letters[random() % letters.size()];
    ASSERT_EQ(file->Decode(file->Encode(text)), text);
  }
}

}  // namespace
}  // namespace tokenizer
