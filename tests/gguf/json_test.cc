// The JSON reader: the texts that it accepts, compared with another project's library, its limits,
// and its values.
#include "gguf/json.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/error_of.h"
#include "tests/support/json.h"
#include "tests/support/texts.h"

namespace gguf {
namespace {

std::string FaultOf(const std::string& text, const JsonLimits& limits = {}) {
  return test::ErrorOf([&] { JsonView::Parse(text, limits); });
}

TEST(Json, TakesWhatIsJson) {
  const std::string texts =
      R"( | nul | null |  true  | [1,] | [1,2 | {"a" 1} | {"a":1,} | {a:1} | {1:1} | [1]])"
      R"( | 1 2 | - | -0 | 01 | 1. | .5 | 1.5e | 1e+ | 1E-2 | +1 | 0x1 | NaN | 1e999)"
      R"( | -1e999 | 1e-999 | "a | "\x" | "\u12" | "\u12g4" | "\ud800" | "\ud800\n")"
      R"( | "\udc00" | "\ud83d\ude00" | "\u0000" | [] // x | /**/ [] | 'a' | ["a":1])"
      R"( | {"a":1,"a":2} | {}{} | [[[]]] | [1,2.5,""] | {"":{"b":[null,false]}})"
      " | \"\t\" | \"\x7f\" | \"\xff\" | \"\xc3\xa9\" | \"\xc0\x80\" | \"\xed\xa0\x80\" | "
      "\xef\xbb\xbf[] | \xef\xbb[]";
  for (const std::string& text : test::Texts(texts)) {
    EXPECT_EQ(FaultOf(text).empty(), test::Json::accept(text)) << text;
  }
  EXPECT_TRUE(FaultOf("[" + std::string(300, '1') + "]").empty());
  EXPECT_EQ(FaultOf("[" + std::string(400, '1') + "]"), "has a number that is too large at byte 2");
  EXPECT_EQ(FaultOf(std::string("\"a\0b\"", 5)), "is not JSON from byte 3 on");
}

TEST(Json, SaysWhereTheFaultIs) {
  EXPECT_EQ(FaultOf("[1, 2,, 3]"), "is not JSON from byte 7 on");
  EXPECT_EQ(FaultOf("[1"), "is not JSON from byte 3 on");
  EXPECT_EQ(FaultOf(std::string(100'000, '[')), "is nested deeper than 64 levels");
  EXPECT_EQ(FaultOf("[1,2]", {.values = 2}), "has more than 2 values");
  EXPECT_EQ(FaultOf(R"({"a":1,"b":2})", {.keys = 1}), "has more than 1 keys in one object");
  EXPECT_EQ(FaultOf("[9223372036854775808]"), "");
}

// Python writes non-finite numbers into config.json (Mamba 2's time_step_limit).
TEST(Json, WhatIsNotFiniteIsNullWhereAllowed) {
  const std::string text = R"({"a": [0.0, Infinity, -Infinity], "b": NaN, "c": "Infinity"})";
  EXPECT_EQ(FaultOf(text), "is not JSON from byte 13 on");
  const JsonView json = JsonView::Parse(text, {.not_finite = true});
  EXPECT_EQ(json["b"].kind(), JsonView::Kind::kNull);
  std::vector<JsonView::Kind> kinds;
  for (const auto& [none, item] : json["a"]) kinds.push_back(item.kind());
  using Kind = JsonView::Kind;
  EXPECT_EQ(kinds, (std::vector<Kind>{Kind::kNumber, Kind::kNull, Kind::kNull}));
  EXPECT_EQ(json["c"].String(), "Infinity");
  for (const char* wrong : {"[Inf]", "[-]", "[NaN1]", "[-NaN]", "[infinity]"}) {
    EXPECT_NE(FaultOf(wrong, {.not_finite = true}), "") << wrong;
  }
}

TEST(Json, FindsKeysThatAreThereTwice) {
  const JsonLimits unique{.unique_keys = true};
  EXPECT_EQ(FaultOf(R"({"a":{"b":1,"c":{"b":2}},"b":[{"a":1},{"a":1}]})", unique), "");
  EXPECT_EQ(FaultOf(R"({"x":[{"b":1,"c":2,"\u0062":3}]})", unique), "has the key \"b\" twice");
  EXPECT_EQ(JsonView::Parse(R"({"a":1,"b":2,"a":3})")["a"].Signed(), 3);
  EXPECT_EQ(JsonView::Parse(R"({"a":1,"b":2,"a":3})").Members().size(), 2u);
}

TEST(Json, ReadsValues) {
  const JsonView json = JsonView::Parse(
      " {\"s\" : \"\\u00e9\\ud83d\\ude00\\n\\/\", \"n\":[ -5 , 2.5e1, 18446744073709551616 ],\n"
      "\"o\":{\"]\":{}, \"z\":null}, \"b\" :true}\n");
  EXPECT_EQ(json.size(), 4u);
  EXPECT_EQ(json["s"].String(), "é😀\n/");
  EXPECT_EQ(json["n"].size(), 3u);
  EXPECT_EQ(json["n"].begin()->value.Signed(), -5);
  EXPECT_EQ(json["n"].begin()->value.Unsigned(), std::nullopt);
  std::vector<double> numbers;
  for (const auto& item : json["n"]) numbers.push_back(item.value.Number());
  EXPECT_EQ(numbers, (std::vector<double>{-5, 25, 18446744073709551616.0}));
  EXPECT_TRUE(json["b"].Bool());
  EXPECT_FALSE(json["c"].is_there());
  EXPECT_FALSE(json["s"]["c"].is_there());
  EXPECT_EQ(json["o"]["z"].kind(), JsonView::Kind::kNull);
  EXPECT_EQ(json.Compact(),
            "{\"s\":\"é😀\\n/\",\"n\":[-5,2.5e1,18446744073709551616],"
            "\"o\":{\"]\":{},\"z\":null},\"b\":true}");
}

TEST(Json, ComparesAndBuildsValues) {
  const auto parse = [](const char* text) { return JsonView::Parse(text); };
  EXPECT_EQ(parse("[1, \"\\u0041\", {\"a\": 1e0}]"), parse(R"([1.0,"A",{"a":1}])"));
  EXPECT_FALSE(parse("[1]") == parse("[1,2]"));
  EXPECT_FALSE(parse("9007199254740993") == parse("9007199254740992"));
  EXPECT_TRUE(parse(R"({"a":1,"b":[{"c":2,"d":3}]})") == parse(R"({"b":[{"d":3,"c":2}],"a":1})"));
  EXPECT_FALSE(parse(R"({"a":1,"b":2})") == parse(R"({"b":1,"a":2})"));
  EXPECT_FALSE(parse(R"({"a":1})") == parse(R"({"a":1,"b":2})"));
  EXPECT_FALSE(parse("18446744073709551615") == parse("18446744073709551614"));
  const JsonView list = JsonView::Array({parse("1"), parse(" {} ")});
  EXPECT_EQ(JsonView::Object({{"a\"\x01", list}}).text(), "{\"a\\\"\\u0001\":[1,{}]}");
}

TEST(Json, StaysWhenItsTextGoes) {
  JsonView inner;
  {
    const JsonView outer = JsonView::Parse(R"({"a":["x"]})");
    inner = outer["a"];
  }
  EXPECT_EQ(inner.begin()->value.String(), "x");
}

}  // namespace
}  // namespace gguf
