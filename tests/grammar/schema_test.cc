// JSON Schema as a grammar: values of each type, options, refused schemas, hostile schemas.
#include <string>
#include <vector>

#include "tests/grammar/schema_cases.h"

namespace grammar {
namespace {

using test::Matches;
using test_cases::Case;
using test_cases::Check;
using test_cases::CheckOpen;
using test_cases::FaultOf;
using test_cases::Parse;

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

// An unknown format does not restrict values: a note reports it. Members of an object have no
// order. Keys whose values cannot be valid are forbidden.
TEST(JsonSchema, ObjectsAreEqualInAnyOrder) {
  const auto matches = [](const char* schema, const char* text) {
    return Matches(Parse(schema), text);
  };
  constexpr const char* kBoth = R"({"const": {"a": 1, "b": 2}, "enum": [{"b": 2, "a": 1}]})";
  EXPECT_TRUE(matches(kBoth, R"({"a":1,"b":2})") || matches(kBoth, R"({"b":2,"a":1})"));
  constexpr const char* kOther = R"({"anyOf": [{"type": "object", "minProperties": 2,
      "properties": {"a": {"const": 1}}, "additionalProperties": {"not": {}}}, {"const": 5}]})";
  EXPECT_TRUE(matches(kOther, "5"));
  EXPECT_FALSE(matches(kOther, R"({"a":1,"b":2})"));
}

TEST(JsonSchema, UnknownFormatsAreNoted) {
  std::vector<std::string> notes;
  const SchemaOptions options{.note = [&](const std::string& what) { notes.push_back(what); }};
  const Grammar grammar = ParseJsonSchema(
      R"({"properties": {"a": {"format": "color", "maxLength": 3}, "c": {"format": "color"}, "b": {"format": "date"}}})",
      options);
  EXPECT_EQ(notes, std::vector<std::string>{
                       "#/properties/a/format: \"color\" is unknown, and is ignored"});
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
  EXPECT_FALSE(Matches(JsonObject(), "{}"));  // an empty object has no content
  EXPECT_TRUE(Matches(JsonObject({.free_space = true}), R"({"a":1})"));
}

TEST(JsonSchema, WhatIsRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty, not JSON"},
      {"[]", "#: expected an object or a boolean"},
      {"false", "#: no value fits this schema"},
      {R"({"multipleOf": 0})", "#/multipleOf: expected a number above 0"},
      {R"({"type": "integer", "multipleOf": 99991})", "#: multiples of a number of so many digits"},
      {R"({"type": "integer", "multipleOf": 9223372036854775811})", "of so many digits"},
      {R"({"multipleOf": 0.922337203685477581})", "of so many digits"},
      {R"({"not": {}})", "#: no value fits this schema"},
      {R"({"not": {"type": 3}})", "#/not/type: expected a type or a list of types"},
      {R"({"type": "array", "not": {"uniqueItems": true}})",
       "#/not/uniqueItems: this keyword cannot be negated"},
      {R"j({"patternProperties": {"(?<=a)": {}}})j",
       "pattern, byte 3: lookbehind is not supported"},
      {R"({"type": "text"})", "#/type: \"text\" is not a JSON type"},
      {R"({"type": 3})", "#/type: expected a type or a list of types"},
      {R"({"required": "a"})", "#/required: expected a list"},
      {R"({"required": [1]})", "#/required: expected a list of strings"},
      {R"({"minLength": -1})", "#/minLength: expected a whole number of at least 0"},
      {R"({"items": 1})", "#/items: expected"},
      {R"({"pattern": "a(b"})", "pattern, byte 3: a '(' without its ')'"},
      {R"({"pattern": "(a)\\1"})", "pattern, byte 4: this escape is not supported"},
      {R"({"pattern": "(a(?!b))*c"})", "(?= and (?! are not supported in what is repeated"},
      {R"({"pattern": "^a(?!\\b).$"})", "next to (?= and (?! are supported only at the start"},
      {R"({"pattern": "^1(?=[0-9])\\B2$"})", "next to (?= and (?! are supported only at the start"},
      {R"({"pattern": "^(ab)?(?=c)^c$"})", "next to (?= and (?! are supported only at the start"},
      {R"({"type": "object", "properties": {"a": {"const": 1}}, "minProperties": 2,
           "additionalProperties": {"not": {}}})",
       "#: no value fits this schema"},
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

// llama.cpp's tests (tests/test-grammar-integration.cpp, 367 texts without tokens) call these texts
// invalid. If a schema is closed and ordered, as in the program, only the first text differs.
TEST(JsonSchema, DiffersFromLlamaCppByChoice) {
  const std::vector<Case> cases = {
      // Integers of 17 digits.
      {R"({"type": "integer", "minimum": 2})", "12345678900000000", "1"},
      // Without "type", a keyword restricts only values of its own type.
      {R"({"items": {"type": "number"}, "minItems": 3})", "1 | [1,2,3]", "[1]"},
      // Properties that the schema does not name are allowed.
      {R"({"type": "object", "properties": {"a": {"type": "string"}}})", R"({"a":"x","b":"NW"})",
       R"({"a":1})"},
      // Optional and required properties may have any order. Six of llama.cpp's texts differ here.
      {R"({"type": "object", "properties": {"n": {"type": "number"}, "s": {"type": "string"}}})",
       R"({"s":"P","n":1600})", R"({"s":"P","n":"x"})"},
      {R"({"properties": {"b": {}, "a": {}, "c": {}}, "required": ["a", "b"], "additionalProperties": false})",
       R"({"a":"f","b":"b"} | {"c":1,"a":"f","b":"b"})", R"({"a":"f","d":"b","b":1})"},
  };
  CheckOpen(cases);
  EXPECT_TRUE(Matches(Parse(cases[0].schema), cases[0].valid));
  for (size_t i = 1; i < cases.size(); ++i) {
    const std::string text = test::Texts(cases[i].valid)[0];
    EXPECT_FALSE(Matches(Parse(cases[i].schema), text)) << text;
  }
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

// Expanding these schemas would exhaust memory.
TEST(JsonSchema, Hostile) {
  EXPECT_NE(FaultOf(std::string(100'000, '[')), "");
  std::string deep = "{}";
  for (int i = 0; i < 30; ++i) deep = R"({"items": )" + deep + "}";
  EXPECT_EQ(FaultOf(deep), "");
  // There are two references at each of 30 levels.
  std::string doubling = R"({"$defs": {"d0": {"type": "integer"})";
  for (int i = 1; i <= 30; ++i) {
    const std::string below =
        R"({"$ref": "#/$defs/d)" + std::to_string(i - 1) + R"(", "minimum": 1})";
    doubling += R"(, "d)" + std::to_string(i) + R"(": {"properties": {"a": )" + below +
                R"(, "b": )" + below + "}}";
  }
  EXPECT_EQ(FaultOf(doubling + R"(}, "$ref": "#/$defs/d30"})"), "");
  // The reference leads to itself, and adds a keyword each time.
  EXPECT_EQ(
      FaultOf(
          R"({"$defs": {"a": {"properties": {"x": {"$ref": "#/$defs/a", "required": ["x"]}}}}, "$ref": "#/$defs/a"})"),
      "");
  EXPECT_EQ(FaultOf(R"({"items": {"minLength": 200000}, "minItems": 200000})"), "");
  // The choices multiply.
  std::string choices = R"({"type": "object", "allOf": [{}])";
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    choices.insert(choices.size() - 1, R"(, {"anyOf": [{"required": ["a)" + n +
                                           R"("]}, {"required": ["b)" + n + R"("]}]})");
  }
  EXPECT_NE(FaultOf(choices + "}"), "");
  // Any two of these alternatives may hold at once.
  std::string objects;
  for (int i = 0; i < 300; ++i) {
    objects += (i > 0 ? "," : "") + (R"({"properties": {"p)" + std::to_string(i)) +
               R"(": {"type": "integer"}}})";
  }
  EXPECT_TRUE(test::Has(FaultOf(R"({"oneOf": [)" + objects + "]}"),
                        "more time or memory than a schema may (2 s, 64 MB)"));
  EXPECT_NE(FaultOf(R"j({"type": "string", "pattern": "(a|b)*a(a|b){20}$"})j"), "");
}

}  // namespace
}  // namespace grammar
