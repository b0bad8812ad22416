// JSON Schema as a grammar: the keywords of objects and of lists.
#include <string>
#include <vector>

#include "tests/grammar/schema_cases.h"

namespace grammar {
namespace {

using test_cases::Check;
using test_cases::CheckOpen;
using test_cases::FaultOf;

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
      // A key that matches both patterns must satisfy both schemas.
      {R"({"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}}})",
       R"({"ab":3} | {"a":5})", R"({"ab":2} | {"a":"x"})"},
      {R"({"properties": {"n": {"type": "null"}}, "patternProperties": {"^[0-9]+$": {"type": "boolean"}}, "additionalProperties": false})",
       R"({} | {"n":null,"12":true})", R"({"n":1} | {"12":1} | {"x":true})"},
      // A named property that also matches the pattern may be written only once.
      {R"({"properties": {"ab": {"minimum": 3}}, "patternProperties": {"^a": {"type": "integer"}}})",
       R"({} | {"ab":3})", R"({"ab":2} | {"ab":3.5} | {"ab":3,"ab":1})"},
      {R"({"required": ["a1"], "patternProperties": {"^a": {"type": "integer"}}, "additionalProperties": false})",
       R"({"a1":1} | {"a1":1,"a2":2})", R"({} | {"a1":"x"} | {"a1":1,"a1":null})"},
      {R"({"allOf": [{"patternProperties": {"^a": {"type": "integer"}}}, {"additionalProperties": {"minimum": 2}}]})",
       R"({"a":2})", R"({"a":1} | {"a":2.5})"},
      {R"({"patternProperties": {"^a": false, "^b": {}}})", R"({"b":1})", R"({"a":1})"},
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
      // Many possible items also work.
      {R"({"items": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}, "uniqueItems": true, "minItems": 1, "maxItems": 3})",
       "[4] | [1,9] | [7,2,5]", "[] | [5,5] | [1,2,3,4]"},
      {R"({"items": {"type": "string"}, "uniqueItems": true, "maxItems": 1})", R"(["a"])", ""},
      // Equal values may be written differently.
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

}  // namespace
}  // namespace grammar
