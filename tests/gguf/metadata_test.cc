// Tests the typed getters, and their messages about values that are absent or of another type.
#include "gguf/metadata.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "tests/support/error_of.h"

namespace gguf {
namespace {

using test::ErrorOf;

class MetadataTest : public testing::Test {
 protected:
  // Returns the metadata read back from a file. A test may call this once.
  const Metadata& Read() {
    bytes_ = writer_.ToBytes();
    file_.push_back(File::Parse("f.gguf", bytes_));
    return file_.back().metadata();
  }
  Writer writer_;

 private:
  std::vector<std::byte> bytes_;
  std::vector<File> file_;
};

TEST_F(MetadataTest, IntegersOfEveryTypeAreReadAsAsked) {
  writer_.Add("u8", uint8_t{200});
  writer_.Add("i8", int8_t{-3});
  writer_.Add("u16", uint16_t{60000});
  writer_.Add("i16", int16_t{300});
  writer_.Add("u32", uint32_t{4'000'000'000});
  writer_.Add("i32", int32_t{-70000});
  writer_.Add("u64", std::numeric_limits<uint64_t>::max());
  writer_.Add("i64", std::numeric_limits<int64_t>::min());
  const Metadata& m = Read();
  EXPECT_EQ(m.GetUint("u8"), 200u);
  EXPECT_EQ(m.GetInt("i8"), -3);
  EXPECT_EQ(m.GetUint("u16"), 60000u);
  EXPECT_EQ(m.GetUint("i16"), 300u);
  EXPECT_EQ(m.GetUint("u32"), 4'000'000'000u);
  EXPECT_EQ(m.GetInt("u32"), 4'000'000'000);
  EXPECT_EQ(m.GetInt("i32"), -70000);
  EXPECT_EQ(m.GetUint("u64"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(m.GetInt("i64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(m.GetFloat("i32"), -70000.0);
  EXPECT_EQ(m.GetFloat("u8"), 200.0);
  EXPECT_EQ(ErrorOf([&] { m.GetInt("u64"); }),
            "f.gguf: key \"u64\": expected an integer below 2^63, found 18446744073709551615");
  EXPECT_EQ(ErrorOf([&] { m.GetUint("i8"); }),
            "f.gguf: key \"i8\": expected an integer >= 0, found -3");
  EXPECT_EQ(ErrorOf([&] { m.GetUint("i32", 9); }),
            "f.gguf: key \"i32\": expected an integer from 0 to 9, found -70000");
  EXPECT_EQ(m.GetUint("u8", 200), 200u);
  EXPECT_EQ(ErrorOf([&] { m.GetUint("u8", 199); }),
            "f.gguf: key \"u8\": expected an integer from 0 to 199, found 200");
}

TEST_F(MetadataTest, FloatsAndBoolsAndStrings) {
  writer_.Add("f32", 0.5f);
  writer_.Add("f64", 1e300);
  writer_.Add("nan", std::numeric_limits<float>::quiet_NaN());
  writer_.Add("yes", true);
  writer_.Add("no", false);
  writer_.Add("s", "text");
  const Metadata& m = Read();
  EXPECT_EQ(m.GetFloat("f32"), 0.5);
  EXPECT_EQ(m.GetFloat("f64"), 1e300);
  EXPECT_TRUE(std::isnan(m.GetFloat("nan")));
  EXPECT_TRUE(m.GetBoolOr("yes", false));
  EXPECT_FALSE(m.GetBoolOr("no", true));
  EXPECT_EQ(m.GetString("s"), "text");
  EXPECT_EQ(ErrorOf([&] { m.GetBoolOr("s", true); }),
            "f.gguf: key \"s\": expected a bool, found string");
  EXPECT_EQ(ErrorOf([&] { m.GetUint("f32"); }),
            "f.gguf: key \"f32\": expected an integer >= 0, found f32");
  EXPECT_EQ(ErrorOf([&] { m.GetFloat("yes"); }),
            "f.gguf: key \"yes\": expected a number, found bool");
  EXPECT_EQ(ErrorOf([&] { m.GetString("f64"); }),
            "f.gguf: key \"f64\": expected a string, found f64");
}

TEST_F(MetadataTest, AbsentKeysThrowOrFallBack) {
  const Metadata& m = Read();
  EXPECT_FALSE(m.Has("k"));
  EXPECT_EQ(m.GetUintOr("k", 5, 4), 5u);  // the limit is only for the file's value
  EXPECT_EQ(m.GetFloatOr("k", 1.5), 1.5);
  EXPECT_TRUE(m.GetBoolOr("k", true));
  EXPECT_EQ(m.GetStringOr("k", "none"), "none");
  EXPECT_EQ(ErrorOf([&] { m.GetUint("k"); }),
            "f.gguf: key \"k\": expected an integer >= 0, found no such key");
  EXPECT_EQ(ErrorOf([&] { m.GetString("k"); }),
            "f.gguf: key \"k\": expected a string, found no such key");
  EXPECT_EQ(ErrorOf([&] { m.GetFloats("k"); }),
            "f.gguf: key \"k\": expected an array of floats, found no such key");
}

TEST_F(MetadataTest, AKeyThatIsThereButWrongDoesNotFallBack) {
  writer_.Add("k", "text");
  const Metadata& m = Read();
  EXPECT_NE(ErrorOf([&] { m.GetUintOr("k", 5); }), "");
  EXPECT_NE(ErrorOf([&] { m.GetFloatOr("k", 5); }), "");
}

TEST_F(MetadataTest, Arrays) {
  writer_.AddArray<float>("floats", std::vector<float>{1.5f, -2});
  writer_.AddArray<double>("doubles", std::vector<double>{0.25});
  writer_.AddArray<int8_t>("i8", std::vector<int8_t>{-1, 2});
  writer_.AddArray<uint32_t>("u32", std::vector<uint32_t>{4'000'000'000});
  writer_.AddArray<bool>("bools", std::array{true, false});
  writer_.AddArray<uint64_t>("u64", std::vector<uint64_t>{0, uint64_t{1} << 63});
  writer_.AddArray<int32_t>("none", {});
  writer_.AddStrings("strings", std::vector<std::string_view>{"a", "", "bc"});
  const Metadata& m = Read();
  EXPECT_EQ(m.GetFloats("floats"), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(m.GetFloats("doubles"), (std::vector<float>{0.25}));
  EXPECT_EQ(m.GetInts("i8"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(m.GetInts("u32"), (std::vector<int64_t>{4'000'000'000}));
  EXPECT_EQ(m.GetInts("bools"), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(m.GetInts("none").empty());
  EXPECT_EQ(m.GetStrings("strings"), (std::vector<std::string_view>{"a", "", "bc"}));

  EXPECT_EQ(ErrorOf([&] { m.GetInts("u64"); }),
            "f.gguf: key \"u64\": element 1: expected an integer below 2^63, found "
            "9223372036854775808");
  EXPECT_EQ(ErrorOf([&] { m.GetFloats("i8"); }),
            "f.gguf: key \"i8\": expected an array of floats, found array of 2 i8");
  EXPECT_EQ(ErrorOf([&] { m.GetInts("strings"); }),
            "f.gguf: key \"strings\": expected an array of integers, found array of 3 string");
  EXPECT_EQ(ErrorOf([&] { m.GetStrings("floats"); }),
            "f.gguf: key \"floats\": expected an array of strings, found array of 2 f32");
  EXPECT_EQ(ErrorOf([&] { m.GetUint("i8"); }),
            "f.gguf: key \"i8\": expected an integer >= 0, found array of 2 i8");
}

TEST_F(MetadataTest, StringsOfAnArrayAreNotCopied) {
  writer_.AddStrings("strings", std::vector<std::string_view>{"first", "second"});
  const Metadata& m = Read();
  const Value& value = *m.Find("strings");
  const std::string_view first = m.GetStrings("strings").at(0);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(first.data()), value.data + 8);
}

TEST_F(MetadataTest, FailNamesFileAndKeySafely) {
  const Metadata& m = Read();
  EXPECT_EQ(ErrorOf([&] { m.Fail("a\nb", "expected this, found that"); }),
            "f.gguf: key \"a\\nb\": expected this, found that");
}

TEST(ValueTypeTest, NamesAndSizes) {
  EXPECT_EQ(ValueTypeName(ValueType::kU8), "u8");
  EXPECT_EQ(ValueTypeName(ValueType::kBool), "bool");
  EXPECT_EQ(ValueTypeName(ValueType::kF64), "f64");
  EXPECT_EQ(ValueTypeBytes(ValueType::kString), 0u);
  EXPECT_EQ(ValueTypeBytes(ValueType::kI16), 2u);
  EXPECT_EQ(ValueTypeBytes(ValueType::kI64), 8u);
  EXPECT_TRUE(IsValueType(12));
  EXPECT_FALSE(IsValueType(13));
}

TEST(QuotedTest, EscapesAndCuts) {
  EXPECT_EQ(Quoted("plain"), "\"plain\"");
  EXPECT_EQ(Quoted("a\"b\\c\n\x1b\xe2"), "\"a\\\"b\\\\c\\n\\x1b\\xe2\"");
  EXPECT_EQ(Quoted("abcdef", 3), "\"abc\"...");
  EXPECT_EQ(Quoted(std::string(1'000'000, 'x')).size(), 80u + 5);
}

TEST(PrintableTest, CommandsNoTerminalAndStaysInItsLine) {
  EXPECT_EQ(Printable("modèle \"a\\b\".gguf \U0001F999"), "modèle \"a\\b\".gguf \U0001F999");
  EXPECT_EQ(Printable("a\t\n\r\x1b\x7f"), "a\\x09\\n\\x0d\\x1b\\x7f");
  EXPECT_EQ(Printable("\xc2\x80\xc2\x9f\xc2\xa0"), "\\xc2\\x80\\xc2\\x9f\xc2\xa0");
  EXPECT_EQ(Printable("\u2028\u202e\u2066\u200f"),
            "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x80\\x8f");
  // Invalid UTF-8: a lone byte, truncated, overlong, a surrogate, beyond the last character.
  EXPECT_EQ(Printable("\x9b|\xe2\x96|\xc1\x9b|\xe0\x82\x9b"),
            "\\x9b|\\xe2\\x96|\\xc1\\x9b|\\xe0\\x82\\x9b");
  EXPECT_EQ(Printable("\xed\xa0\x80|\xf4\x90\x80\x80|\xff"),
            "\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xff");
}

TEST(PrintableTest, CutsAtACharactersEdge) {
  EXPECT_EQ(Printable("aéé", 5), "aéé");
  EXPECT_EQ(Printable("aéé", 4), "aé...");
  EXPECT_EQ(Printable(std::string(1000, 'x')).size(), 203u);
  EXPECT_EQ(PrintablePath(std::string(1000, 'x')).size(), 1000u);
  EXPECT_EQ(PrintablePath("modèle\t.gguf"), "modèle\\x09.gguf");
}

// A user's value of a key replaces the file's value of any type.
TEST_F(MetadataTest, ValuesThatAreSet) {
  writer_.Add("number", uint32_t{7});
  writer_.Add("text", "a");
  writer_.Add("gone", true);
  const std::vector<int32_t> list = {3, 4};
  writer_.AddArray("list", std::span<const int32_t>(list));
  Metadata m = Read();
  m.SetInt("number", -5);
  m.SetFloat("new", 0.5);
  m.SetString("text", "longer");
  m.SetBool("flag", true);
  m.Set("copy", *m.Find("list"));
  m.Set("list", *m.Find("number"));
  m.Remove("gone");
  m.Remove("never");
  const Metadata copy = m;
  m = Metadata();
  EXPECT_EQ(copy.GetInt("number"), -5);
  EXPECT_EQ(copy.GetFloat("new"), 0.5);
  EXPECT_EQ(copy.GetString("text"), "longer");
  EXPECT_TRUE(copy.GetBoolOr("flag", false));
  EXPECT_EQ(copy.GetInts("copy"), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(copy.GetInt("list"), -5);
  EXPECT_FALSE(copy.Has("gone"));
  EXPECT_EQ(copy.entries().size(), 6u);
  m = copy;
  m.RenamePrefix("te", "con.te");
  EXPECT_EQ(m.GetString("con.text"), "longer");
  EXPECT_FALSE(m.Has("text"));
  EXPECT_EQ(m.entries().size(), 6u);
}

TEST(File, TensorsWithOtherNames) {
  const std::vector<float> numbers(4);
  Writer writer;
  for (const char* name : {"a.out.weight", "a.dt", "a.dt.bias", "b"}) {
    writer.AddTensor(name, DType::kF32, {4}, std::as_bytes(std::span(numbers)));
  }
  const std::vector<std::byte> bytes = writer.ToBytes();
  File file = File::Parse("f.gguf", bytes);
  file.RenameTensors(".out.", ".output.");
  file.RenameTensors("b", "c");  // only as the end of a name
  File moved = std::move(file);
  EXPECT_NE(moved.FindTensor("a.output.weight"), nullptr);
  EXPECT_EQ(moved.FindTensor("a.out.weight"), nullptr);
  EXPECT_NE(moved.FindTensor("a.dt.bias"), nullptr);
  EXPECT_NE(moved.FindTensor("c"), nullptr);
  EXPECT_TRUE(
      test::Has(ErrorOf([&] { moved.RenameTensors(".dt", ".dt.bias"); }), "found it again"));
}

}  // namespace
}  // namespace gguf
