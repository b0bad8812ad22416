// JSON Schema as a grammar, keyword by keyword: which values may be written and which not, what is
// refused, and hostile schemas.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/grammar/matches.h"
#include "tests/support/error_of.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/texts.h"

namespace grammar {
namespace {

using test::Matches;

// With any white space, so that cases may have none, and as generation is by default.
Grammar Parse(const std::string& schema) {
  return ParseJsonSchema(schema, {.free_space = true, .closed = true, .ordered = true});
}

struct Case {
  std::string schema, valid, invalid;  // values, for test::Texts()
};

void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Grammar grammar = Parse(c.schema);
    const auto schema = test::Json::parse(c.schema);
    for (const std::string& text : test::Texts(c.valid)) {
      EXPECT_TRUE(Matches(grammar, text)) << c.schema << " " << text;
      EXPECT_TRUE(test::SchemaFaults(test::Json::parse(text), schema).empty())
          << c.schema << " " << text;
    }
    for (const std::string& text : test::Texts(c.invalid)) {
      EXPECT_FALSE(Matches(grammar, text)) << c.schema << " " << text;
    }
  }
}

std::string FaultOf(const std::string& schema) {
  return test::ErrorOf<Error>([&] { Parse(schema); });
}

TEST(JsonSchema, AnyValue) {
  const std::string values =
      R"({} | [] | 0 | -1.5e+10 | "" | true | null | {"a":[1,{"b":"\u20ac\n"}],"c":null})"
      " | [ 1, 2 ] | {\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n} | \"\\ud83e\\udd99\"";
  const std::string none =
      R"(01 | 1. | .5 | +1 | { | [1,] | {"a"} | {a:1} | 'a' | nul | NaN | 1  |  1 | "\x" | "\ud83e")"
      R"( | "\udd99" | "\ud83e\u0041" | 1e400 | [1 , 2] | 12345678901234567890 | [  1] | "a""b")"
      " | \"\n\" | \"\x80\" | {\n\n}";
  Check({{"true", values, none}, {"{}", values, none}, {R"({"title": "x"})", values, none}});
  for (const std::string& text : test::Texts(values)) EXPECT_TRUE(test::Json::accept(text));
  EXPECT_FALSE(Matches(Parse("true"), ""));
}

TEST(JsonSchema, Types) {
  Check({
      {R"({"type": "null"})", "null", R"(0 | false | "")"},
      {R"({"type": "boolean"})", "true | false", R"(0 | null | "true")"},
      {R"({"type": "integer"})", "0 | -12 | 1234567890123456", R"(1.5 | -0 | 1e2 | "1")"},
      {R"({"type": "number"})", "0 | -12 | 1.5 | -0.25e-2", R"(null | "1")"},
      {R"({"type": "string"})", R"("" | "a b" | "\"\\\/")", "a | null | []"},
      {R"({"type": "array"})", R"([] | [1,"a",[]])", "{} | null"},
      {R"({"type": "object"})", R"({} | {"a":{}})", "[] | null"},
      {R"({"type": ["string", "null"]})", R"("a" | null)", "1 | []"},
      {R"({"type": ["integer", "array"], "minimum": 3, "maxItems": 1})", "3 | [1]",
       "2 | [1,2] | null"},
      {R"({"type": "integer", "nullable": true})", "3 | null", R"("3")"},
      {R"({"type": "string", "minimum": 5})", R"("a")", "6"},
  });
}

TEST(JsonSchema, EnumAndConst) {
  Check({
      {R"({"enum": ["red", "gr\"een", 3, null, [1, {"a": 2}], 1.5]})",
       R"("red" | "gr\"een" | 3 | null | [1,{"a":2}] | 1.5)", R"(red | 4 | "" | [1])"},
      {R"({"const": "x"})", R"("x")", R"("y" | null)"},
      {R"({"type": "string", "enum": ["a", 1]})", R"("a")", "1"},
      {R"({"type": "integer", "enum": ["a", 1]})", "1", R"("a")"},
      {R"({"enum": ["a", "ab", "abc"]})", R"("a" | "ab" | "abc")", R"("b" | "abcd")"},
      {R"({"enum": ["a", "b"], "const": "b"})", R"("b")", R"("a")"},
      {R"({"enum": ["é", "\u0001"]})", R"("é" | "\u0001")", R"("e")"},
  });
}

TEST(JsonSchema, Properties) {
  Check({
      {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {}}})",
       R"({} | {"a":1} | {"b":"x"} | {"a":1,"b":"x","c":[]} | {"a": 1, "c": null})"
       " | {\n\t\"a\": 1\n}",
       R"({"a":"x"} | {"b":"x","a":1} | {"d":1} | {"a":1,} | {,"a":1} | [] | {"a":1"b":"x"} | {"a":1,"a":1})"},
      {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3}}, "required": ["b"]})",
       R"({"b":2} | {"a":1,"b":2} | {"b":2,"c":3} | {"a":1,"b":2,"c":3})",
       R"({} | {"a":1} | {"a":1,"c":3})"},
      {R"({"properties": {"a": {"const": 1}}, "required": ["z", "a"], "additionalProperties": {"type": "null"}})",
       R"({"a":1,"z":null} | {"a":1,"z":null,"y":null})", R"({"a":1} | {"a":1,"z":1})"},
      {R"({"additionalProperties": {"type": "boolean"}})",
       R"({} | {"a":true} | {"a":true,"b":false})", R"({"a":1})"},
      {R"({"type": "object", "additionalProperties": false})", "{}", R"({"a":1})"},
      {R"({"properties": {"a": {"const": 1}, "ab": {"const": 2}, "é": {}}, "additionalProperties": {"const": 3}})",
       R"({} | {"a":1} | {"a":1,"ab":2,"abc":3} | {"b":3,"c":3} | {"":3} | {"éa":3} | {"ba":3})",
       R"({"a":3} | {"ab":3} | {"\u0061":3} | {"\u0061b":3} | {"é":3,"é":3})"},
      {R"({"properties": {"a\"b": {"const": 1}}, "additionalProperties": {"const": 3}})",
       R"({"a\"b":1} | {"a":3})", R"({"a\"b":3})"},
      {R"({"properties": {"a": false, "b": {"const": 1}}})", R"({} | {"b":1})", R"({"a":1})"},
      {R"({"properties": {"a": {"properties": {"b": {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]}}, "required": ["b"]}}, "required": ["a"]})",
       R"({"a":{"b":{"c":7}}})", R"({"a":{"b":{}}} | {"a":{}})"},
  });
}

TEST(JsonSchema, Items) {
  Check({
      {R"({"items": {"type": "integer"}})", "[] | [1] | [1,2,3] | [1, 2]",
       R"(["a"] | [1,] | [,1] | 1)"},
      {R"({"items": {"const": 1}, "minItems": 2, "maxItems": 3})", "[1,1] | [1,1,1]",
       "[] | [1] | [1,1,1,1]"},
      {R"({"items": {"const": 1}, "minItems": 1})", "[1] | [1,1,1,1]", "[]"},
      {R"({"items": {"const": 1}, "maxItems": 0})", "[]", "[1]"},
      {R"({"items": {"const": 1}, "maxItems": 1})", "[] | [1]", "[1,1]"},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}})",
       "[] | [1] | [1,2] | [1,2,3,3]", "[2] | [1,3] | [1,2,2]"},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "minItems": 2, "items": false})", "[1,2]",
       "[] | [1] | [1,2,3]"},
      {R"({"prefixItems": [{"const": 1}], "minItems": 3, "maxItems": 4})", "[1,null,2] | [1,2,3,4]",
       "[1,2] | [2,2,2] | [1,2,3,4,5]"},
      {R"({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1})", "[] | [1]", "[1,2]"},
      {R"({"prefixItems": [{"const": 1}, false, {"const": 2}]})", "[] | [1]", "[1,2]"},
      {R"({"items": [{"const": 1}], "additionalItems": {"const": 2}})", "[1] | [1,2,2]",
       "[2] | [1,1]"},
      {R"({"items": {"items": {"type": "boolean"}, "minItems": 1}})", "[[true],[false,true]]",
       "[[]]"},
      {R"({"type": "array", "items": false})", "[]", "[1]"},
      {R"({"minItems": 2.0, "items": {"const": 1}})", "[1,1]", "[1]"},
      {R"({"type": "array", "uniqueItems": false, "maxItems": 2000})", "[1,1]", ""},
  });
}

TEST(JsonSchema, Strings) {
  Check({
      {R"({"minLength": 2, "maxLength": 3})", R"("ab" | "€€€" | "\n\ud83e\udd99")",
       R"("a" | "abcd" | "" | 1)"},
      {R"({"maxLength": 0})", R"("")", R"("a")"},
      {R"({"minLength": 1000})", '"' + std::string(1000, 'a') + '"',
       '"' + std::string(999, 'a') + '"'},
      {R"({"pattern": "^[A-Z]{2}-\\d+$"})", R"("AB-1" | "XY-1234")", R"("A-1" | "AB-" | "xAB-1")"},
      {R"({"pattern": "b"})", R"("b" | "abc" | "bb")", R"("a" | "")"},
      {R"({"pattern": "^a"})", R"("a" | "abc")", R"("ba")"},
      {R"({"pattern": "a$"})", R"("a" | "ba")", R"("ab")"},
      {R"({"pattern": "^(?:yes|no)?$"})", R"("" | "yes" | "no")", R"("yesno" | "maybe")"},
      {R"({"pattern": "^a$|^b"})", R"("a" | "bc")", R"("ac" | "")"},
      {R"({"pattern": "^[^a-y\\s]+.\\.$"})", R"("zx." | "ZZ!.")", R"("ax." | "z.")"},
      {R"({"pattern": "^\"\\\\[\"\\n]$"})", R"("\"\\\n" | "\"\\\"")", R"("\"\\n")"},
      {R"({"pattern": "^\\w+?@\\w{2,4}$"})", R"("me@abc")", R"("me@abcde" | "@ab")"},
      {R"({"pattern": "^\\x41\\u0042$"})", R"("AB")", R"("ab")"},
      {R"({"format": "date"})", R"("2026-11-22" | "2024-02-29" | "2000-02-29" | "2026-12-31")",
       R"("2026-13-01" | "2026-02-30" | "2023-02-29" | "1900-02-29" | "2026-04-31" | "26-1-1" | "2026-01-00")"},
      {R"({"format": "time"})", R"("23:59:59Z" | "00:00:00.125+01:30")",
       R"("24:00:00Z" | "12:00" | "12:60:00Z")"},
      {R"({"format": "date-time"})", R"("2026-11-22T10:00:00Z")",
       R"("2026-11-22 10:00:00Z" | "2026-11-22")"},
      {R"({"format": "duration"})", R"("P3Y6M4DT12H30M5S" | "P2W" | "PT0S" | "P1MT1H")",
       R"("P" | "PT" | "P1S" | "P1YT" | "P1W1D" | "P1Y1D" | "1D")"},
      {R"({"format": "email"})", R"("ada.l@example.org" | "a+b@mail.example.com")",
       R"("ada" | "a@b" | ".a@b.org" | "a..b@c.org" | "a@-b.org")"},
      {R"({"format": "hostname"})", R"("localhost" | "www.example.com" | "a-1.org")",
       R"("" | "-a.org" | "a-.org" | "a_b.org" | "a..org" | "a.org.")"},
      {R"({"format": "ipv4"})", R"("0.0.0.0" | "192.168.10.255")",
       R"("256.0.0.1" | "1.2.3" | "1.2.3.04" | "1.2.3.4.5")"},
      {R"({"format": "ipv6"})",
       R"("::" | "::1" | "1:2:3:4:5:6:7:8" | "fe80::1:2" | "1:2:3:4:5:6::" | "1::3:4:5:6:7")",
       R"(":" | "1:2:3:4:5:6:7" | "1::2::3" | "1:2:3:4:5:6:7:8:9" | "12345::" | "1:2:3:4::5:6:7:8" | "g::")"},
      {R"({"format": "uri", "minLength": 1, "maxLength": 2083})",
       R"("https://example.org" | "http://localhost:8080/a/b?c=d%20e#f")",
       R"("example.org" | "http://a b" | "http://a/%2")"},
      {R"({"format": "date", "maxLength": 10})", R"("2026-11-22")", R"("2026-11-2")"},
      {R"({"type": "string", "format": "uuid"})", R"("123e4567-e89b-12d3-A456-426614174000")",
       R"("123e4567" | "g23e4567-e89b-12d3-a456-426614174000")"},
  });
}

// Every number around all bounds, against comparing.
TEST(JsonSchema, IntegersBetweenBounds) {
  const std::vector<int> bounds = {-1000, -999, -120, -100, -99, -11, -10, -9,  -1,  0,   1,
                                   8,     9,    10,   11,   42,  99,  100, 101, 305, 999, 1000};
  for (const int low : bounds) {
    for (const int high : bounds) {
      const std::string schema = R"({"type": "integer", "minimum": )" + std::to_string(low) +
                                 R"(, "exclusiveMaximum": )" + std::to_string(high) + "}";
      if (low >= high) {
        EXPECT_EQ(FaultOf(schema), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema);
      Matcher matcher(grammar);
      for (int i = -1100; i <= 1100; ++i) {
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), std::to_string(i)));
        ASSERT_EQ(fits, low <= i && i < high) << schema << " " << i;
      }
    }
  }
}

TEST(JsonSchema, Numbers) {
  Check({
      {R"({"type": "integer", "minimum": 5})", "5 | 10 | 123456", "4 | -5 | 05"},
      {R"({"type": "integer", "maximum": -5})", "-5 | -10", "-4 | 5 | 0"},
      {R"({"type": "integer", "minimum": 1.5, "maximum": 2.5})", "2", "1 | 3"},
      {R"({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 2.5})", "2", "1 | 3"},
      {R"({"type": "integer", "minimum": 0, "exclusiveMinimum": 0})", "1", "0"},
      {R"({"type": "integer", "minimum": 1000000000000})", "1000000000000", "999999999999"},
      {R"({"type": "number", "minimum": 0, "maximum": 1})", "0 | 1 | 0.5 | 1.0 | 0.0 | 0.999999",
       "1.1 | -0.5 | 2 | 1.01 | 1e5"},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})", "0.5 | 0.000001",
       "0 | 1 | 0.0 | 1.0 | 0.000"},
      {R"({"type": "number", "minimum": -2, "exclusiveMaximum": 3})",
       "-2 | -2.0 | -1.5 | -0.5 | 0 | 2.999999", "3 | 3.0 | -2.1 | -3"},
      {R"({"type": "number", "exclusiveMinimum": -2, "maximum": 0})", "-1.999999 | -1 | 0 | 0.0",
       "-2 | -2.0 | 0.1 | 1"},
      {R"({"type": "number", "exclusiveMaximum": 0})", "-0.5 | -1", "0 | -0.0 | 1"},
      {R"({"minimum": 7})", "7 | 7.5", "6.9"},
  });
  const Grammar older = Parse(R"({"type": "integer", "minimum": 5, "exclusiveMinimum": true})");
  EXPECT_TRUE(Matches(older, "6"));
  EXPECT_FALSE(Matches(older, "5"));
}

// Every number with three decimals around all bounds, against comparing.
TEST(JsonSchema, NumbersBetweenFineBounds) {
  const std::vector<int> bounds = {-2500, -1990, -1001, -1000, -999, -500, -25,  -1,   0,
                                   1,     25,    499,   500,   990,  1000, 1050, 1999, 2000};
  const auto text_of = [](int thousandths) {
    const std::string digits = std::to_string(1000 + std::abs(thousandths) % 1000);
    return (thousandths < 0 ? "-" : "") + std::to_string(std::abs(thousandths) / 1000) + "." +
           digits.substr(1);
  };
  for (const int low : bounds) {
    for (const int high : bounds) {
      if (low > high) continue;
      const std::string schema = R"({"type": "number", "exclusiveMinimum": )" + text_of(low) +
                                 R"(, "maximum": )" + text_of(high) + "}";
      if (low == high) {
        EXPECT_EQ(FaultOf(schema), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema);
      Matcher matcher(grammar);
      for (int i = -2600; i <= 2600; ++i) {
        const std::string text = text_of(i);
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), text));
        ASSERT_EQ(fits, low < i && i <= high) << schema << " " << text;
      }
    }
  }
  Check({{R"({"type": "number", "minimum": 0.1, "exclusiveMaximum": 0.25})",
          "0.1 | 0.10 | 0.2 | 0.249999 | 0.100001",
          "0 | 0.0 | 0.09 | 0.099999 | 0.25 | 0.250 | 0.3 | 1 | -0.2"},
         {R"({"type": "integer", "minimum": 0.1, "maximum": 1.9})", "1", "0 | 2"}});
}

TEST(JsonSchema, Alternatives) {
  Check({
      {R"({"anyOf": [{"type": "integer"}, {"type": "string", "maxLength": 1}]})", R"(1 | "a")",
       R"("ab" | null)"},
      {R"({"type": "string", "anyOf": [{"minLength": 5}, {"maxLength": 1}, {"type": "integer"}]})",
       R"("a" | "abcde")", R"("abc" | 1)"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "string"}]})", R"(1 | "a")", "null"},
      {R"({"oneOf": [{"const": "a"}, {"enum": ["b", "c"]}]})", R"("a" | "c")", R"("d")"},
      {R"({"oneOf": [{"properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}, "required": ["kind"]},
                     {"properties": {"kind": {"const": "dog"}, "name": {"type": "string"}}, "required": ["kind"]}]})",
       R"({"kind":"cat","lives":9} | {"kind":"dog","name":"Rex"})",
       R"({"kind":"cat","name":"Rex"} | {})"},
      {R"({"oneOf": [{"properties": {"a": {}}, "required": ["a"], "additionalProperties": false},
                     {"properties": {"b": {}}, "required": ["b"], "additionalProperties": false}]})",
       R"({"a":1} | {"b":1})", R"({} | {"a":1,"b":1})"},
      {R"({"anyOf": [{"properties": {"a": {"const": 1}}, "required": ["a"]}, {"properties": {"a": {"const": 2}}, "required": ["a"]}],
           "properties": {"z": {"type": "null"}}, "required": ["z"]})",
       R"({"z":null,"a":1} | {"z":null,"a":2})", R"({"a":1} | {"z":null,"a":3})"},
  });
}

TEST(JsonSchema, AllOf) {
  Check({
      {R"({"allOf": [{"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                     {"properties": {"b": {"type": "null"}, "a": {"minimum": 3}}, "required": ["b"]}]})",
       R"({"a":3,"b":null})", R"({"a":2,"b":null} | {"a":3})"},
      {R"({"allOf": [{"type": ["integer", "string"]}, {"type": ["number", "null"]}]})", "1",
       R"("a" | null | 1.5)"},
      {R"({"allOf": [{"minimum": 1}, {"minimum": 3}, {"maximum": 5}, {"maximum": 9}], "type": "integer"})",
       "3 | 5", "2 | 6"},
      {R"({"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3, 4]}]})", "2 | 3", "1 | 4"},
      {R"({"allOf": [{"$ref": "#/$defs/base"}], "properties": {"b": {"const": 2}}, "required": ["b"],
           "$defs": {"base": {"properties": {"a": {"const": 1}}, "required": ["a"]}}})",
       R"({"b":2,"a":1})", R"({"b":2} | {"a":1})"},
      {R"({"allOf": [{"anyOf": [{"const": 1}, {"const": 2}]}, {"anyOf": [{"const": 2}, {"const": 3}]}]})",
       "2", "1 | 3"},
      {R"({"allOf": [{"properties": {"a": {}, "b": {}}, "additionalProperties": false}, {"properties": {"a": {"const": 1}, "c": {}}}]})",
       R"({} | {"a":1,"b":2})", R"({"c":1} | {"a":2})"},
      {R"({"allOf": [{"items": {"type": "integer"}}, {"items": {"minimum": 2}}]})", "[2,3]", "[1]"},
      // What one says of all items holds for those that the other puts first.
      {R"({"allOf": [{"prefixItems": [{"type": "integer"}, {"type": "integer"}]}], "items": {"minimum": 4}})",
       "[] | [4] | [5,4,6.5]", "[3] | [4,3] | [4,4.5] | [4,4,3]"},
      {R"({"allOf": [{"prefixItems": [{"minimum": 1}]}, {"prefixItems": [{"maximum": 2}, {"const": "a"}]}]})",
       R"([1] | [2,"a"])", "[0] | [3] | [1,2]"},
      {R"({"allOf": [{"items": [{"type": "string"}], "additionalItems": false}, {"items": {"maxLength": 2}}]})",
       R"([] | ["ab"])", R"(["abc"] | ["a","a"] | [1])"},
  });
}

TEST(JsonSchema, References) {
  Check({
      {R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}})", "1", R"("a")"},
      {R"({"$ref": "#/definitions/a~1b", "definitions": {"a/b": {"const": 1}}})", "1", "2"},
      {R"({"$ref": "#/$defs/50%25%20off", "$defs": {"50% off": {"const": 1}}})", "1", "2"},
      {R"({"properties": {"v": {"type": "integer"}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}, "required": ["v", "next"]})",
       R"({"v":1,"next":null} | {"v":1,"next":{"v":2,"next":null}})",
       R"({"v":1} | {"v":1,"next":{}})"},
      {R"({"$ref": "#/$defs/tree", "$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}}})",
       "[] | [[],[[]]]", "[1]"},
      {R"({"properties": {"a": {"$ref": "#/$defs/s", "maxLength": 2}}, "$defs": {"s": {"type": "string", "minLength": 1}}})",
       R"({"a":"x"} | {"a":"xy"})", R"({"a":""} | {"a":"xyz"})"},
      {R"({"properties": {"a": {"const": 1}, "b": {"$ref": "#/properties/a"}}})",
       R"({"a":1,"b":1})", R"({"b":2})"},
  });
}

// Every number around all bounds, against dividing.
TEST(JsonSchema, Multiples) {
  for (const int step : {1, 2, 3, 5, 7, 10, 12, 60, 97, 250}) {
    for (const auto& [low, high] : {std::pair(-1000, 1000), {-7, 900}, {13, 14}, {60, 720}}) {
      const test::Json schema = {
          {"type", "integer"}, {"multipleOf", step}, {"minimum", low}, {"exclusiveMaximum", high}};
      const bool has_any = (high - 1) / step * step >= low || low <= 0;
      if (!has_any) {
        EXPECT_EQ(FaultOf(schema.dump()), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema.dump());
      Matcher matcher(grammar);
      for (int i = -1100; i <= 1100; ++i) {
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), std::to_string(i)));
        ASSERT_EQ(fits, low <= i && i < high && i % step == 0) << schema << " " << i;
      }
    }
  }
  Check({
      {R"({"type": "integer", "multipleOf": 1000})", "0 | 1000 | -5000 | 123456789012000",
       "100 | 1001 | 00 | 1e3"},
      {R"({"type": "integer", "multipleOf": 1.5})", "0 | 3 | -9", "1 | 2 | 4.5"},
      {R"({"type": "number", "multipleOf": 0.01})",
       "19.99 | -3.5 | 7 | 0.1 | 0.10 | 1234567890123.45", "19.999 | .5 | 1e2 | 01"},
      {R"({"type": "number", "multipleOf": 0.25, "minimum": 0.1, "maximum": 1})",
       "0.25 | 0.5 | 0.50 | 1 | 1.0 | 1.00", "0 | 0.1 | 0.2 | 1.25 | 0.125 | 0.35"},
      {R"({"type": "number", "multipleOf": 0.3, "exclusiveMaximum": 0})", "-0.3 | -1.2 | -3 | -3.0",
       "0 | -0.0 | -0.4 | 0.3 | -1"},
      {R"({"multipleOf": 0.5, "maximum": 5000000000})", "999999999.5", "5000000000.5"},
  });
  EXPECT_EQ(FaultOf(R"({"multipleOf": 0.5, "minimum": 5, "maximum": 5.4, "not": {"const": 5}})"),
            "#: no value fits this schema");
}

TEST(JsonSchema, UniqueItems) {
  Check({
      {R"({"items": {"enum": ["a", "b", "c"]}, "uniqueItems": true, "minItems": 2})",
       R"(["a","b"] | ["c","a"] | ["c","b","a"])", R"([] | ["a"] | ["a","a"] | ["a","b","a"])"},
      {R"({"items": {"enum": [1, 1.0, 2]}, "uniqueItems": true})", "[] | [2,1]",
       "[1,1] | [1,1.0] | [2,2]"},
      {R"({"items": {"type": ["boolean", "null"]}, "uniqueItems": true, "maxItems": 2})",
       "[true,false] | [null,true]", "[true,true] | [true,false,null]"},
      {R"({"items": {"$ref": "#/$defs/a"}, "uniqueItems": true, "$defs": {"a": {"anyOf": [{"const": 1}, {"enum": [2]}]}}})",
       "[2,1]", "[2,2] | [3]"},
      // In the schema's order if there are many.
      {R"({"items": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "uniqueItems": true, "minItems": 1, "maxItems": 3})",
       "[4] | [1,9] | [7,2,5]", "[] | [5,5] | [1,2,3,4]"},
      {R"({"items": {"type": "string"}, "uniqueItems": true, "maxItems": 1})", R"(["a"])", ""},
      // Any values: equal ones may be spelt differently.
      {R"({"items": {"type": "string"}, "uniqueItems": true, "minItems": 2})",
       R"(["a","b"] | ["","a","aa"])", R"(["a"] | ["a","b","a"] | ["ab","\u0061b"])"},
      {R"({"items": {"type": "number"}, "uniqueItems": true})", "[] | [1,10,1.5,-1]",
       "[1,1.0] | [100,1e2] | [1 , 1] | [-0.5,3,-0.50]"},
      {R"({"uniqueItems": true})", R"([1,"1",[1],{"a":1},true,null] | [[1,2],[2,1]])",
       R"([[1,2],3,[1, 2]] | [{"a":1,"b":[]},{"b":[],"a":1}] | [true,true] | [null,2,null])"},
      {R"({"items": {"items": {"type": "integer"}, "uniqueItems": true}, "uniqueItems": false})",
       "[[1,2],[1,2]]", "[[1],[2,2]]"},
      {R"({"items": {"items": {"type": "integer"}}, "uniqueItems": true})", "[[1,1],[1]]",
       "[[1,1],[1,1]]"},
      {R"({"items": {"type": "integer", "minimum": 1, "maximum": 3}, "uniqueItems": true, "minItems": 3})",
       "[1,3,2]", "[1,2] | [1,2,1]"},
      {R"({"items": {"type": "string"}, "uniqueItems": false})", R"(["a","a"])", "[1]"},
  });
}

TEST(JsonSchema, CountsOfProperties) {
  Check({
      {R"({"type": "object", "minProperties": 1})", R"({"a":1} | {"a":1,"b":2})", "{}"},
      {R"({"maxProperties": 1})", R"({} | {"a":1})", R"({"a":1,"b":2})"},
      {R"({"maxProperties": 0})", "{}", R"({"a":1})"},
      {R"({"properties": {"a": {}, "b": {}, "c": {}}, "minProperties": 2})",
       R"({"a":1,"c":2} | {"b":1,"c":2} | {"a":1,"b":2,"c":3})", R"({} | {"b":1})"},
      {R"({"properties": {"a": {}, "b": {}, "c": {}}, "required": ["b"], "maxProperties": 2})",
       R"({"b":1} | {"a":1,"b":2} | {"b":1,"c":2})", R"({} | {"a":1,"c":2} | {"a":1,"b":2,"c":3})"},
      {R"({"properties": {"a": {}}, "additionalProperties": true, "minProperties": 2})",
       R"({"a":1,"b":2} | {"a":1,"b":2,"c":3})", R"({"a":1} | {"b":1})"},
      {R"({"properties": {"a": {}}, "additionalProperties": true, "maxProperties": 2})",
       R"({} | {"a":1,"b":2} | {"b":1,"c":2})", R"({"a":1,"b":2,"c":3})"},
      {R"({"allOf": [{"minProperties": 1}, {"maxProperties": 2}, {"minProperties": 0}]})",
       R"({"a":1})", R"({} | {"a":1,"b":2,"c":3})"},
  });
  const std::string few = R"({"properties": {"a": {}, "b": {}}, "required": ["a", "b"], )";
  EXPECT_EQ(FaultOf(few + R"("maxProperties": 1})"), "#: no value fits this schema");
  EXPECT_EQ(FaultOf(few + R"("minProperties": 3})"), "#: no value fits this schema");
}

TEST(JsonSchema, PatternProperties) {
  Check({
      {R"({"patternProperties": {"^S_": {"type": "string"}, "^I_": {"type": "integer"}}})",
       R"({} | {"S_a":"x","I_b":1} | {"I_1":1,"S_":""})",
       R"({"S_a":1} | {"I_b":"x"} | {"other":1})"},
      // A key of both obeys both.
      {R"({"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}}})",
       R"({"ab":3} | {"a":5})", R"({"ab":2} | {"a":"x"})"},
      {R"({"properties": {"n": {"type": "null"}}, "patternProperties": {"^[0-9]+$": {"type": "boolean"}}, "additionalProperties": false})",
       R"({} | {"n":null,"12":true})", R"({"n":1} | {"12":1} | {"x":true})"},
      // A property that is named and fits is written once, and no other one of the pattern.
      {R"({"properties": {"ab": {"minimum": 3}}, "patternProperties": {"^a": {"type": "integer"}}})",
       R"({} | {"ab":3})", R"({"ab":2} | {"ab":3.5} | {"ab":3,"ab":1})"},
      {R"({"required": ["a1"], "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false})",
       R"({"a1":1} | {"a1":1,"a2":2})", R"({} | {"a1":"x"} | {"a1":1,"a1":null})"},
      {R"({"allOf": [{"patternProperties": {"^a": {"type": "integer"}}}, {"additionalProperties": {"minimum": 2}}]})",
       R"({"a":2})", R"({"a":1} | {"a":2.5})"},
      {R"({"patternProperties": {"^a": false, "^b": {}}})", R"({"b":1})", R"({"a":1})"},
  });
}

TEST(JsonSchema, Not) {
  Check({
      {R"({"type": ["string", "null"], "not": {"type": "null"}})", R"("a")", "null"},
      {R"({"not": {"type": ["object", "array", "number"]}})", R"("a" | true)", "1 | {} | []"},
      {R"({"not": {"type": "integer"}})", R"("a")", "1 | 1.0"},
      {R"({"type": "string", "not": {"enum": ["a", "bc"]}})", R"("" | "b" | "ab" | "bcd")",
       R"("a" | "bc" | "\u0061" | 1)"},
      {R"({"type": "integer", "minimum": 0, "not": {"enum": [3, 0]}})", "1 | 2 | 4 | 13",
       "0 | 3 | -1"},
      {R"({"type": "number", "not": {"const": 2.5}})", "2.4 | 2 | 2.51", "2.5 | 2.50"},
      {R"({"enum": ["a", "b", 1], "not": {"const": "b"}})", R"("a" | 1)", R"("b")"},
      {R"({"type": ["boolean", "null"], "not": {"enum": [true, null]}})", "false", "true | null"},
      {R"({"not": {"not": {"type": "string"}}})", R"("a")", "1"},
      {R"({"not": {"type": "string", "enum": ["a", 1]}, "type": ["string", "integer"]})",
       R"(1 | "b")", R"("a")"},
      {R"({"properties": {"a": {}, "b": {}}, "not": {"required": ["a", "b"]}, "type": "object"})",
       R"({} | {"a":1} | {"b":1})", R"({"a":1,"b":1})"},
      {R"({"allOf": [{"not": {"const": "a"}}, {"not": {"enum": ["b"]}}], "type": "string"})",
       R"("c")", R"("a" | "b")"},
      {R"({"not": {"$ref": "#/$defs/n"}, "type": ["null", "string"], "$defs": {"n": {"type": "null"}}})",
       R"("")", "null"},
  });
}

TEST(JsonSchema, Conditions) {
  const std::string country =
      R"({"type": "object", "properties": {"country": {"enum": ["US", "NL", "FR"]}, "zip": {"type": "string"}},)";
  Check({
      {country +
           R"("required": ["country"], "if": {"properties": {"country": {"const": "US"}}, "required": ["country"]},
              "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}, "required": ["zip"]}, "else": {"properties": {"zip": false}}})",
       R"({"country":"US","zip":"12345"} | {"country":"NL"})",
       R"({"country":"US"} | {"country":"US","zip":"1"} | {"country":"NL","zip":"12345"} | {})"},
      // What is absent is like "US".
      {country +
           R"("if": {"properties": {"country": {"const": "US"}}}, "then": {"required": ["zip"]}})",
       R"({"country":"US","zip":""} | {"zip":""} | {"country":"FR"})", R"({"country":"US"} | {})"},
      {country +
           R"("allOf": [{"if": {"properties": {"country": {"const": "US"}}, "required": ["country"]}, "then": {"required": ["zip"]}},
                             {"if": {"properties": {"country": {"enum": ["NL", "US"]}}, "required": ["country"]}, "else": {"properties": {"zip": {"const": "-"}}}}]})",
       R"({"country":"US","zip":"x"} | {"country":"NL","zip":"x"} | {"country":"FR","zip":"-"} | {})",
       R"({"country":"US"} | {"country":"FR","zip":"x"} | {"zip":"x"})"},
      {R"({"type": ["integer", "string"], "if": {"type": "integer"}, "then": {"minimum": 5}, "else": {"maxLength": 1}})",
       R"(5 | "a")", R"(4 | "ab")"},
      {R"({"type": "integer", "if": {"anyOf": [{"const": 1}, {"const": 2}]}, "else": {"minimum": 9}})",
       "1 | 2 | 9", "3 | 8"},
      {R"({"type": "integer", "if": {"minimum": 3}})", "1 | 5", R"("a")"},
      {R"({"type": "integer", "then": {"minimum": 3}})", "1 | 5", R"("a")"},
      {R"({"type": "integer", "if": true, "then": {"minimum": 3}})", "5", "1"},
  });
}

// An unknown format says nothing of what is valid: it is noted, not refused.
TEST(JsonSchema, UnknownFormatsAreNoted) {
  std::vector<std::string> notes;
  const SchemaOptions options{.note = [&](const std::string& what) { notes.push_back(what); }};
  const Grammar grammar = ParseJsonSchema(
      R"({"properties": {"a": {"format": "color", "maxLength": 3}, "c": {"format": "color"}, "b": {"format": "date"}}})",
      options);
  EXPECT_EQ(notes,
            std::vector<std::string>{
                "#/properties/a/format: \"color\" is unknown, and any string may be written"});
  EXPECT_TRUE(Matches(grammar, R"({"a": "abc"})"));
  EXPECT_FALSE(Matches(grammar, R"({"a": "abcd"})"));
  EXPECT_FALSE(Matches(grammar, R"({"b": "abc"})"));
}

TEST(JsonSchema, IsCompactUnlessSpaceIsFree) {
  const std::string schema =
      R"({"properties": {"a": {}, "b": {"const": {"c": [1, []]}}, "d": {"items": {"enum": [1, 2]}, "uniqueItems": true}}})";
  const std::vector<std::string> compact = {
      "{}", R"({"a": [1, {"x": 2, "y": {}}], "b": {"c": [1, []]}, "d": [2, 1]})", R"({"a": []})"};
  const std::vector<std::string> spaced = {R"({"a":1})",      R"({ "a": 1 })",   "{\n  \"a\": 1\n}",
                                           R"({"a": [1,2]})", R"({"a": [ 1 ]})", R"({"d": [1,2]})"};
  for (const std::string& text : compact) {
    EXPECT_TRUE(Matches(ParseJsonSchema(schema), text)) << text;
  }
  for (const std::string& text : spaced) {
    EXPECT_FALSE(Matches(ParseJsonSchema(schema), text)) << text;
    EXPECT_TRUE(Matches(Parse(schema), text)) << text;
  }
  EXPECT_TRUE(Matches(JsonObject(), R"({"a": 1, "b": []})"));
  EXPECT_FALSE(Matches(JsonObject(), R"({"a":1})"));
  EXPECT_FALSE(Matches(JsonObject(), "{}"));  // says nothing
  EXPECT_TRUE(Matches(JsonObject({.free_space = true}), R"({"a":1})"));
}

TEST(JsonSchema, WhatIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty, not JSON"},
      {"[]", "#: a schema is an object"},
      {"false", "#: no value fits this schema"},
      {R"({"multipleOf": 0})", "#/multipleOf: expected a number above 0"},
      {R"({"type": "integer", "multipleOf": 99991})", "#: multiples of a number of so many digits"},
      {R"({"not": {}})", "#: no value fits this schema"},
      {R"({"not": {"type": 3}})", "#/not/type: expected a type or a list of types"},
      {R"({"type": "array", "not": {"uniqueItems": true}})",
       "#/not/uniqueItems: this keyword cannot be negated"},
      {R"j({"patternProperties": {"(?<=a)": {}}})j",
       "pattern, byte 3: lookbehind is not supported"},
      {R"({"type": "text"})", "#/type: \"text\" is no type of JSON"},
      {R"({"type": 3})", "#/type: expected a type or a list of types"},
      {R"({"required": "a"})", "#/required: expected a list"},
      {R"({"required": [1]})", "#/required: expected a list of strings"},
      {R"({"minLength": -1})", "#/minLength: expected a whole number of at least 0"},
      {R"({"items": 1})", "#/items: expected"},
      {R"({"pattern": "a(b"})", "pattern, byte 3: a '(' without its ')'"},
      {R"({"pattern": "(a)\\1"})", "pattern, byte 4: this escape is not supported"},
      {R"({"pattern": "(a(?!b))*c"})", "(?= and (?! are not supported in what is repeated"},
      {R"({"anyOf": []})", "#/anyOf: expected a list of schemas"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "integer"}]})", "#: no value fits this schema"},
      {R"({"type": "array", "contains": {"type": "null"}, "maxContains": 9999})",
       "#/contains: too many items to be counted"},
      {R"({"$ref": "#/$defs/none"})", "#: '$ref' leads to \"#/$defs/none\", where no schema is"},
      {R"({"$ref": "other.json"})", "\"other.json\", which is another document"},
      {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"], "type": "object"})",
       "#: no value fits this schema"},
      {R"({"properties": {"a": false}, "required": ["a"], "type": "object"})",
       "#: no value fits this schema"},
      {R"({"allOf": [{"pattern": "^a"}, {"pattern": "^b"}], "type": "string"})",
       "#: no value fits this schema"},
  };
  for (const auto& [schema, fault] : cases) {
    EXPECT_TRUE(test::Has(FaultOf(schema), fault)) << schema;
  }
  EXPECT_EQ(FaultOf(R"({"x-order": 1, "description": "d", "default": 3, "type": "integer"})"), "");
}

// As the standard says: more properties, in any order, and types that the keywords are not for.
void CheckOpen(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Grammar grammar = ParseJsonSchema(c.schema, {.free_space = true});
    for (const std::string& text : test::Texts(c.valid)) {
      EXPECT_TRUE(Matches(grammar, text)) << c.schema << " " << text;
    }
    for (const std::string& text : test::Texts(c.invalid)) {
      EXPECT_FALSE(Matches(grammar, text)) << c.schema << " " << text;
    }
  }
}

// What a negation asks for: some member, or some item, that violates a schema.
TEST(JsonSchema, NegationsThatNeedAPart) {
  CheckOpen({
      {R"({"type": "object", "not": {"patternProperties": {"a": {"type": "null"}}}})",
       R"({"a":1} | {"b":1,"xax":true} | {"a":null,"ba":2,"c":null})",
       R"({} | {"a":null} | {"b":1})"},
      {R"({"type": "object", "properties": {"a1": {}, "b": {}},
           "not": {"patternProperties": {"a": {"type": "null"}}}})",
       R"({"a1":1} | {"b":1,"a2":true} | {"a1":null,"a2":2})",
       R"({"b":2} | {"a1":null,"a2":null})"},
      {R"({"type": "object", "not": {"propertyNames": {"maxLength": 2}}})",
       R"({"abc":1} | {"a":1,"abcd":2})", R"({} | {"ab":1})"},
      // One member may be what several schemas need, or each its own.
      {R"({"type": "object", "maxProperties": 2,
           "allOf": [{"not": {"propertyNames": {"pattern": "^[^x]*$"}}},
                     {"not": {"propertyNames": {"pattern": "^[^y]*$"}}}]})",
       R"({"xy":1} | {"x":1,"y":2} | {"y":1,"xx":2} | {"b":1,"yx":2})",
       R"({"x":1} | {"y":1,"z":2} | {"x":1,"b":2})"},
      {R"({"type": "object", "not": {"properties": {"a": {}}, "additionalProperties": {"type": "null"}}})",
       R"({"b":1} | {"a":1,"b":null,"c":2})", R"({} | {"a":1} | {"b":null,"c":null})"},
      {R"({"type": "array", "not": {"items": [{}, {}], "additionalItems": {"type": "null"},
           "$schema": "http://json-schema.org/draft-07/schema#"},
           "$schema": "http://json-schema.org/draft-07/schema#"})",
       R"([1,2,3] | [null,null,null,4])", R"([] | [1,2] | [1,2,null])"},
  });
}

TEST(JsonSchema, SeveralContains) {
  CheckOpen({
      {R"({"type": "array", "contains": {"type": "null"},
           "allOf": [{"contains": {"minimum": 5, "type": "integer"}, "maxContains": 1}]})",
       R"([null,7] | [7,null] | [1,null,7,null,"a"])",
       R"([] | [null] | [7] | [null,7,8] | [null,4])"},
      {R"({"type": "array", "contains": {"type": "integer"},
           "allOf": [{"contains": {"type": "number"}, "minContains": 2}]})",
       R"([1,2] | [1.5,2] | ["a",3,null,0.5])", R"([1] | [1.5,2.5] | ["a",3])"},
  });
}

// Objects that a property tells apart: the others' negations say nothing more.
TEST(JsonSchema, ManyAlternativesToldApart) {
  std::string ways;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    ways += (i > 0 ? "," : "") + (R"({"properties": {"kind": {"const": "k)" + n + R"("}, "a)" + n) +
            R"(": {"type": "integer"}, "b": {"maximum": )" + n + "}}}";
  }
  CheckOpen({{R"({"type": "object", "required": ["kind"], "oneOf": [)" + ways + "]}",
              R"({"kind":"k7","a7":1,"b":7} | {"a8":"x","kind":"k7"})",
              R"({"kind":"k7","a7":"x"} | {"kind":"k7","b":8} | {"kind":"k99"} | {"a7":1})"}});
}

TEST(JsonSchema, Standard) {
  CheckOpen({
      {R"({"properties": {"a": {"type": "integer"}, "b": {"type": "null"}}, "required": ["b"]})",
       R"({"b":null,"a":1} | {"x":1,"b":null,"y":{}} | 3 | "b")",
       R"({"a":1} | {"b":null,"a":"x"} | {"b":null,"b":null})"},
      {R"({"minLength": 2, "maximum": 3})", R"("ab" | 3 | [] | null)", R"("a" | 4)"},
      {R"({"enum": ["a", "bcd", 1, 7], "minLength": 2, "minimum": 5})", R"("bcd" | 7)",
       R"("a" | 1)"},
      {R"({"type": "string", "pattern": "^[a-c]+$", "minLength": 2, "maxLength": 3})",
       R"("ab" | "cba")", R"("a" | "abca" | "xy")"},
      {R"({"type": "string", "format": "date", "pattern": "^2", "not": {"const": "2026-01-01"}})",
       R"("2026-01-02")", R"("2026-01-01" | "1999-01-01")"},
      {R"({"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"})",
       R"({"a":1} | {"c":1,"b":2})", R"({} | {"a":1,"b":2})"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]})", "1 | 5.5 | -3",
       "6 | 1.5"},
      {R"({"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"properties": {"d": {"type": "null"}}}}})",
       R"({"b":1} | {"a":1,"b":1} | {"d":1} | {"d":null,"c":1})", R"({"a":1} | {"c":1,"d":1})"},
      {R"({"type": "object", "propertyNames": {"pattern": "^[a-z]{1,3}$"}, "minProperties": 2, "maxProperties": 3})",
       R"({"a":1,"bc":2} | {"a":1,"b":2,"c":3})",
       R"({"a":1} | {"A":1,"b":2} | {"a":1,"b":2,"c":3,"d":4})"},
      {R"({"type": "object", "properties": {"ab": {"type": "integer"}}, "patternProperties": {"^a": {"minimum": 3}, "b$": {"type": "integer"}},
           "additionalProperties": {"type": "null"}})",
       R"({"ab":3,"a":"x","b":1,"c":null} | {"axb":4})",
       R"({"ab":2} | {"a":1} | {"b":1.5} | {"c":1} | {"axb":1})"},
      {R"({"type": "array", "contains": {"type": "null"}, "items": {"type": ["null", "integer"]}, "minContains": 2, "maxContains": 3})",
       "[null,1,null] | [null,null,null,2]",
       "[] | [null] | [null,null,null,null] | [null,null,true]"},
      {R"({"not": {"type": "object", "required": ["a"], "properties": {"a": {"maximum": 3}}}})",
       R"(1 | {} | {"a":4} | {"b":1})", R"({"a":1} | {"a":"x"})"},
      {R"({"type": "object", "if": {"properties": {"a": {"minLength": 2}}, "required": ["a"]}, "then": {"required": ["b"]}, "else": {"maxProperties": 1}})",
       R"({"a":"xy","b":1} | {"a":"x"} | {})", R"({"a":"xy"} | {"c":1,"d":2})"},
      {R"({"type": "number", "minimum": 0.0000001, "exclusiveMaximum": 18446744073709551616})",
       "0.0000001 | 18446744073709551615 | 5", "0 | 0.00000009 | 18446744073709551616"},
      {R"({"maximum": 1.7976931348623157e308, "type": "number"})", "12345.5", R"("x")"},
      {R"({"$defs": {"n": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n", "type": ["object", "null"]}}, "required": ["v"]}},
           "$ref": "#/$defs/n"})",
       R"({"v":1} | {"next":{"v":2},"v":1})",
       R"({} | 1 | {"v":1,"next":{}} | {"v":1,"next":null})"},
      {R"({"$id": "http://a.org/s", "$defs": {"x": {"$id": "t.json", "type": "null"}, "y": {"$anchor": "here", "type": "boolean"}},
           "prefixItems": [{"$ref": "t.json"}, {"$ref": "#here"}], "type": "array"})",
       "[null,true]", "[1] | [null,null]"},
      {R"j({"type": "string", "pattern": "^(?!ab)[a-c]+\\b-?$"})j", R"("ba" | "ac-")",
       R"("abc" | "b--")"},
      {R"j({"type": "string", "pattern": "^(?<year>[\\w-.]{4})$"})j", R"("a-.b")", R"("a b.")"},
      {R"({"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": true})",
       "4", "3"},
      {R"({"$schema": "http://json-schema.org/draft-03/schema#", "type": "object", "properties": {"a": {"required": true, "divisibleBy": 3}}})",
       R"({"a":6})", R"({} | {"a":5})"},
      {R"({"type": "integer", "strict": true, "contentEncoding": "base64", "nullable": true})", "1",
       "null"},
  });
}

// Schemas that would take all memory if they were expanded.
TEST(JsonSchema, Hostile) {
  EXPECT_NE(FaultOf(std::string(100'000, '[')), "");
  std::string deep = "{}";
  for (int i = 0; i < 30; ++i) deep = R"({"items": )" + deep + "}";
  EXPECT_EQ(FaultOf(deep), "");
  // Two ways at each of 30 levels.
  std::string doubling = R"({"$defs": {"d0": {"type": "integer"})";
  for (int i = 1; i <= 30; ++i) {
    const std::string below =
        R"({"$ref": "#/$defs/d)" + std::to_string(i - 1) + R"(", "minimum": 1})";
    doubling += R"(, "d)" + std::to_string(i) + R"(": {"properties": {"a": )" + below +
                R"(, "b": )" + below + "}}";
  }
  EXPECT_EQ(FaultOf(doubling + R"(}, "$ref": "#/$defs/d30"})"), "");
  // It leads to itself, with more to be merged.
  EXPECT_EQ(
      FaultOf(
          R"({"$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a", "required": ["x"]}}}}, "$ref": "#/$defs/a"})"),
      "");
  EXPECT_EQ(FaultOf(R"({"items": {"minLength": 200000}, "minItems": 200000})"), "");
  // Choices that multiply.
  std::string choices = R"({"type": "object", "allOf": [{}])";
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    choices.insert(choices.size() - 1, R"(, {"anyOf": [{"required": ["a)" + n +
                                           R"("]}, {"required": ["b)" + n + R"("]}]})");
  }
  EXPECT_NE(FaultOf(choices + "}"), "");
  EXPECT_NE(FaultOf(R"j({"type": "string", "pattern": "(a|b)*a(a|b){20}$"})j"), "");
}

}  // namespace
}  // namespace grammar
