// "bert" vocabularies: ids worked out by hand, and golden ids if the shared folder exists.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "gguf/utf8.h"
#include "tests/support/data.h"
#include "tests/support/json.h"
#include "tests/tokenizer/vocab_file.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

using test::Ids;
using test::kMark;
using test::VocabFile;
using test::VocabSpec;

// Tokens that begin a word, and tokens that continue one.
struct WordPieceExample {
  WordPieceExample() {
    spec.model = "bert";
    cls = Special("[CLS]");
    sep = Special("[SEP]");
    unk = Special("[UNK]");
    spec.more.Add("tokenizer.ggml.bos_token_id", static_cast<uint32_t>(cls));
    spec.more.Add("tokenizer.ggml.seperator_token_id", static_cast<uint32_t>(sep));
    spec.more.Add("tokenizer.ggml.unknown_token_id", static_cast<uint32_t>(unk));
    sing = spec.Add(kMark + "sing"), s = spec.Add(kMark + "s"), cafe = spec.Add(kMark + "cafe");
    ing = spec.Add("ing"), i = spec.Add("i"), er = spec.Add("er");
    comma = spec.Add(kMark + ","), plus = spec.Add(kMark + "+"), han = spec.Add(kMark + "\u4E2D");
    big = spec.Add(kMark + "CAF"), acute = spec.Add("\u00C9");
  }
  TokenId Special(const char* text) { return spec.Add(text, 0, TokenType::kControl); }

  VocabSpec spec;
  TokenId cls, sep, unk, sing, s, cafe, ing, i, er, comma, plus, han, big, acute;
};

Ids Encoded(const VocabFile& file, const std::string& text) {
  return file->Encode(text, {.add_special = false});
}

TEST(WordPiece, TakesTheLongestTokensOfEachWord) {
  const WordPieceExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(Encoded(file, "singing"), (Ids{x.sing, x.ing}));
  EXPECT_EQ(Encoded(file, "sing ser"), (Ids{x.sing, x.s, x.er}));
  EXPECT_EQ(Encoded(file, "singi, s"), (Ids{x.sing, x.i, x.comma, x.s}));
  EXPECT_EQ(Encoded(file, "ing s"), (Ids{x.unk, x.s}));       // no token begins a word like this
  EXPECT_EQ(Encoded(file, "singings s"), (Ids{x.unk, x.s}));  // no token continues a word with s
  EXPECT_EQ(Encoded(file, "s\u4E2Ds+\u00A0\t\u3000s"), (Ids{x.s, x.han, x.s, x.plus, x.s}));
  EXPECT_EQ(Encoded(file, " \n"), Ids{});
  EXPECT_EQ(file->Encode(""), (Ids{x.cls, x.sep}));
  EXPECT_EQ(file->Encode("s"), (Ids{x.cls, x.s, x.sep}));
  EXPECT_EQ(file->Decode({x.sing, x.ing, x.comma}), " singing ,");
}

TEST(WordPiece, CanBeInterrupted) {
  const WordPieceExample x;
  const VocabFile file(x.spec);
  int n = 0;
  const std::function<bool()> should_stop = [&] { return ++n == 100; };
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "si ";
  EXPECT_THROW(file->Encode(text, {.should_stop = &should_stop}), Interrupted);
}

TEST(WordPiece, DropsCaseAccentsAndControlCharacters) {
  WordPieceExample x;
  const VocabFile file(x.spec);
  EXPECT_EQ(Encoded(file, "CAF\u00C9 cafe\u0301 c\u00ADaf\u0007e\u200B"),
            (Ids{x.cafe, x.cafe, x.cafe}));
  EXPECT_EQ(Encoded(file, "s\u2028s"), (Ids{x.s, x.s}));
  x.spec.more.Add("tokenizer.ggml.normalizer.lowercase", false);
  EXPECT_EQ(Encoded(VocabFile(x.spec), "CAF\u00C9 SING"), (Ids{x.big, x.acute, x.unk}));
  x.spec.more.Add("tokenizer.ggml.normalizer.strip_accents", true);
  EXPECT_EQ(Encoded(VocabFile(x.spec), "caf\u00E9 CAF\u00C9"), (Ids{x.cafe, x.unk}));
}

// A word of more than 100 characters is unknown.
TEST(WordPiece, LongWordsAreUnknown) {
  const WordPieceExample x;
  EXPECT_EQ(Encoded(VocabFile(x.spec), std::string(101, 's')), Ids{x.unk});
}

TEST(WordPiece, EqualsTheGoldenIds) {
  const auto folder = test::SharedPath("golden/embeddings");
  if (folder.empty()) GTEST_SKIP() << "no golden data beside the checkout";
  const auto all = test::Json::parse(test::ReadText(folder / "tokens.json"));
  for (const auto& item : all.items()) {
    const std::string name = item.first;
    const bool is_real = name == "bert-vocab";
    gguf::File file = gguf::File::Open(folder / (is_real ? "bert-vocab.gguf" : "bert-cls.gguf"));
    // "tiny-lower0-strip2": 2 means that there is no such key.
    const auto set = [&](const char* key, const char* flag) {
      const char value = is_real ? '2' : name[name.find(flag) + std::string(flag).size()];
      if (value != '2') file.metadata().SetBool(key, value == '1');
    };
    set("tokenizer.ggml.normalizer.lowercase", "lower");
    set("tokenizer.ggml.normalizer.strip_accents", "strip");
    const auto tokenizer = Tokenizer::Create(file);
    for (const auto& entry : item.second["cases"]) {
      // Unlike BERT's own tokenizer, the golden engine accepts long words, drops vowel signs of
      // Indic scripts, and keeps only the first letter of a Hangul syllable.
      const auto text = entry[0].get<std::string>();
      bool differs = text.size() > 100 && text.find(' ') == std::string::npos;
      for (const auto& [c, bytes] : gguf::Characters(text)) {
        differs |= (c >= 0x900 && c < 0xE00) || (c >= 0xAC00 && c < 0xD7B0);
      }
      if (differs) continue;
      EXPECT_EQ(tokenizer->Encode(entry[0].get<std::string>()), entry[1].get<Ids>())
          << name << ": " << entry[0];
    }
  }
}

}  // namespace
}  // namespace tokenizer
