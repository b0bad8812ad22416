// Takes a conjunction of schemas apart into shapes: alternatives are tried, negations replaced.
#include "grammar/conjunctions.h"

#include <algorithm>
#include <utility>

namespace grammar {
namespace {

constexpr size_t kMaxShapes = 600;    // shapes of one conjunction
constexpr size_t kMaxChoices = 4000;  // choices taken for one conjunction
constexpr size_t kMaxDepth = 8;       // references that are followed to a list of values

}  // namespace

// A conjunction, partly taken apart.
struct Conjunctions::Partial {
  uint8_t types = kAllTypes;
  std::set<Literal> taken;
  std::vector<uint32_t> nodes;  // the schemas that are not negated
  uint64_t node_bits = 0;       // a bit for each node modulo 64
  size_t n_read = 0;            // nodes that are in the text
  // One way of each choice has to be taken. `negated`: the schema that each of the ways violates.
  struct Choice {
    Ways ways;
    uint32_t negated = kNone;
  };
  std::vector<Choice> choices;
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
  Solve(std::move(partial), found);
  std::vector<Shape> shapes;
  for (size_t n = 0; n < found.size(); ++n) {
    // A conjunction found later may cover this one.
    const auto covers = [&](const Partial& other) { return IsWithin(found[n], other); };
    schemas_.budget().Charge((found.size() - n) / 4);
    if (std::any_of(found.begin() + static_cast<ptrdiff_t>(n) + 1, found.end(), covers)) continue;
    const size_t n_before = shapes.size();
    AddShapes(found[n], shapes);
    for (size_t i = n_before; i < shapes.size() && found[n].types == kAllTypes; ++i) {
      shapes[i].untyped = n + 1;
    }
  }
  return shapes;
}

// If some node lists its values: the values that are valid under all literals.
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
      partial.choices.push_back({WaysNegated(literal.node), literal.node});
      continue;
    }
    partial.types &= schema.types;
    if (partial.types == 0) return false;
    partial.nodes.push_back(literal.node);
    partial.node_bits |= uint64_t{1} << (literal.node % 64);
    partial.n_read += schemas_.IsRead(literal.node);
    if (schema.no.is_there()) todo.push_back(!schema.no);
    todo.insert(todo.end(), schema.all.rbegin(), schema.all.rend());  // the first one next
    if (!schema.any.empty()) {
      Ways ways;
      for (const Literal& way : schema.any) ways.push_back({way});
      partial.choices.push_back({std::move(ways)});
    }
    if (!schema.one.empty()) partial.choices.push_back({OneOf(literal.node)});
    if (schema.condition.is_there() && (schema.then.is_there() || schema.otherwise.is_there())) {
      partial.choices.push_back(
          {Ways{{schema.condition, schema.then}, {!schema.condition, schema.otherwise}}});
    }
    if ((partial.types & kObject) == 0) continue;
    for (const auto& [name, other] : schema.needs_schema) {
      Schema absent, present;
      absent.place = present.place = schema.place;
      absent.properties = {{name, !schemas_.True()}};
      present.types = kObject;
      present.required = {name};
      partial.choices.push_back({Ways{{schemas_.Add(absent)}, {schemas_.Add(present), other}}});
    }
  }
  return true;
}

// The values that a schema, or the schema that it refers to, lists.
const std::vector<JsonView>* Conjunctions::ValuesOf(Literal l) const {
  for (size_t depth = 0; depth < kMaxDepth && l.is_there() && !l.negated; ++depth) {
    const Schema& schema = schemas_[l];
    if (schema.is_listed) return &schema.values;
    if (schema.all.size() != 1) break;
    l = schema.all[0];  // a reference
  }
  return nullptr;
}

// Whether the lists of values of a and b show that no value is valid under both.
bool Conjunctions::Differ(Literal a, Literal b) const {
  if (schemas_.IsFalse(a) || schemas_.IsFalse(b)) return true;
  const auto* const values = ValuesOf(a);
  const auto* const others = values == nullptr ? nullptr : ValuesOf(b);
  if (others == nullptr) return false;
  schemas_.budget().Charge(1 + values->size() * others->size() / 2);
  return std::ranges::none_of(
      *values, [&](const JsonView& v) { return std::ranges::find(*others, v) != others->end(); });
}

// Objects are often told apart by a property's value, or by the properties that they may have. True
// only if no value that is valid under all taken literals is valid under the other schema.
bool Conjunctions::Excludes(const Partial& partial, const Schema& other) {
  if ((partial.types & other.types) == 0) return true;
  if (partial.types != kObject) return false;
  const auto requires_it = [&](const std::string& name) {
    const auto has = [&](const Schema& s) {
      return std::ranges::find(s.required, name) != s.required.end();
    };
    return has(other) || std::ranges::any_of(partial.nodes, [&](uint32_t node) {
             return has(schemas_[Literal{node}]);
           });
  };
  const auto value_of = [](const Schema& s, const std::string& name) {
    const auto has = [&](const auto& property) { return property.first == name; };
    const auto found = std::ranges::find_if(s.properties, has);
    if (found != s.properties.end()) return found->second;
    return s.by_pattern.empty() ? s.additional : Literal();
  };
  for (const uint32_t node : partial.nodes) {
    const Schema& s = schemas_[Literal{node}];
    schemas_.budget().Charge(10 + s.required.size() + other.properties.size());
    for (const auto& [name, value] : other.properties) {
      if (Differ(value, value_of(s, name)) && requires_it(name)) return true;
    }
    for (const Names* const names : {&s.required, &other.required}) {
      for (const std::string& name : *names) {
        if (Differ(value_of(s, name), value_of(other, name))) return true;
      }
    }
  }
  return false;
}

// Whether every value valid under `partial` is valid under `other`, since `partial` has all nodes
// of `other`. Where objects are closed, nodes that name more properties would allow more.
bool Conjunctions::IsWithin(const Partial& partial, const Partial& other) const {
  if ((other.node_bits & ~partial.node_bits) != 0) return false;
  if (closed_ && other.n_read != partial.n_read) return false;
  return std::ranges::all_of(other.nodes, [&](uint32_t n) {
    return partial.taken.contains({n, false});
  });
}

// Drops ways that are no longer possible, and takes a choice of one way at once. `best` becomes the
// choice with the fewest ways. False: no value is valid.
bool Conjunctions::Reduce(Partial& partial, size_t& best) {
  std::vector<Partial::Choice>& choices = partial.choices;
  const auto is_known = [&](Literal l) { return !l.is_there() || l == schemas_.True(); };
  best = 0;
  for (size_t i = 0; i < choices.size();) {
    Ways ways;
    const uint32_t negated = choices[i].negated;
    bool is_met = negated != kNone && Excludes(partial, schemas_[Literal{negated}]);
    for (const std::vector<Literal>& way : choices[i].ways) {
      bool fits = true, is_taken = true;
      for (const Literal& l : way) {
        if (is_known(l)) continue;
        is_taken &= partial.taken.contains(l);
        fits &= l != !schemas_.True() && !partial.taken.contains(!l) &&
                (l.negated || (schemas_[l].types & partial.types) != 0);
      }
      is_met |= is_taken;
      if (fits) ways.push_back(way);
    }
    if (!is_met && ways.empty()) return false;
    if (is_met || ways.size() == 1) {
      choices.erase(choices.begin() + static_cast<ptrdiff_t>(i));
      if (is_met) continue;
      if (!Take(partial, ways[0])) return false;
      best = i = 0;  // it may decide other choices
      continue;
    }
    choices[i].ways = std::move(ways);
    if (choices[i].ways.size() < choices[best].ways.size()) best = i;
    ++i;
  }
  return true;
}

// Depth first: a partial conjunction, and the ways of one choice that are still to be taken.
void Conjunctions::Solve(Partial all, std::vector<Partial>& found) {
  struct Frame {
    Partial partial;
    Ways ways;
    size_t next = 0;
  };
  std::vector<Frame> frames;
  const auto enter = [&](Partial partial) {
    // The cost of a frame's memory, in units of a few bytes, and of comparisons.
    uint64_t cost = 100 + 24 * partial.taken.size() + found.size() / 4;
    for (const Partial::Choice& choice : partial.choices) {
      for (const std::vector<Literal>& way : choice.ways) cost += 70 + 9 * way.size();
    }
    schemas_.budget().Charge(cost);
    if (found.size() > kMaxShapes || frames.size() > kMaxChoices) {
      FailAt(schemas_[Literal{partial.nodes.empty() ? 0 : partial.nodes[0]}].place,
             "too many alternatives together");
    }
    const auto covers = [&](const Partial& other) { return IsWithin(partial, other); };
    size_t best = 0;
    if (std::ranges::any_of(found, covers) || !Reduce(partial, best)) return;
    if (partial.choices.empty()) {
      found.push_back(std::move(partial));
      return;
    }
    Ways ways = std::move(partial.choices[best].ways);
    partial.choices.erase(partial.choices.begin() + static_cast<ptrdiff_t>(best));
    frames.push_back({std::move(partial), std::move(ways)});
  };
  enter(std::move(all));
  while (!frames.empty()) {
    Frame& top = frames.back();
    if (top.next == top.ways.size()) {
      frames.pop_back();
      continue;
    }
    Partial with = top.partial;
    if (Take(with, top.ways[top.next++])) enter(std::move(with));
  }
}

const Conjunctions::Ways& Conjunctions::WaysNegated(uint32_t node) {
  if (const auto known = negated_.find(node); known != negated_.end()) return known->second;
  Ways ways = Negated(schemas_[Literal{node}], node);
  return negated_[node] = std::move(ways);
}

// Each alternative, with the negations of the other alternatives that could also be valid.
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
      if (!may_both || Differ(one[i], one[j]) || IsEmpty(both)) continue;
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
    schemas_.budget().Charge(600);
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
        shape.length.Narrow(s.length);
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
        shape.count.Narrow(s.items_count);
        shape.unique |= s.unique;
      } else if (type == kObject && s.IsObject()) {
        shape.nodes.push_back(node);
        shape.count.Narrow(s.properties_count);
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
    if (shape.count.min > shape.count.max || shape.length.min > shape.length.max) continue;
    shapes.push_back(std::move(shape));
  }
}

}  // namespace grammar
