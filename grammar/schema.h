// A JSON Schema as nodes: each schema of the text once, its keywords read and checked, references
// resolved. For conjunctions.h, which combines schemas that apply to one value.
#pragma once

#include <algorithm>
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
uint64_t CountCharacters(std::string_view text);
// The number as text, the same for equal numbers.
std::string NumberText(const JsonView& number);

// A schema, or its negation: all values that are not valid under it.
struct Literal {
  uint32_t node = kNone;
  bool negated = false;
  bool is_there() const { return node != kNone; }
  Literal operator!() const { return {node, !negated}; }
  auto operator<=>(const Literal&) const = default;
};

using Names = std::vector<std::string>;

// How many characters, items or properties.
struct Count {
  uint64_t min = 0, max = UINT64_MAX;
  bool IsFree() const { return min == 0 && max == UINT64_MAX; }
  bool Has(uint64_t n) const { return min <= n && n <= max; }
  void Narrow(const Count& other) {
    min = std::max(min, other.min);
    max = std::min(max, other.max);
  }
};

// How many items of a list, from the index `from` on, are valid under a schema.
struct Contains {
  Literal item = {};
  Count count = {.min = 1};
  uint64_t from = 0;
  bool is_there() const { return item.is_there() && !count.IsFree(); }
};

// A property that an object needs, since a schema's negation asks for one that violates it.
struct SomeMember {
  std::string place;
  std::string pattern = "";  // its key contains a match; empty: any key
  Literal names = {};        // the schema of its key
  uint32_t outside = kNone;  // node that neither names its key nor has a pattern for it
  Literal value = {};
};

struct Schema {
  std::string place;
  uint8_t types = kAllTypes;
  std::string refusal;  // not empty: why valid values cannot be determined
  bool is_listed = false;
  std::vector<JsonView> values;    // is_listed: the only valid values
  std::vector<JsonView> excluded;  // values that are not valid

  Count length;
  Names patterns, not_patterns;  // formats are here, too

  NumberSet numbers;  // whole and fractions are unused

  std::vector<Literal> first;  // items
  Literal rest;
  Count items_count;
  Contains contains;
  bool unique = false;

  std::vector<std::pair<std::string, Literal>> properties, by_pattern;
  bool lists_properties = false;  // even if there are none: {"properties": {}}
  Literal additional, names;
  Names required;
  Count properties_count;
  std::vector<std::pair<std::string, Names>> needs;
  std::vector<std::pair<std::string, Literal>> needs_schema;
  std::optional<SomeMember> some;

  std::vector<Literal> all, any, one;
  Literal no, condition, then, otherwise;

  bool ListsProperties() const {
    return lists_properties || !properties.empty() || !by_pattern.empty();
  }
  bool IsObject() const {
    return ListsProperties() || additional.is_there() || names.is_there() || !required.empty() ||
           !properties_count.IsFree() || !needs.empty() || some;
  }
  bool IsArray() const {
    return !first.empty() || rest.is_there() || !items_count.IsFree() || contains.is_there() ||
           unique;
  }
  bool IsString() const { return !length.IsFree() || !patterns.empty() || !not_patterns.empty(); }
  // No keyword but `all` restricts values.
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
  // Whether a node is in the text, and not made for a negation.
  bool IsRead(uint32_t node) const { return node < n_read_; }
  Literal True() const { return {0, false}; }
  bool IsTrue(Literal l) const { return l == True() || !l.is_there(); }
  bool IsFalse(Literal l) const { return l == !True(); }

  // Whether a value is valid. Throws grammar::Error if that cannot be determined.
  bool IsValid(Literal l, const JsonView& value, size_t depth = 0);
  // The strings that contain a match of the pattern; the result is cached.
  const Dfa& Strings(const std::string& pattern, const std::string& place);
  // Whether a member with this key may be the one that `some` requires.
  bool HasKey(const SomeMember& some, const std::string& key, size_t depth = 0);
  bool IsValidKey(Literal names, const std::string& key, size_t depth = 0);
  // A schema of just this value.
  Literal Of(const JsonView& value, const std::string& place);
  Budget& budget() { return budget_; }

 private:
  class Reader;  // schema_reader.cc
  Literal ReadAll(const JsonView& root, bool nullable,
                  std::function<void(const std::string&)> note);
  bool Fits(const Schema& schema, const JsonView& value, size_t depth);

  Budget& budget_;
  std::deque<Schema> nodes_;  // references to them stay valid
  size_t n_read_ = 0;
  std::map<std::string, Dfa> patterns_;
  Literal root_;
};

}  // namespace grammar
