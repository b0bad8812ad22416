// The rules of objects.
#include <algorithm>
#include <utility>

#include "gguf/error.h"
#include "grammar/converter.h"

namespace grammar {
namespace {

constexpr size_t kMaxProperties = 5000;
constexpr size_t kFewKeys = 64;  // up to this many keys of a pattern are named
constexpr size_t kMaxWays = 64;  // ways to have the members that are needed

}  // namespace

struct Converter::Others {
  Conjunction value;
  Dfa keys;
};

struct Converter::Needs {
  struct Unnamed {
    Dfa keys;
    Conjunction value;
  };
  std::map<std::string, Conjunction> named;
  std::vector<Unnamed> unnamed;
};

Converter::MaybePart Converter::Object(const Shape& shape) {
  const Names names = all_.NamesOf(shape);
  if (shape.required.size() > shape.count.max) return std::nullopt;
  if (names.size() > kMaxProperties) FailAt(shape.place, "too many properties");
  schemas_.budget().Charge(10 * names.size());
  std::vector<MaybePart> ways;
  for (const Needs& needs : WaysToHave(shape, names)) {
    ways.push_back(ObjectWith(shape, names, needs));
    ends_.clear();
  }
  return builder_.AnyOf(ways);
}

// A needed member has one of the schema's names or another key; one member may meet several needs.
std::vector<Converter::Needs> Converter::WaysToHave(const Shape& shape, const Names& names) {
  std::vector<Needs> ways(1);
  for (const uint32_t node : shape.nodes) {
    const auto& some = schemas_[Literal{node}].some;
    if (!some) continue;
    Budget& budget = schemas_.budget();
    const Dfa keys = Combine(all_.KeysOf(*some), AllBut(Listed(names, budget)), Both::kAnd, budget);
    std::vector<Needs> next;
    for (const Needs& way : ways) {
      for (const std::string& name : names) {
        if (!schemas_.HasKey(*some, name)) continue;
        Needs with = way;
        if (Conjunctions::Add(with.named[name], some->value)) next.push_back(std::move(with));
      }
      if (keys.empty()) continue;
      for (size_t i = 0; i <= way.unnamed.size(); ++i) {
        Needs with = way;
        if (i == way.unnamed.size()) with.unnamed.push_back({Everything(), {}});
        auto& [both, value] = with.unnamed[i];
        both = Combine(both, keys, Both::kAnd, budget);
        if (!both.empty() && Conjunctions::Add(value, some->value)) next.push_back(std::move(with));
      }
    }
    if (next.size() > kMaxWays) FailAt(shape.place, "too many alternatives together");
    ways = std::move(next);
  }
  return ways;
}

Converter::MaybePart Converter::ObjectWith(const Shape& shape, const Names& names,
                                           const Needs& needs) {
  bool is_closed = false, has_rest = false;
  for (const uint32_t node : shape.nodes) {
    const Schema& s = schemas_[Literal{node}];
    is_closed |= options_.closed && s.ListsProperties();
    has_rest |= s.additional.is_there();
  }
  is_closed &= !has_rest;
  if (is_closed && !std::exchange(has_closed_, true)) options_.has_closed();
  const uint32_t id = builder_.AddMembers();
  std::map<std::string, uint32_t> index;  // the members that can be written
  const auto add = [&](const std::string& name, const Conjunction& value, bool is_required) {
    const auto rule = RuleOf(value, Below(Below(shape.place, "properties"), name));
    if (!rule) return !is_required;
    index[name] = static_cast<uint32_t>(builder_.members(id).keys.size());
    // Objects share the rules of their keys, so alternatives of one object are read together.
    const auto [key, is_new] = keys_.try_emplace(name);
    if (is_new) key->second = Outline(builder_.Literal(gguf::JsonQuoted(name)));
    AddMember(id, builder_.Call(key->second), rule, is_required);
    return true;
  };
  for (const std::string& name : names) {
    Conjunction value = all_.Property(shape, name);
    bool is_required = shape.required.contains(name);
    if (const auto needed = needs.named.find(name); needed != needs.named.end()) {
      is_required = true;
      for (const Literal& l : needed->second) {
        if (!Conjunctions::Add(value, l)) return std::nullopt;
      }
    }
    if (!add(name, value, is_required)) return std::nullopt;
  }
  // Other keys.
  Budget& budget = schemas_.budget();
  Shape but_names;
  but_names.excluded.insert(names.begin(), names.end());
  Dfa keys = all_.StringsOf(but_names);
  if (const auto allowed = all_.KeysOf(shape)) keys = Combine(keys, *allowed, Both::kAnd, budget);
  for (const auto& [some_keys, value] : needs.unnamed) {
    std::vector<MaybePart> ways;
    for (const Others& other :
         OthersOf(shape, Combine(keys, some_keys, Both::kAnd, budget), is_closed)) {
      if (all_.IsEmpty(other.value)) continue;
      Conjunction both = other.value;
      const auto add_to_both = [&](Literal l) { return Conjunctions::Add(both, l); };
      const bool fits = std::ranges::all_of(value, add_to_both);
      const auto rule = fits ? RuleOf(both, shape.place) : std::nullopt;
      if (rule) ways.push_back(builder_.Then(json_.Quoted(other.keys), Value(*rule)));
    }
    const MaybePart member = builder_.AnyOf(ways);
    if (!member) return std::nullopt;
    const RuleId rule = Outline(*member);
    AddMember(id, builder_.Call(rule), std::nullopt, true);
    builder_.members(id).keys.back().value = rule;
  }
  std::vector<MaybePart> others;
  for (const Others& other : OthersOf(shape, keys, is_closed)) {
    if (all_.IsEmpty(other.value)) continue;  // no value fits beside these keys
    const Names few = other.keys.Strings(kFewKeys);
    if (few.size() <= kFewKeys) {
      for (const std::string& name : few) add(name, other.value, false);
    } else if (const auto rule = RuleOf(other.value, Below(shape.place, "additionalProperties"))) {
      const Part key = builder_.Then(json_.Quoted(other.keys), builder_.Seen(id, kNone));
      others.push_back(builder_.Then(key, Value(*rule)));
    }
  }
  Members& members = builder_.members(id);
  members.ordered = options_.ordered;
  members.min = static_cast<uint32_t>(std::min<uint64_t>(shape.count.min, kNone - 1));
  members.max = static_cast<uint32_t>(std::min<uint64_t>(shape.count.max, kNone));
  if (!AddNeeds(shape, index, members)) return std::nullopt;
  if (others.empty() && shape.count.min > members.keys.size()) return std::nullopt;
  return MembersIn('{', id, builder_.AnyOf(others));
}

// Adds the keys that properties need. Returns false if a required property needs an impossible key.
bool Converter::AddNeeds(const Shape& shape, const std::map<std::string, uint32_t>& index,
                         Members& members) {
  for (const uint32_t node : shape.nodes) {
    for (const auto& [name, needed] : schemas_[Literal{node}].needs) {
      const auto key = index.find(name);
      if (key == index.end()) continue;
      std::vector<uint32_t> keys;
      for (const std::string& other : needed) {
        if (const auto found = index.find(other); found != index.end()) {
          keys.push_back(found->second);
        } else {
          members.keys[key->second].possible = false;
          if (members.keys[key->second].required) return false;
        }
      }
      members.needs.emplace_back(key->second, std::move(keys));
    }
  }
  return true;
}

// A part for each set of patterns that a key may fit.
std::vector<Converter::Others> Converter::OthersOf(const Shape& shape, Dfa keys, bool is_closed) {
  Budget& budget = schemas_.budget();
  std::vector<std::pair<std::vector<bool>, Dfa>> parts;
  if (!keys.empty()) parts.emplace_back(std::vector<bool>(), std::move(keys));
  for (const std::string& pattern : all_.PatternsOf(shape)) {
    std::vector<std::pair<std::vector<bool>, Dfa>> next;
    const Dfa& strings =
        schemas_.Strings(pattern, Below(Below(shape.place, "patternProperties"), pattern));
    for (const auto& [fits, dfa] : parts) {
      for (const bool fit : {true, false}) {
        Dfa part = Combine(dfa, fit ? strings : AllBut(strings), Both::kAnd, budget);
        if (part.empty()) continue;
        std::vector<bool> with = fits;
        with.push_back(fit);
        next.emplace_back(std::move(with), std::move(part));
      }
    }
    parts = std::move(next);
  }
  std::vector<Others> others;
  for (auto& [fits, dfa] : parts) {
    const Conjunction value = all_.Other(shape, fits);
    const bool fits_none = std::ranges::find(fits, true) == fits.end();
    if ((fits_none && is_closed) || (!value.empty() && value[0] == !schemas_.True())) continue;
    const auto same = std::ranges::find(others, value, &Others::value);
    if (same != others.end()) {
      same->keys = Combine(same->keys, dfa, Both::kOr, budget);
    } else {
      others.push_back({value, std::move(dfa)});
    }
  }
  return others;
}

}  // namespace grammar
