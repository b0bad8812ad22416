// Random texts that a schema's grammar allows must be valid JSON, and valid for the schema.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "grammar/constraint.h"
#include "grammar/json_schema.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/vocab_spec.h"

namespace grammar {
namespace {

// Has tokens of several characters; some span the parts of a value.
class RandomModel {
 public:
  RandomModel() {
    test::VocabSpec spec = test::SpmSpec();
    spec.more.Add("tokenizer.ggml.eos_token_id", uint32_t{2});
    for (const char* const token :
         {"\":",  "\":\u2581", "\",\u2581\"", "\"}", "}}",     "]}",
          "],[",  "{\"",       "},",          "12",  "1,",     ".5",
          "true", "€",         "\\\"",        "\\u", "\u2581", "\n\u2581\u2581",
          "null", "ab",        "\"ab\"",      "-1"}) {
      spec.Add(token, -1);
    }
    gguf::Writer writer = spec.more;
    spec.AddTo(writer);
    bytes_ = writer.ToBytes();
    file_ = std::make_unique<gguf::File>(gguf::File::Parse("v.gguf", bytes_));
    tokenizer_ = tokenizer::Tokenizer::Create(*file_);
  }

  // Writes a random text that the constraint allows. After 100 steps it prefers tokens that end
  // strings, lists and objects.
  std::string Write(Constraint& constraint, std::mt19937& random) const {
    constraint.Restart();
    std::string text;
    for (size_t step = 0; !constraint.done() && step < 20'000; ++step) {
      const std::vector<tokenizer::TokenId> ids = Allowed(constraint);
      if (ids.empty() || (constraint.may_end() && random() % 4 == 0)) break;
      tokenizer::TokenId id = ids[random() % ids.size()];
      if (step > 100) {
        const std::string_view order =
            random() % 2 == 0 ? "}]\"0123456789tfn\\u" : "\"}]0123456789tfn\\u";
        const auto rank = [&](tokenizer::TokenId t) { return order.find(tokenizer_->Piece(t)); };
        for (const tokenizer::TokenId other : ids) id = rank(other) < rank(id) ? other : id;
      }
      text += tokenizer_->Piece(id);
      constraint.Accept(id);
      for (const tokenizer::TokenId forced : constraint.Forced()) {
        text += tokenizer_->Piece(forced);
        constraint.Accept(forced);
      }
    }
    EXPECT_TRUE(constraint.may_end()) << text;
    return text;
  }

  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::vector<tokenizer::TokenId> Allowed(Constraint& constraint) const {
    const std::span<const uint64_t> mask = constraint.Allowed();
    std::vector<tokenizer::TokenId> ids;
    for (size_t i = 0; i < tokenizer_->vocab().size(); ++i) {
      const auto id = static_cast<tokenizer::TokenId>(i);
      if ((mask[i / 64] >> (i % 64) & 1) != 0 && !tokenizer_->vocab().IsEog(id)) ids.push_back(id);
    }
    return ids;
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
};

TEST(RandomText, IsValidByItsSchema) {  // compact or not
  const std::vector<std::string> schemas = {
      "{}",
      R"({"type": "object"})",
      R"({"type": ["integer", "string", "null"], "maxLength": 20, "minimum": -5})",
      R"({"properties": {"name": {"type": "string", "minLength": 1, "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
          "tags": {"items": {"enum": ["a", "b\"", "ab"]}, "maxItems": 3}, "score": {"type": "number", "exclusiveMinimum": -1, "maximum": 10}},
          "required": ["name", "tags"], "additionalProperties": {"type": "boolean"}})",
      R"({"$defs": {"node": {"properties": {"v": {"type": "number"}, "kids": {"items": {"$ref": "#/$defs/node"}, "maxItems": 2}}, "required": ["v"]}}, "$ref": "#/$defs/node"})",
      R"({"items": {"oneOf": [{"type": "null"}, {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"format": "date"}}, "required": ["kind", "x"]},
          {"type": "object", "properties": {"kind": {"const": "b"}, "x": {"format": "uuid"}}, "required": ["kind"]}]}, "minItems": 2, "maxItems": 4})",
      R"({"properties": {"ab": {"pattern": "^[a-c]{2}(-\\d{1,3})?$"}, "t": {"format": "date-time"}, "u": {"format": "time"}}, "required": ["ab", "t", "u"]})",
      R"({"prefixItems": [{"type": "boolean"}, {"type": "number", "minimum": 0, "exclusiveMaximum": 1}], "items": {"type": "null"}, "minItems": 3, "maxItems": 5})",
      R"({"prefixItems": [{"format": "duration"}, {"format": "email"}, {"format": "hostname"}, {"format": "ipv4"}, {"format": "ipv6"}, {"format": "uri"}], "minItems": 6})",
      R"({"allOf": [{"prefixItems": [{"minimum": -0.75}, {"type": "boolean"}]}, {"prefixItems": [{"exclusiveMaximum": 1.25}]}], "items": {"type": ["number", "boolean"]}, "minItems": 2, "maxItems": 4})",
      R"({"allOf": [{"properties": {"a": {"type": "integer", "exclusiveMinimum": 3}}, "required": ["a"]}, {"properties": {"b": {"const": {"c": [1, null]}}}, "required": ["b"]}]})",
      R"({"prefixItems": [{"type": "integer", "multipleOf": 7, "minimum": -500, "maximum": 12345}, {"type": "number", "multipleOf": 0.25, "minimum": -3, "exclusiveMaximum": 70.1},
          {"type": "integer", "multipleOf": 12}, {"type": "number", "multipleOf": 500}], "minItems": 4, "items": false})",
      R"({"items": {"items": {"enum": ["a", "ab", 1, null, true]}, "uniqueItems": true, "minItems": 2, "maxItems": 4}, "minItems": 3, "maxItems": 6})",
      R"({"items": {"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}, "uniqueItems": true, "minItems": 2, "maxItems": 7})",
      R"({"properties": {"a": {"type": "null"}, "b": {"const": 1}, "ab": {"type": "boolean"}}, "minProperties": 2, "maxProperties": 3, "additionalProperties": {"type": "integer"}})",
      R"({"patternProperties": {"^a": {"type": "integer"}, "b$": {"minimum": 3}, "^1": {"type": "string", "maxLength": 4}}, "minProperties": 1, "maxProperties": 4})",
      R"({"type": ["string", "integer", "boolean", "null", "number"], "maxLength": 9, "not": {"type": ["null", "boolean"]}})",
      R"({"items": {"type": ["string", "integer", "boolean"], "not": {"enum": ["a", "ab", 1, -1, true]}}, "minItems": 4, "maxItems": 8})",
      R"({"type": "object", "properties": {"ab": {"enum": ["a", "b", "ab"]}, "n": {"type": "number", "minimum": 0, "maximum": 9}, "t": {"type": "boolean"}}, "required": ["ab"],
          "allOf": [{"if": {"properties": {"ab": {"const": "a"}}}, "then": {"required": ["n"], "properties": {"n": {"minimum": 5}}}, "else": {"properties": {"t": false}}},
                    {"if": {"required": ["n"]}, "then": {"properties": {"n": {"multipleOf": 0.5}}}, "else": {"required": ["ab"]}}]})",
      R"({"not": {"anyOf": [{"type": "object"}, {"type": "array"}, {"enum": ["", 0, false]}]}, "type": ["string", "integer", "boolean", "array"], "minimum": -9})",
  };
  const RandomModel model;
  std::mt19937 random(5);
  for (const std::string& text : schemas) {
    const auto schema = test::Json::parse(text);
    // Ordered, since this model would otherwise add properties without end.
    const SchemaOptions free{.free_space = true, .ordered = true};
    Constraint compact(std::make_shared<const Grammar>(ParseJsonSchema(text, {.ordered = true})),
                       model.tokenizer());
    Constraint spaced(std::make_shared<const Grammar>(ParseJsonSchema(text, free)),
                      model.tokenizer());
    for (int i = 0; i < 40; ++i) {
      const std::string written = model.Write(i % 2 == 0 ? compact : spaced, random);
      ASSERT_TRUE(test::Json::accept(written)) << written;
      const std::vector<std::string> faults =
          test::SchemaFaults(test::Json::parse(written), schema);
      ASSERT_TRUE(faults.empty()) << text << "\n" << written << "\n" << faults[0];
    }
  }
}

}  // namespace
}  // namespace grammar
