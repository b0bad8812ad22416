// A JSON Schema as nodes: each schema of the text once, its keywords read and checked, references
// resolved. For conjunctions.h, which finds out what schemas require together.
#ifndef PRONK_GRAMMAR_SCHEMA_H_
#define PRONK_GRAMMAR_SCHEMA_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gguf/json.h"
#include "grammar/dfa.h"
#include "grammar/numbers.h"

namespace grammar {

using gguf::JsonView;

// Throws grammar::Error: "#/properties/name: WHAT".
template <class... Parts>
[[noreturn]] void FailAt(const std::string& pointer, const Parts&... what) {
  throw Error(pointer, ": ", what...);
}
// A place below a pointer; / and ~ in its name are escaped as in JSON Pointer (RFC 6901).
std::string Below(const std::string& pointer, std::string_view name);

// Types as bits; an integer is a number without a fraction.
enum Type : uint8_t {
  kNull = 1,
  kBool = 2,
  kInteger = 4,
  kFraction = 8,
  kNumber = kInteger | kFraction,
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAllTypes = 127
};
Type TypeOf(const JsonView& value);

// A schema, or its negation: what is not valid under it.
struct Literal {
  uint32_t node = kNone;
  bool negated = false;
  bool is_there() const { return node != kNone; }
  Literal operator!() const { return {node, !negated}; }
  auto operator<=>(const Literal&) const = default;
};

using Names = std::vector<std::string>;

struct Schema {
  std::string place;
  uint8_t types = kAllTypes;
  std::string refusal;  // set: which values are valid cannot be told
  bool is_listed = false;
  std::vector<JsonView> values;    // is_listed: the only ones
  std::vector<JsonView> excluded;  // values that are not valid

  std::optional<uint64_t> min_length, max_length;
  Names patterns, not_patterns;  // of formats, too

  NumberSet numbers;  // whole and fractions are unused

  std::vector<Literal> first;  // items
  Literal rest;
  std::optional<uint64_t> min_items, max_items;
  Literal contains;
  uint64_t min_contains = 1;
  std::optional<uint64_t> max_contains;
  bool unique = false;

  std::vector<std::pair<std::string, Literal>> properties, by_pattern;
  Literal additional, names;
  Names required;
  std::optional<uint64_t> min_properties, max_properties;
  std::vector<std::pair<std::string, Names>> needs;
  std::vector<std::pair<std::string, Literal>> needs_schema;
  uint32_t outside = kNone;  // needs a property that this node neither names nor has a pattern for

  std::vector<Literal> all, any, one;
  Literal no, condition, then, otherwise;

  bool IsObject() const {
    return !properties.empty() || !by_pattern.empty() || additional.is_there() ||
           names.is_there() || !required.empty() || min_properties || max_properties ||
           !needs.empty() || outside != kNone;
  }
  bool IsArray() const {
    return !first.empty() || rest.is_there() || min_items || max_items || contains.is_there() ||
           unique;
  }
  bool IsString() const {
    return min_length || max_length || !patterns.empty() || !not_patterns.empty();
  }
  // Nothing but what `all` says.
  bool IsPlain() const {
    return types == kAllTypes && refusal.empty() && !is_listed && excluded.empty() && !IsObject() &&
           !IsArray() && !IsString() && numbers.IsFree() && needs_schema.empty() && any.empty() &&
           one.empty() && !no.is_there() && !condition.is_there();
  }
};

class Schemas {
 public:
  // Reads all schemas that the root needs. `nullable` is OpenAPI's keyword, otherwise an
  // annotation.
  Schemas(const JsonView& root, bool nullable, std::function<void(const std::string&)> note,
          Budget& budget);

  Literal root() const { return root_; }
  const Schema& operator[](Literal l) const { return nodes_[l.node]; }
  Literal Add(Schema schema);
  Literal True() const { return {0, false}; }
  bool IsTrue(Literal l) const { return l == True() || !l.is_there(); }
  bool IsFalse(Literal l) const { return l == !True(); }

  // Whether a value is valid. Throws grammar::Error where that cannot be told.
  bool IsValid(Literal l, const JsonView& value, size_t depth = 0);
  // The strings that contain a pattern, kept.
  const Dfa& Strings(const std::string& pattern, const std::string& place);
  // A schema of just this value.
  Literal Of(const JsonView& value, const std::string& place);
  Budget& budget() { return budget_; }

 private:
  class Reader;
  bool Fits(const Schema& schema, const JsonView& value, size_t depth);

  Budget& budget_;
  std::deque<Schema> nodes_;  // references to them stay valid
  std::map<std::string, Dfa> patterns_;
  Literal root_;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_SCHEMA_H_
