// The negation of a schema: the ways in which a value may violate it.
#include <utility>

#include "grammar/conjunctions.h"

namespace grammar {

// Each keyword gives a way to be invalid.
Conjunctions::Ways Conjunctions::Negated(const Schema& s, uint32_t node) {
  Ways ways;
  // A way by keywords for one type, which `fill` sets.
  const auto add = [&](uint8_t types, const auto& fill) {
    Schema schema;
    schema.place = s.place;
    schema.types = types;
    fill(schema);
    ways.push_back({schemas_.Add(std::move(schema))});
  };
  const auto add_count = [&](uint8_t types, const Count& count, const auto& of) {
    if (count.min > 0) add(types, [&](Schema& to) { of(to) = {0, count.min - 1}; });
    if (count.max != UINT64_MAX)
      add(types, [&](Schema& to) { of(to) = {count.max + 1, UINT64_MAX}; });
  };
  const auto refuse = [&](uint8_t types, const char* keyword) {
    add(types, [&](Schema& to) {
      to.refusal = Below(s.place, keyword) +
                   ": this keyword cannot be negated, as not, if and oneOf need it";
    });
  };
  if (!s.refusal.empty()) add(kAllTypes, [&](Schema& to) { to.refusal = s.refusal; });
  if (s.types != kAllTypes) add(static_cast<uint8_t>(kAllTypes & ~s.types), [](Schema&) {});
  if (s.is_listed) {
    add(kAllTypes, [&](Schema& to) {
      to.excluded = s.values;
      for (const JsonView& value : s.values) {
        if (value.IsObject() || value.IsArray()) to.all.push_back(!schemas_.Of(value, s.place));
      }
    });
  }
  for (const JsonView& value : s.excluded) ways.push_back({schemas_.Of(value, s.place)});
  // Strings.
  add_count(kString, s.length, [](Schema& to) -> Count& { return to.length; });
  for (const std::string& p : s.patterns) add(kString, [&](Schema& to) { to.not_patterns = {p}; });
  for (const std::string& p : s.not_patterns) add(kString, [&](Schema& to) { to.patterns = {p}; });
  // Numbers.
  const auto beyond = [](const Bound& bound) { return Bound{bound.at, !bound.is_exclusive}; };
  const NumberSet& n = s.numbers;
  if (n.min) add(kNumber, [&](Schema& to) { to.numbers.max = beyond(*n.min); });
  if (n.max) add(kNumber, [&](Schema& to) { to.numbers.min = beyond(*n.max); });
  for (const Decimal& step : n.multiples)
    add(kNumber, [&](Schema& to) { to.numbers.not_multiples = {step}; });
  for (const Decimal& step : n.not_multiples)
    add(kNumber, [&](Schema& to) { to.numbers.multiples = {step}; });
  // Lists.
  add_count(kArray, s.items_count, [](Schema& to) -> Count& { return to.items_count; });
  for (size_t i = 0; i < s.first.size(); ++i) {
    add(kArray, [&](Schema& to) {
      to.first.assign(i, schemas_.True());
      to.first.push_back(!s.first[i]);
      to.items_count.min = i + 1;
    });
  }
  if (schemas_.IsFalse(s.rest)) {
    add(kArray, [&](Schema& to) { to.items_count.min = s.first.size() + 1; });
  } else if (!schemas_.IsTrue(s.rest)) {
    add(kArray, [&](Schema& to) { to.contains = {.item = !s.rest, .from = s.first.size()}; });
  }
  if (const Contains& c = s.contains; c.is_there()) {
    if (c.count.min == 1) {
      add(kArray, [&](Schema& to) {
        to.first.assign(c.from, schemas_.True());
        to.rest = !c.item;
      });
    } else if (c.count.min > 1) {
      add(kArray, [&](Schema& to) { to.contains = {c.item, {0, c.count.min - 1}, c.from}; });
    }
    if (c.count.max != UINT64_MAX) {
      add(kArray, [&](Schema& to) {
        to.contains = {c.item, {c.count.max + 1, UINT64_MAX}, c.from};
      });
    }
  }
  if (s.unique) refuse(kArray, "uniqueItems");
  // Objects.
  const auto without = [&](Schema& to, const std::string& name) {
    to.properties = {{name, !schemas_.True()}};
  };
  const auto add_with = [&](const std::string& name, Literal value) {
    add(kObject, [&](Schema& to) {
      to.properties = {{name, value}};
      to.required = {name};
    });
  };
  const auto add_some = [&](SomeMember some) {
    add(kObject, [&](Schema& to) { to.some = std::move(some); });
  };
  for (const std::string& name : s.required) add(kObject, [&](Schema& to) { without(to, name); });
  for (const auto& [name, value] : s.properties) {
    if (!schemas_.IsTrue(value)) add_with(name, !value);
  }
  for (const auto& [pattern, value] : s.by_pattern) {
    if (!schemas_.IsTrue(value)) add_some({.place = s.place, .pattern = pattern, .value = !value});
  }
  if (!schemas_.IsTrue(s.additional))
    add_some({.place = s.place, .outside = node, .value = !s.additional});
  if (!schemas_.IsTrue(s.names)) add_some({.place = s.place, .names = !s.names});
  if (s.some) refuse(kObject, "not");
  add_count(kObject, s.properties_count, [](Schema& to) -> Count& { return to.properties_count; });
  for (const auto& needs : s.needs) {
    for (const std::string& other : needs.second) {
      if (other == needs.first) continue;
      add(kObject, [&](Schema& to) {
        without(to, other);
        to.required = {needs.first};
      });
    }
  }
  for (const auto& [name, other] : s.needs_schema) {
    add_with(name, schemas_.True());
    ways.back().push_back(!other);
  }
  // Alternatives.
  const auto add_none = [&](const std::vector<Literal>& all) {
    ways.emplace_back();
    for (const Literal& l : all) ways.back().push_back(!l);
  };
  for (const Literal& l : s.all) ways.push_back({!l});
  if (!s.any.empty()) add_none(s.any);
  if (!s.one.empty()) add_none(s.one);
  for (size_t i = 0; i < s.one.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      schemas_.budget().Charge(20);
      ways.push_back({s.one[i], s.one[j]});
    }
  }
  if (s.no.is_there()) ways.push_back({s.no});
  if (s.condition.is_there()) {
    if (s.then.is_there()) ways.push_back({s.condition, !s.then});
    if (s.otherwise.is_there()) ways.push_back({!s.condition, !s.otherwise});
  }
  return ways;
}

}  // namespace grammar
