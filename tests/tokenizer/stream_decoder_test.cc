#include <gtest/gtest.h>

#include <random>
#include <string>

#include "gguf/utf8.h"
#include "tokenizer/tokenizer.h"

namespace tokenizer {
namespace {

std::string RandomBytes(std::mt19937& random, size_t n) {
  const std::string few = "ab\x80\xA4\xBF\xC3\xE2\xED\xF0\xF4\xFF";  // often nearly valid
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
      ASSERT_EQ(gguf::ValidUtf8Prefix(text), text.size());  // whole characters only
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
  EXPECT_EQ(stream.Push("y"), "\xEF\xBF\xBDy");  // one for both bytes of a character
  EXPECT_EQ(stream.Push("\xE2\x82"), "");
  EXPECT_EQ(stream.Finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Finish(), "");
}

}  // namespace
}  // namespace tokenizer
