#include "gguf/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace gguf {
namespace {

// Encodes one code point by the definition of UTF-8, for comparison.
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
    ASSERT_EQ(step.code, valid ? c : 0xFFFD) << c;
    if (!valid) continue;
    ASSERT_EQ(step.length, bytes.size() - 1) << c;
    ASSERT_EQ(ToUtf8(c) + "x", bytes) << c;
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

TEST(Utf8, GivesTheCharactersOfAnyBytes) {
  std::string codes, bytes;
  for (const auto& [code, spelt] : Characters("a\xC3\xA4\xE2\x82x\xF0\x9F\xA6\x99\xFF")) {
    codes += std::to_string(uint32_t{code}) + " ";
    bytes += spelt;
  }
  EXPECT_EQ(codes, "97 228 65533 120 129433 65533 ");
  EXPECT_EQ(bytes, "a\xC3\xA4\xE2\x82x\xF0\x9F\xA6\x99\xFF");
  for ([[maybe_unused]] const auto& c : Characters("")) FAIL();
}

}  // namespace
}  // namespace gguf
