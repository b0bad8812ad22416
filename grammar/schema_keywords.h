// A schema as a list of its keywords: which are supported, the values that they may have, and what
// two such lists require together. For schema_parts.cc and json_schema.cc.
#ifndef PRONK_GRAMMAR_SCHEMA_KEYWORDS_H_
#define PRONK_GRAMMAR_SCHEMA_KEYWORDS_H_

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/grammar.h"

namespace grammar {

using gguf::JsonView;

inline bool IsTrue(const JsonView& value) { return value.text() == "true"; }
inline bool IsFalse(const JsonView& value) { return value.text() == "false"; }
inline bool IsSchema(const JsonView& value) { return value.IsObject() || value.IsBool(); }
inline bool IsText(const JsonView& value) { return value.IsString(); }
// JSON of ours: a text, or an object of one member.
JsonView Text(std::string_view json);
JsonView Made(const std::string& name, const JsonView& value);
std::vector<JsonView> ItemsOf(const JsonView& list);

// Whether all values of a list or object are such.
template <typename Fits>
bool AllOf(const JsonView& values, Fits fits) {
  for (const auto& [key, value] : values) {
    if (!fits(value)) return false;
  }
  return true;
}

template <typename List, typename Value>
bool IsOneOf(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Throws grammar::Error: "#/properties/name: WHAT".
template <class... Parts>
[[noreturn]] void FailAt(const std::string& pointer, const Parts&... what) {
  throw Error(pointer, ": ", what...);
}
// A place below a pointer; / and ~ in its name are escaped as in JSON Pointer (RFC 6901).
std::string Below(const std::string& pointer, const std::string& name);

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

// Whether a keyword is supported and more than an annotation.
bool IsKeyword(std::string_view name);
// Throws grammar::Error if a keyword is not supported or has a wrong value.
void CheckKeywords(const std::vector<JsonView::Member>& keywords, const std::string& pointer);

// The types that a flat schema allows: those it names, else those its keywords apply to, else all.
std::vector<std::string> TypesOf(const Flat& flat);
// Those in both lists; a number is also an integer.
std::vector<std::string> CommonTypes(const std::vector<std::string>& a,
                                     const std::vector<std::string>& b);

// A schema that requires both.
JsonView Both(const JsonView& a, const JsonView& b);
// The same in few words; one of them may be absent.
JsonView And(const JsonView& a, const JsonView& b);
// The values that both lists have.
JsonView Common(const JsonView& a, const JsonView& b, const std::string& pointer);
// Adds b's rules to a's. Throws grammar::Error if they cannot be merged.
void Merge(Flat& a, const Flat& b, const std::string& pointer);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_SCHEMA_KEYWORDS_H_
