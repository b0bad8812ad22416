// The requirements of a shape for its parts, and whether anything fits it.
#include <algorithm>
#include <utility>

#include "grammar/conjunctions.h"

namespace grammar {
namespace {

constexpr size_t kMaxEmptyDepth = 8;  // levels examined to show that nothing fits
constexpr uint64_t kMaxItemsTried = 1000;

}  // namespace

bool Conjunctions::IsEmpty(const Conjunction& all, size_t depth) {
  if (depth > kMaxEmptyDepth) return false;
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
    any_length.length.max = UINT64_MAX;
    const Dfa& strings = StringsOf(any_length);
    return strings.empty() || strings.Shortest() > shape.length.max;
  }
  if (shape.type == kNumber) {
    const NumberSet& n = shape.numbers;
    return (!n.IsFree() || !n.whole) && n.Spellings(schemas_.budget()).empty();
  }
  if (shape.type == kArray) {
    for (uint64_t i = 0; i < std::min(shape.count.min, kMaxItemsTried); ++i) {
      if (IsEmpty(Item(shape, i), depth + 1)) return true;
      const bool is_last = std::ranges::all_of(
          shape.nodes, [&](uint32_t node) { return schemas_[Literal{node}].first.size() <= i; });
      if (is_last) break;
    }
    return false;
  }
  if (shape.required.size() > shape.count.max) return true;
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
    if (!schemas_.IsTrue(s.names) && !schemas_.IsValidKey(s.names, name))
      Add(all, !schemas_.True());
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
  bool is_possible = true;
  for (const uint32_t node : shape.nodes) is_possible &= Add(names, schemas_[Literal{node}].names);
  if (names.empty()) return std::nullopt;
  return is_possible ? KeysUnder(names) : Dfa();
}

Dfa Conjunctions::KeysUnder(const Conjunction& names) {
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

Dfa Conjunctions::KeysOf(const SomeMember& some) {
  Budget& budget = schemas_.budget();
  Dfa keys = some.names.is_there() ? KeysUnder({some.names}) : Everything();
  if (!some.pattern.empty())
    keys = Combine(keys, schemas_.Strings(some.pattern, some.place), Both::kAnd, budget);
  if (some.outside == kNone) return keys;
  const Schema& inside = schemas_[Literal{some.outside}];
  Names names;
  for (const auto& [name, value] : inside.properties) names.push_back(name);
  keys = Combine(keys, AllBut(Listed(names, budget)), Both::kAnd, budget);
  for (const auto& [pattern, value] : inside.by_pattern)
    keys = Combine(keys, AllBut(schemas_.Strings(pattern, inside.place)), Both::kAnd, budget);
  return keys;
}

std::string Conjunctions::StringKey(const Shape& shape) {
  std::string key = std::to_string(shape.length.min) + "," + std::to_string(shape.length.max);
  for (const std::string& p : shape.patterns) key += "\n+" + p;
  for (const std::string& p : shape.not_patterns) key += "\n-" + p;
  for (const std::string& p : shape.excluded) key += "\n!" + gguf::JsonQuoted(p);
  return key;
}

const Dfa& Conjunctions::StringsOf(const Shape& shape) {
  Budget& budget = schemas_.budget();
  const std::string key = StringKey(shape);
  if (const auto known = strings_.find(key); known != strings_.end()) return known->second;
  Dfa all = AllBut(Listed({shape.excluded.begin(), shape.excluded.end()}, budget));
  for (const std::string& p : shape.patterns) {
    all = Combine(all, schemas_.Strings(p, shape.place), Both::kAnd, budget);
  }
  for (const std::string& p : shape.not_patterns) {
    all = Combine(all, AllBut(schemas_.Strings(p, shape.place)), Both::kAnd, budget);
  }
  const auto& [least, most] = shape.length;
  if (!all.empty() && (all.Shortest() < least || all.Longest() > most)) {
    constexpr uint64_t kMaxProduct = 20'000;
    const bool has_most = all.Longest() > most;
    if ((has_most ? most : least) > kMaxProduct / all.states.size()) {
      FailAt(shape.place,
             "such lengths are not supported beside a pattern, a format or excluded values");
    }
    all = Combine(all,
                  OfLength(static_cast<uint32_t>(least),
                           has_most ? static_cast<uint32_t>(most) : kNone, budget),
                  Both::kAnd, budget);
  }
  return strings_[key] = std::move(all);
}

}  // namespace grammar
