// Combines the requirements of schemas: a conjunction of schemas and negated schemas becomes
// shapes, each of one type and without alternatives. A value is valid under the conjunction if it
// fits one of them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema.h"

namespace grammar {

// Literals, sorted, each once. Empty: every value is valid.
using Conjunction = std::vector<Literal>;

struct Shape {
  uint8_t type = 0;  // a single Type, or kNumber
  // Not 0: the number of an alternative in which no keyword restricts the type.
  size_t untyped = 0;
  bool is_listed = false;
  std::vector<JsonView> values;  // is_listed: these values, of any type

  NumberSet numbers;

  Count length;
  std::set<std::string> patterns, not_patterns, excluded;

  std::vector<uint32_t> nodes;  // lists and objects: schemas with keywords for them
  Count count;                  // number of items or properties
  bool unique = false;
  std::set<std::string> required;
  std::string place;
};

class Conjunctions {
 public:
  // `closed`: objects have only the properties that are named (SchemaOptions).
  Conjunctions(Schemas& schemas, bool closed) : schemas_(schemas), closed_(closed) {}

  // Throws grammar::Error if the shapes cannot be determined or are too many.
  const std::vector<Shape>& ShapesOf(const Conjunction& all);
  // True only if no value is valid.
  bool IsEmpty(const Conjunction& all, size_t depth = 0);

  // The requirements of a list's item at `index`, without `contains`.
  Conjunction Item(const Shape& shape, size_t index) const;
  // The requirements of a property's value.
  Conjunction Property(const Shape& shape, const std::string& name);
  // The requirements of a property that no node names; `fits[i]`: it fits PatternsOf()[i].
  Conjunction Other(const Shape& shape, const std::vector<bool>& fits) const;
  std::vector<std::string> PatternsOf(const Shape& shape) const;
  // The property names that the schemas mention, in the order of the schema.
  Names NamesOf(const Shape& shape) const;
  // The keys that propertyNames allow; empty if it allows all.
  std::optional<Dfa> KeysOf(const Shape& shape);
  // The keys of which an object needs at least one.
  Dfa KeysOf(const SomeMember& some);
  const Dfa& StringsOf(const Shape& shape);
  static std::string StringKey(const Shape& shape);  // equal for equal sets of strings

  static bool Add(Conjunction& all, Literal literal);
  Schemas& schemas() { return schemas_; }

 private:
  using Ways = std::vector<std::vector<Literal>>;
  struct Partial;

  template <class Literals>
  std::optional<std::vector<Shape>> ListedShape(const Partial& partial, const Literals& all);
  bool Take(Partial& partial, std::vector<Literal> todo);
  bool IsWithin(const Partial& partial, const Partial& other) const;
  bool Reduce(Partial& partial, size_t& best);
  void Solve(Partial all, std::vector<Partial>& found);
  Ways Negated(const Schema& schema, uint32_t node);
  const Ways& WaysNegated(uint32_t node);
  const Ways& OneOf(uint32_t node);
  const std::vector<JsonView>* ValuesOf(Literal l) const;
  bool Differ(Literal a, Literal b) const;
  bool Excludes(const Partial& partial, const Schema& other);
  Dfa KeysUnder(const Conjunction& names);
  std::vector<Shape> Shapes(const Conjunction& all);
  void AddShapes(const Partial& partial, std::vector<Shape>& shapes);
  bool IsEmptyShape(const Shape& shape, size_t depth);

  Schemas& schemas_;
  bool closed_;
  std::map<Conjunction, std::vector<Shape>> shapes_;
  std::map<Conjunction, bool> empty_;
  std::map<uint32_t, Ways> negated_, one_of_;
  std::map<std::string, Dfa> strings_;
};

}  // namespace grammar
