#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

// UTF-8 as its definition has it, for comparison: the encoding of one code point.
std::string Encoded(uint32_t c) {
  std::string out;
  const auto add = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
  return out;
}

TEST(Utf8, TakesEveryCharacterAndNoSurrogate) {
  for (uint32_t c = 0; c < 0x120000; ++c) {
    const std::string bytes = Encoded(c) + "x";
    const Utf8Step step = NextUtf8(bytes);
    const bool valid = c < 0x110000 && (c < 0xD800 || c > 0xDFFF);
    ASSERT_EQ(step.kind == Utf8Kind::kValid, valid) << c;
    if (valid) {
      ASSERT_EQ(step.length, bytes.size() - 1) << c;
    }
  }
}

TEST(Utf8, KnowsAnUnfinishedCharacter) {
  for (const uint32_t c : {0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    const std::string bytes = Encoded(c);
    for (size_t n = 1; n < bytes.size(); ++n) {
      const Utf8Step step = NextUtf8(bytes.substr(0, n));
      EXPECT_EQ(step.kind, Utf8Kind::kIncomplete);
      EXPECT_EQ(step.length, n);
    }
  }
}

TEST(Utf8, RefusesOverlongFormsAndStrayBytes) {
  for (const std::string bytes : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF",
                                  "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5", "\xFF"}) {
    const Utf8Step step = NextUtf8(bytes);
    EXPECT_EQ(step.kind, Utf8Kind::kInvalid);
    EXPECT_EQ(step.length, 1u);
  }
  EXPECT_EQ(NextUtf8("\xE2\x82x").length, 2u);
  EXPECT_EQ(NextUtf8("\xE2\x82x").kind, Utf8Kind::kInvalid);
}

TEST(Utf8, ValidPrefixEndsAtTheFirstBadByte) {
  for (size_t n = 0; n < 40; ++n) {
    const std::string good(n, 'a');
    EXPECT_EQ(ValidUtf8Prefix(good), n);
    EXPECT_EQ(ValidUtf8Prefix(good + "\xC3\xA4\xFFzzzzzzzzz"), n + 2);
    EXPECT_EQ(ValidUtf8Prefix(good + "\xC3"), n);
  }
}

std::string RandomBytes(std::mt19937& random, size_t n) {
  const std::string few = "ab\x80\xA4\xBF\xC3\xE2\xED\xF0\xF4\xFF";  // likely to be nearly right
  std::string out;
  for (size_t i = 0; i < n; ++i) out += few[random() % few.size()];
  return out;
}

TEST(StreamDecoder, GivesTheSameTextHoweverTheBytesAreCut) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const std::string bytes = RandomBytes(random, random() % 20);
    StreamDecoder whole;
    std::string expected = whole.Push(bytes);
    expected += whole.Finish();
    StreamDecoder stream;
    std::string text;
    for (size_t at = 0; at < bytes.size();) {
      const size_t n = 1 + random() % 4;
      text += stream.Push(std::string_view(bytes).substr(at, n));
      ASSERT_EQ(ValidUtf8Prefix(text), text.size());  // never half a character
      at += n;
    }
    text += stream.Finish();
    ASSERT_EQ(text, expected);
  }
}

TEST(StreamDecoder, KeepsACharacterUntilItIsWhole) {
  StreamDecoder stream;
  EXPECT_EQ(stream.Push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.Push("\xA6"), "");
  EXPECT_EQ(stream.Push("\x99z"), "\xF0\x9F\xA6\x99z");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(StreamDecoder, ReplacesWhatIsNoCharacter) {
  StreamDecoder stream;
  EXPECT_EQ(stream.Push("\xFFx"), "\xEF\xBF\xBDx");
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Push("y"), "\xEF\xBF\xBDy");  // one for the two bytes that belonged together
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace tokenizer
