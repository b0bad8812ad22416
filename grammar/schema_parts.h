// A JSON Schema before it becomes rules: references are followed, allOf is merged, negations and
// conditions become alternatives, unsupported keywords are refused. For json_schema.cc.
#ifndef PRONK_GRAMMAR_SCHEMA_PARTS_H_
#define PRONK_GRAMMAR_SCHEMA_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/json.h"

namespace grammar {

using gguf::JsonView;

inline bool IsTrue(const JsonView& value) { return value.text() == "true"; }
inline bool IsFalse(const JsonView& value) { return value.text() == "false"; }
// A schema that requires both.
JsonView Both(const JsonView& a, const JsonView& b);

// A schema's keywords, each once. Their values are places in the schema's text, or merged ones.
struct Flat {
  bool fits = true;   // false: no value does
  bool exact = true;  // false: it leaves out values that are valid
  std::vector<JsonView::Member> keywords;

  bool IsAny() const { return fits && keywords.empty(); }
  bool Has(std::string_view name) const { return (*this)[name].is_there(); }
  JsonView operator[](std::string_view name) const;  // absent if there is none
  void Set(std::string_view name, const JsonView& value);
  void Erase(std::string_view name);
  JsonView Json() const;
};

// Throws grammar::Error: "#/properties/name: WHAT".
[[noreturn]] void FailAt(const std::string& pointer, const std::string& what);
// A place below a pointer; / and ~ in its name are escaped as in JSON Pointer (RFC 6901).
std::string Below(const std::string& pointer, const std::string& name);

class SchemaParts {
 public:
  explicit SchemaParts(JsonView root);

  // The schema that a reference such as "#/$defs/node" points to. Throws if there is none.
  JsonView Follow(const std::string& reference, const std::string& pointer) const;
  // The schema's keywords without annotations, merged with those of allOf and of a reference beside
  // other keywords; a lone reference is kept. Throws grammar::Error if a
  // keyword is not supported or has a wrong value, or schemas cannot be merged.
  Flat Flatten(const JsonView& schema, const std::string& pointer, size_t depth = 0);
  // The same of what a lone reference leads to.
  Flat Resolve(const JsonView& schema, const std::string& pointer, size_t depth = 0);
  // Whether no value generated for one schema is valid under the other. false: unknown.
  bool Apart(const JsonView& a, const JsonView& b, const std::string& pointer, size_t depth = 0);

 private:
  void Charge(size_t bytes, const std::string& pointer);
  // A schema of exactly the values that are not valid under this one.
  JsonView Negation(const JsonView& schema, const std::string& pointer, size_t depth);
  void Merge(Flat& a, const Flat& b, const std::string& pointer);
  bool Misses(const JsonView& made, const JsonView& other, const std::string& pointer,
              size_t depth);

  JsonView root_;
  size_t n_bytes_ = 0;  // of schemas looked at and of what merging them made
};

// The types that a flat schema allows: those it names, else those its keywords apply to, else all.
std::vector<std::string> TypesOf(const Flat& flat);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_SCHEMA_PARTS_H_
