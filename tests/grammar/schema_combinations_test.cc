// JSON Schema as a grammar: alternatives, negations, references and other keywords that combine
// schemas.
#include <string>
#include <vector>

#include "tests/grammar/schema_cases.h"

namespace grammar {
namespace {

using test_cases::Check;
using test_cases::CheckOpen;
using test_cases::CheckValues;
using test_cases::Parse;

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
      // One schema's rule for all items also holds for the other schema's first items.
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
      // An absent country counts as "US".
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

// A negation requires some member, or some item, that violates a schema.
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
      // One member may satisfy several schemas, or each schema has its own member.
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

// A property distinguishes the objects, so the negations of the other alternatives add nothing.
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

// Each of the 30 schemas holds without x, or without its own b. Without x every schema holds, so
// there are two alternatives, not 2^30.
TEST(JsonSchema, AlternativesWithinOthers) {
  std::string all;
  for (int i = 0; i < 30; ++i) {
    all += (i > 0 ? "," : "") +
           (R"({"not": {"allOf": [{"$ref": "#/$defs/x"}, {"required": ["b)" + std::to_string(i)) +
           R"("]}]}})";
  }
  CheckOpen({{R"({"$defs": {"x": {"required": ["x"]}}, "type": "object", "allOf": [)" + all + "]}",
              R"({} | {"x":1} | {"x":1,"c":2} | {"b0":1,"b1":1} | {"b29":1,"c":2})",
              R"({"b0":1,"x":1} | {"x":1,"b29":1} | {"b1":1,"b2":1,"x":1})"}});
  CheckValues({"closed and empty", "{}", R"({"a":1} | {"type":"object"} | 1)"},
              Parse(R"({"type": "object", "properties": {}})"));
  // If objects are closed, an alternative with more properties allows more values.
  CheckValues({"closed", R"({"a":1} | {"b":2,"a":1})", R"({"c":1})"},
              Parse(R"({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a",
                         "properties": {"b": {}}}], "$defs": {"a": {"properties": {"a": {}}}}})"));
}

}  // namespace
}  // namespace grammar
