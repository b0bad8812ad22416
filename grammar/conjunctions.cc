#include "grammar/conjunctions.h"

#include <algorithm>
#include <utility>

namespace grammar {
namespace {

constexpr size_t kMaxShapes = 600;    // of one conjunction
constexpr size_t kMaxChoices = 4000;  // taken for one
constexpr size_t kMaxDepth = 8;       // of what is looked at to tell that nothing fits
constexpr uint64_t kMaxPlaces = 1000;

}  // namespace

// A conjunction, partly taken apart.
struct Conjunctions::Partial {
  uint8_t types = kAllTypes;
  std::set<Literal> taken;
  std::vector<uint32_t> nodes;  // the schemas among them, not negated
  std::vector<Ways> choices;    // of each of them one way has to be taken
};

bool Conjunctions::Add(Conjunction& all, Literal literal) {
  if (!literal.is_there() || literal == Literal{0, false}) return true;
  const auto at = std::ranges::lower_bound(all, literal);
  if (at == all.end() || *at != literal) all.insert(at, literal);
  return literal.node != 0;
}

const std::vector<Shape>& Conjunctions::ShapesOf(const Conjunction& all) {
  if (const auto known = shapes_.find(all); known != shapes_.end()) return known->second;
  std::vector<Shape> shapes = Shapes(all);
  return shapes_[all] = std::move(shapes);
}

std::vector<Shape> Conjunctions::Shapes(const Conjunction& all) {
  Partial partial;
  if (!Take(partial, all)) return {};
  // A list of values: each is valid or not.
  if (auto listed = ListedShape(partial, all)) return std::move(*listed);
  std::vector<Partial> found;
  Solve(std::move(partial), 0, found);
  std::vector<Shape> shapes;
  std::set<std::pair<uint8_t, std::vector<uint32_t>>> seen;
  for (Partial& one : found) {
    std::vector<uint32_t> nodes = one.nodes;
    const size_t n_before = shapes.size();
    std::sort(nodes.begin(), nodes.end());
    if (seen.emplace(one.types, std::move(nodes)).second) AddShapes(one, shapes);
    for (size_t i = n_before; i < shapes.size() && one.types == kAllTypes; ++i) {
      shapes[i].untyped = seen.size();
    }
  }
  return shapes;
}

// If some node lists its values: those that are valid under all literals.
template <class Literals>
std::optional<std::vector<Shape>> Conjunctions::ListedShape(const Partial& partial,
                                                            const Literals& all) {
  const Schema* shortest = nullptr;
  for (const uint32_t node : partial.nodes) {
    const Schema& schema = schemas_[Literal{node}];
    if (schema.is_listed &&
        (shortest == nullptr || schema.values.size() < shortest->values.size())) {
      shortest = &schema;
    }
  }
  if (shortest == nullptr) return std::nullopt;
  Shape shape;
  shape.is_listed = true;
  shape.place = shortest->place;
  for (const JsonView& value : shortest->values) {
    const auto fits = [&](Literal l) { return schemas_.IsValid(l, value); };
    if (std::ranges::all_of(all, fits)) shape.values.push_back(value);
  }
  if (shape.values.empty()) return std::vector<Shape>();
  return std::vector<Shape>{std::move(shape)};
}

bool Conjunctions::Take(Partial& partial, std::vector<Literal> todo) {
  while (!todo.empty()) {
    const Literal literal = todo.back();
    todo.pop_back();
    if (!literal.is_there() || literal == schemas_.True()) continue;
    if (literal == !schemas_.True() || partial.taken.contains(!literal)) return false;
    if (!partial.taken.insert(literal).second) continue;
    schemas_.budget().Charge(20);
    const Schema& schema = schemas_[literal];
    if (literal.negated) {
      partial.choices.push_back(WaysNegated(literal.node));
      continue;
    }
    partial.types &= schema.types;
    if (partial.types == 0) return false;
    partial.nodes.push_back(literal.node);
    if (schema.no.is_there()) todo.push_back(!schema.no);
    todo.insert(todo.end(), schema.all.rbegin(), schema.all.rend());  // the first one next
    if (!schema.any.empty()) {
      Ways ways;
      for (const Literal& way : schema.any) ways.push_back({way});
      partial.choices.push_back(std::move(ways));
    }
    if (!schema.one.empty()) partial.choices.push_back(OneOf(literal.node));
    if (schema.condition.is_there() && (schema.then.is_there() || schema.otherwise.is_there())) {
      partial.choices.push_back(
          {{schema.condition, schema.then}, {!schema.condition, schema.otherwise}});
    }
    if ((partial.types & kObject) == 0) continue;
    for (const auto& [name, other] : schema.needs_schema) {
      Schema absent, present;
      absent.place = present.place = schema.place;
      absent.properties = {{name, !schemas_.True()}};
      present.types = kObject;
      present.required = {name};
      partial.choices.push_back({{schemas_.Add(absent)}, {schemas_.Add(present), other}});
    }
  }
  return true;
}

void Conjunctions::Solve(Partial partial, size_t depth, std::vector<Partial>& found) {
  schemas_.budget().Charge(100 + 10 * partial.choices.size());
  if (found.size() > kMaxShapes || depth > kMaxChoices) {
    FailAt(schemas_[Literal{partial.nodes.empty() ? 0 : partial.nodes[0]}].place,
           "too many alternatives together");
  }
  for (;;) {
    // Ways that are possible so far; a choice of one way is taken at once.
    size_t best = partial.choices.size();
    bool has_changed = false;
    for (size_t i = 0; i < partial.choices.size();) {
      Ways ways;
      bool is_met = false;
      for (const std::vector<Literal>& way : partial.choices[i]) {
        bool fits = true, is_taken = true;
        for (const Literal& l : way) {
          if (!l.is_there() || l == schemas_.True()) continue;
          is_taken &= partial.taken.contains(l);
          fits &= l != !schemas_.True() && !partial.taken.contains(!l) &&
                  (l.negated || (schemas_[l].types & partial.types) != 0);
        }
        is_met |= is_taken;
        if (fits) ways.push_back(way);
      }
      if (!is_met && ways.empty()) return;
      if (is_met || ways.size() == 1) {
        partial.choices.erase(partial.choices.begin() + static_cast<ptrdiff_t>(i));
        if (is_met) continue;
        if (!Take(partial, ways[0])) return;
        has_changed = true;
        break;
      }
      partial.choices[i] = std::move(ways);
      if (best >= partial.choices.size() ||
          partial.choices[i].size() < partial.choices[best].size())
        best = i;
      ++i;
    }
    if (has_changed) continue;
    if (partial.choices.empty()) {
      found.push_back(std::move(partial));
      return;
    }
    const Ways ways = std::move(partial.choices[best]);
    partial.choices.erase(partial.choices.begin() + static_cast<ptrdiff_t>(best));
    for (const std::vector<Literal>& way : ways) {
      Partial with = partial;
      if (Take(with, way)) Solve(std::move(with), depth + 1, found);
    }
    return;
  }
}

const Conjunctions::Ways& Conjunctions::WaysNegated(uint32_t node) {
  if (const auto known = negated_.find(node); known != negated_.end()) return known->second;
  Ways ways = Negated(schemas_[Literal{node}], node);
  return negated_[node] = std::move(ways);
}

// Each keyword is a way not to be valid.
Conjunctions::Ways Conjunctions::Negated(const Schema& s, uint32_t node) {
  Ways ways;
  const auto of_type = [&](uint8_t types) {
    Schema schema;
    schema.place = s.place;
    schema.types = types;
    return schema;
  };
  const auto add = [&](Schema schema) { ways.push_back({schemas_.Add(std::move(schema))}); };
  const auto refuse = [&](uint8_t types, const char* keyword) {
    Schema schema = of_type(types);
    schema.refusal =
        Below(s.place, keyword) + ": this keyword cannot be negated, as not, if and oneOf need it";
    add(std::move(schema));
  };
  if (!s.refusal.empty()) {
    Schema schema = of_type(kAllTypes);
    schema.refusal = s.refusal;
    add(std::move(schema));
  }
  if (s.types != kAllTypes) add(of_type(static_cast<uint8_t>(kAllTypes & ~s.types)));
  if (s.is_listed) {
    Schema schema = of_type(kAllTypes);
    schema.excluded = s.values;
    for (const JsonView& value : s.values) {
      if (value.IsObject() || value.IsArray()) schema.all.push_back(!schemas_.Of(value, s.place));
    }
    add(std::move(schema));
  }
  for (const JsonView& value : s.excluded) ways.push_back({schemas_.Of(value, s.place)});
  // Strings.
  if (s.min_length.value_or(0) > 0) {
    Schema schema = of_type(kString);
    schema.max_length = *s.min_length - 1;
    add(std::move(schema));
  }
  if (s.max_length) {
    Schema schema = of_type(kString);
    schema.min_length = *s.max_length + 1;
    add(std::move(schema));
  }
  for (const std::string& pattern : s.patterns) {
    Schema schema = of_type(kString);
    schema.not_patterns = {pattern};
    add(std::move(schema));
  }
  for (const std::string& pattern : s.not_patterns) {
    Schema schema = of_type(kString);
    schema.patterns = {pattern};
    add(std::move(schema));
  }
  // Numbers.
  if (s.numbers.min) {
    Schema schema = of_type(kNumber);
    schema.numbers.max = Bound{s.numbers.min->at, !s.numbers.min->is_exclusive};
    add(std::move(schema));
  }
  if (s.numbers.max) {
    Schema schema = of_type(kNumber);
    schema.numbers.min = Bound{s.numbers.max->at, !s.numbers.max->is_exclusive};
    add(std::move(schema));
  }
  for (const Decimal& step : s.numbers.multiples) {
    Schema schema = of_type(kNumber);
    schema.numbers.not_multiples = {step};
    add(std::move(schema));
  }
  for (const Decimal& step : s.numbers.not_multiples) {
    Schema schema = of_type(kNumber);
    schema.numbers.multiples = {step};
    add(std::move(schema));
  }
  // Lists.
  if (s.min_items.value_or(0) > 0) {
    Schema schema = of_type(kArray);
    schema.max_items = *s.min_items - 1;
    add(std::move(schema));
  }
  if (s.max_items) {
    Schema schema = of_type(kArray);
    schema.min_items = *s.max_items + 1;
    add(std::move(schema));
  }
  for (size_t i = 0; i < s.first.size(); ++i) {
    Schema schema = of_type(kArray);
    schema.first.assign(i, schemas_.True());
    schema.first.push_back(!s.first[i]);
    schema.min_items = i + 1;
    add(std::move(schema));
  }
  if (!schemas_.IsTrue(s.rest)) {
    if (schemas_.IsFalse(s.rest)) {
      Schema schema = of_type(kArray);
      schema.min_items = s.first.size() + 1;
      add(std::move(schema));
    } else if (s.first.empty()) {
      Schema schema = of_type(kArray);
      schema.contains = !s.rest;
      add(std::move(schema));
    } else {
      refuse(kArray, "items");
    }
  }
  if (s.contains.is_there()) {
    if (s.min_contains == 1) {
      Schema schema = of_type(kArray);
      schema.rest = !s.contains;
      add(std::move(schema));
    } else if (s.min_contains > 1) {
      Schema schema = of_type(kArray);
      schema.contains = s.contains;
      schema.min_contains = 0;
      schema.max_contains = s.min_contains - 1;
      add(std::move(schema));
    }
    if (s.max_contains) {
      Schema schema = of_type(kArray);
      schema.contains = s.contains;
      schema.min_contains = *s.max_contains + 1;
      add(std::move(schema));
    }
  }
  if (s.unique) refuse(kArray, "uniqueItems");
  // Objects.
  const auto without = [&](const std::string& name) {
    Schema schema = of_type(kObject);
    schema.properties = {{name, !schemas_.True()}};
    return schema;
  };
  const auto with = [&](const std::string& name, Literal value) {
    Schema schema = of_type(kObject);
    schema.properties = {{name, value}};
    schema.required = {name};
    return schema;
  };
  for (const std::string& name : s.required) add(without(name));
  for (const auto& [name, value] : s.properties) {
    if (!schemas_.IsTrue(value)) add(with(name, !value));
  }
  for (const auto& [pattern, value] : s.by_pattern) {
    if (!schemas_.IsTrue(value)) refuse(kObject, "patternProperties");
  }
  if (!schemas_.IsTrue(s.additional)) {
    if (schemas_.IsFalse(s.additional)) {
      Schema schema = of_type(kObject);
      schema.outside = node;
      add(std::move(schema));
    } else {
      refuse(kObject, "additionalProperties");
    }
  }
  if (!schemas_.IsTrue(s.names)) refuse(kObject, "propertyNames");
  if (s.outside != kNone) refuse(kObject, "additionalProperties");
  if (s.min_properties.value_or(0) > 0) {
    Schema schema = of_type(kObject);
    schema.max_properties = *s.min_properties - 1;
    add(std::move(schema));
  }
  if (s.max_properties) {
    Schema schema = of_type(kObject);
    schema.min_properties = *s.max_properties + 1;
    add(std::move(schema));
  }
  for (const auto& [name, others] : s.needs) {
    for (const std::string& other : others) {
      if (other == name) continue;
      Schema schema = without(other);
      schema.required = {name};
      add(std::move(schema));
    }
  }
  for (const auto& [name, other] : s.needs_schema) {
    ways.push_back({schemas_.Add(with(name, schemas_.True())), !other});
  }
  // Alternatives.
  for (const Literal& l : s.all) ways.push_back({!l});
  if (!s.any.empty()) {
    std::vector<Literal> none;
    for (const Literal& l : s.any) none.push_back(!l);
    ways.push_back(std::move(none));
  }
  if (!s.one.empty()) {
    std::vector<Literal> none;
    for (const Literal& l : s.one) none.push_back(!l);
    ways.push_back(std::move(none));
    for (size_t i = 0; i < s.one.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        schemas_.budget().Charge(20);
        ways.push_back({s.one[i], s.one[j]});
      }
    }
  }
  if (s.no.is_there()) ways.push_back({s.no});
  if (s.condition.is_there()) {
    if (s.then.is_there()) ways.push_back({s.condition, !s.then});
    if (s.otherwise.is_there()) ways.push_back({!s.condition, !s.otherwise});
  }
  return ways;
}

// Each way, and none of the others that could be valid as well.
const Conjunctions::Ways& Conjunctions::OneOf(uint32_t node) {
  if (const auto known = one_of_.find(node); known != one_of_.end()) return known->second;
  const Schema& schema = schemas_[Literal{node}];
  const std::vector<Literal>& one = schema.one;
  Ways ways(one.size());
  for (size_t i = 0; i < one.size(); ++i) ways[i].push_back(one[i]);
  for (size_t i = 0; i < one.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      Conjunction both;
      const bool may_both = Add(both, one[i]) && Add(both, one[j]);
      schemas_.budget().Charge(20);
      if (!may_both || IsEmpty(both)) continue;
      ways[i].push_back(!one[j]);
      ways[j].push_back(!one[i]);
    }
  }
  return one_of_[node] = std::move(ways);
}

void Conjunctions::AddShapes(const Partial& partial, std::vector<Shape>& shapes) {
  if (auto listed = ListedShape(partial, partial.taken)) {
    shapes.insert(shapes.end(), listed->begin(), listed->end());
    return;
  }
  std::string place;
  for (const uint32_t node : partial.nodes) {
    const Schema& s = schemas_[Literal{node}];
    if (!s.refusal.empty()) throw Error(s.refusal);
    if (place.empty()) place = s.place;
  }
  for (const Type type : {kObject, kArray, kString, kNumber, kBool, kNull}) {
    if ((partial.types & type) == 0) continue;
    Shape shape;
    shape.type = type;
    shape.place = place;
    shape.numbers.whole = (partial.types & kInteger) != 0;
    shape.numbers.fractions = (partial.types & kFraction) != 0;
    if (type == kBool || type == kNull) {
      shape.is_listed = true;
      for (const char* const text : {"true", "false", "null"}) {
        if ((type == kNull) == (text[0] == 'n')) shape.values.push_back(JsonView::Parse(text));
      }
    }
    for (const uint32_t node : partial.nodes) {
      const Schema& s = schemas_[Literal{node}];
      if (shape.is_listed) {
        std::erase_if(shape.values, [&](const JsonView& v) {
          return std::ranges::find(s.excluded, v) != s.excluded.end();
        });
      } else if (type == kString) {
        shape.min_length = std::max(shape.min_length, s.min_length.value_or(0));
        shape.max_length = std::min(shape.max_length, s.max_length.value_or(UINT64_MAX));
        shape.patterns.insert(s.patterns.begin(), s.patterns.end());
        shape.not_patterns.insert(s.not_patterns.begin(), s.not_patterns.end());
        for (const JsonView& v : s.excluded) {
          if (v.IsString()) shape.excluded.insert(v.String());
        }
      } else if (type == kNumber) {
        if (s.numbers.min) shape.numbers.AtLeast(*s.numbers.min);
        if (s.numbers.max) shape.numbers.AtMost(*s.numbers.max);
        const auto append = [](std::vector<Decimal>& to, const std::vector<Decimal>& from) {
          for (const Decimal& d : from) {
            if (std::ranges::find(to, d) == to.end()) to.push_back(d);
          }
        };
        append(shape.numbers.multiples, s.numbers.multiples);
        append(shape.numbers.not_multiples, s.numbers.not_multiples);
        for (const JsonView& v : s.excluded) {
          if (!v.IsNumber()) continue;
          if (const auto number = Decimal::Parse(v.text()))
            append(shape.numbers.excluded, {*number});
        }
      } else if (type == kArray && s.IsArray()) {
        shape.nodes.push_back(node);
        shape.min = std::max(shape.min, s.min_items.value_or(0));
        shape.max = std::min(shape.max, s.max_items.value_or(UINT64_MAX));
        shape.unique |= s.unique;
      } else if (type == kObject && s.IsObject()) {
        shape.nodes.push_back(node);
        shape.min = std::max(shape.min, s.min_properties.value_or(0));
        shape.max = std::min(shape.max, s.max_properties.value_or(UINT64_MAX));
        shape.required.insert(s.required.begin(), s.required.end());
      }
    }
    if (type == kNumber) {
      const NumberSet& n = shape.numbers;
      if (n.min && n.max &&
          (n.min->at > n.max->at ||
           (n.min->at == n.max->at && (n.min->is_exclusive || n.max->is_exclusive))))
        continue;
    }
    if (shape.is_listed && shape.values.empty()) continue;
    if (shape.min > shape.max || shape.min_length > shape.max_length) continue;
    shapes.push_back(std::move(shape));
  }
}

bool Conjunctions::IsEmpty(const Conjunction& all, size_t depth) {
  if (depth > kMaxDepth) return false;
  const auto [known, is_new] = empty_.try_emplace(all, false);
  if (!is_new) return known->second;
  bool is_empty = true;
  for (const Shape& shape : ShapesOf(all)) {
    is_empty = IsEmptyShape(shape, depth);
    if (!is_empty) break;
  }
  return empty_[all] = is_empty;
}

bool Conjunctions::IsEmptyShape(const Shape& shape, size_t depth) {
  if (shape.is_listed) return shape.values.empty();
  if (shape.type == kString) {
    Shape any_length = shape;
    any_length.max_length = UINT64_MAX;
    const Dfa& strings = StringsOf(any_length);
    return strings.empty() || strings.Shortest() > shape.max_length;
  }
  if (shape.type == kNumber) {
    const NumberSet& n = shape.numbers;
    return (!n.IsFree() || !n.whole) && n.Spellings(schemas_.budget()).empty();
  }
  if (shape.type == kArray) {
    for (uint64_t i = 0; i < std::min(shape.min, kMaxPlaces); ++i) {
      if (IsEmpty(Item(shape, i), depth + 1)) return true;
      const bool is_last = std::ranges::all_of(
          shape.nodes, [&](uint32_t node) { return schemas_[Literal{node}].first.size() <= i; });
      if (is_last) break;
    }
    return false;
  }
  if (shape.required.size() > shape.max) return true;
  for (const std::string& name : shape.required) {
    if (IsEmpty(Property(shape, name), depth + 1)) return true;
  }
  return false;
}

Conjunction Conjunctions::Item(const Shape& shape, size_t index) const {
  Conjunction all;
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    Add(all, index < s.first.size() ? s.first[index] : s.rest);
  }
  return all;
}

Conjunction Conjunctions::Property(const Shape& shape, const std::string& name) {
  Conjunction all;
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    bool is_known = false;
    schemas_.budget().Charge(1 + s.properties.size() / 16);
    for (const auto& [key, value] : s.properties) {
      if (key != name) continue;
      Add(all, value);
      is_known = true;
    }
    for (const auto& [pattern, value] : s.by_pattern) {
      if (!schemas_.Strings(pattern, s.place).Has(name)) continue;
      Add(all, value);
      is_known = true;
    }
    if (!is_known) Add(all, s.additional);
    if (!schemas_.IsTrue(s.names) &&
        !schemas_.IsValid(s.names, JsonView::Parse(gguf::JsonQuoted(name)))) {
      Add(all, !schemas_.True());
    }
  }
  return all;
}

std::vector<std::string> Conjunctions::PatternsOf(const Shape& shape) const {
  std::vector<std::string> patterns;
  for (const uint32_t node : shape.nodes) {
    for (const auto& [pattern, value] : schemas_[Literal{node}].by_pattern) {
      if (std::ranges::find(patterns, pattern) == patterns.end()) patterns.push_back(pattern);
    }
  }
  return patterns;
}

Conjunction Conjunctions::Other(const Shape& shape, const std::vector<bool>& fits) const {
  const std::vector<std::string> patterns = PatternsOf(shape);
  Conjunction all;
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    bool is_known = false;
    for (const auto& [pattern, value] : s.by_pattern) {
      const auto at = static_cast<size_t>(std::ranges::find(patterns, pattern) - patterns.begin());
      if (!fits[at]) continue;
      Add(all, value);
      is_known = true;
    }
    if (!is_known) Add(all, s.additional);
  }
  return all;
}

Names Conjunctions::NamesOf(const Shape& shape) const {
  Names names;
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    for (const auto& [name, value] : s.properties) add(name);
    if (s.outside == kNone) continue;
    for (const auto& [name, value] : schemas_[Literal{s.outside}].properties) add(name);
  }
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    for (const std::string& name : s.required) add(name);
    for (const auto& [name, others] : s.needs) {
      add(name);
      for (const std::string& other : others) add(other);
    }
  }
  return names;
}

std::optional<Dfa> Conjunctions::KeysOf(const Shape& shape) {
  Conjunction names;
  for (const uint32_t node : shape.nodes) Add(names, schemas_[Literal{node}].names);
  if (names.empty()) return std::nullopt;
  Dfa keys;
  for (const Shape& one : ShapesOf(names)) {
    Dfa some;
    if (one.is_listed) {
      std::vector<std::string> texts;
      for (const JsonView& value : one.values) {
        if (value.IsString()) texts.push_back(value.String());
      }
      some = Listed(texts, schemas_.budget());
    } else if (one.type == kString) {
      some = StringsOf(one);
    }
    keys = Combine(keys, some, Both::kOr, schemas_.budget());
  }
  return keys;
}

std::string Conjunctions::StringKey(const Shape& shape) {
  std::string key = std::to_string(shape.min_length) + "," + std::to_string(shape.max_length);
  for (const std::string& p : shape.patterns) key += "\n+" + p;
  for (const std::string& p : shape.not_patterns) key += "\n-" + p;
  for (const std::string& p : shape.excluded) key += "\n!" + gguf::JsonQuoted(p);
  return key;
}

const Dfa& Conjunctions::StringsOf(const Shape& shape) {
  Budget& budget = schemas_.budget();
  const std::string key = StringKey(shape);
  if (const auto known = strings_.find(key); known != strings_.end()) return known->second;
  Dfa all = Everything();
  for (const std::string& p : shape.patterns) {
    all = Combine(all, schemas_.Strings(p, shape.place), Both::kAnd, budget);
  }
  for (const std::string& p : shape.not_patterns) {
    all = Combine(all, schemas_.Strings(p, shape.place), Both::kButNot, budget);
  }
  if (!shape.excluded.empty()) {
    all = Combine(all, Listed({shape.excluded.begin(), shape.excluded.end()}, budget),
                  Both::kButNot, budget);
  }
  if (!all.empty() && (all.Shortest() < shape.min_length || all.Longest() > shape.max_length)) {
    constexpr uint64_t kMaxProduct = 20'000;
    const bool has_most = all.Longest() > shape.max_length;
    const uint64_t most = has_most ? shape.max_length : shape.min_length;
    if (most > kMaxProduct / all.states.size()) {
      FailAt(
          shape.place,
          "such lengths are not supported beside a pattern, a format or values that are left out");
    }
    all = Combine(all,
                  OfLength(static_cast<uint32_t>(shape.min_length),
                           has_most ? static_cast<uint32_t>(most) : kNone, budget),
                  Both::kAnd, budget);
  }
  return strings_[key] = std::move(all);
}

}  // namespace grammar
