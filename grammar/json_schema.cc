#include "grammar/json_schema.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/conjunctions.h"
#include "grammar/json_rules.h"

namespace grammar {
namespace {

constexpr size_t kMaxProperties = 5000;
constexpr size_t kMaxUnique = 1000;    // values that a list may have once each
constexpr size_t kFewKeys = 64;        // as many keys that fit a pattern are named
constexpr uint64_t kMaxPlaces = 4096;  // of items, by how many of them are contained

// Turns conjunctions of schemas into rules.
class Converter {
 public:
  Converter(Schemas& schemas, const SchemaOptions& options, Builder& builder)
      : options_(options),
        schemas_(schemas),
        all_(schemas),
        builder_(builder),
        json_(builder, options.free_space) {}

  RuleId Convert() {
    Conjunction root;
    if (!Conjunctions::Add(root, schemas_.root())) FailAt("#", "no value fits this schema");
    const RuleId rule = *RuleOf(root, "#");
    while (!pending_.empty()) {
      const auto [all, id] = pending_.back();
      pending_.pop_back();
      Define(all, id);
    }
    return rule;
  }

 private:
  using MaybePart = std::optional<Part>;

  // Empty if no value fits.
  std::optional<RuleId> RuleOf(const Conjunction& all, const std::string& place) {
    if (all.empty()) return AnyValue();
    if (all[0] == !schemas_.True()) return std::nullopt;
    const auto [known, is_new] = rules_.try_emplace(all);
    if (is_new) {
      schemas_.budget().Charge(100);
      known->second = builder_.Declare(place);
      pending_.emplace_back(all, known->second);
    }
    return known->second;
  }
  RuleId AnyValue() {
    if (any_value_ == kNone) {
      any_value_ = builder_.Declare("");
      builder_.Define(any_value_, json_.Call("value"));
    }
    return any_value_;
  }

  void Define(const Conjunction& all, RuleId rule) {
    const std::vector<Shape>& shapes = all_.ShapesOf(all);
    // Without "type" a generated value is of the types that the keywords are for.
    std::set<size_t> told;
    const auto says_something = [](const Shape& s) {
      return !s.nodes.empty() || !s.numbers.IsFree() || s.min_length > 0 ||
             s.max_length != UINT64_MAX || !s.patterns.empty() || !s.not_patterns.empty();
    };
    for (const Shape& shape : shapes) {
      if (options_.closed && shape.untyped > 0 && says_something(shape)) told.insert(shape.untyped);
    }
    std::vector<MaybePart> ways;
    for (const Shape& shape : shapes) {
      if (!told.contains(shape.untyped) || says_something(shape)) ways.push_back(OfShape(shape));
    }
    const MaybePart part = builder_.AnyOf(ways);
    builder_.Define(rule, part ? *part : builder_.Nothing());
  }

  MaybePart OfShape(const Shape& shape) {
    schemas_.budget().Charge(50);
    if (shape.is_listed) {
      std::vector<std::string> texts;
      for (const JsonView& value : shape.values) {
        texts.push_back(Spelled(value));
        if (value.IsNumber()) texts.push_back(NumberText(value));  // 2 is 2.0
      }
      return json_.OneOf(texts);
    }
    switch (shape.type) {
      case kString:
        return String(shape);
      case kNumber:
        return Number(shape);
      case kArray:
        return Array(shape);
      default:
        return Object(shape);
    }
  }

  std::string Spelled(const JsonView& value) const {
    const bool is_object = value.IsObject();
    if (options_.free_space || (!is_object && !value.IsArray())) return value.Compact();
    std::string text;
    for (const auto& [key, part] : value) {
      text += (text.empty() ? "" : ", ") + (is_object ? gguf::JsonQuoted(key) + ": " : "");
      text += Spelled(part);
    }
    return is_object ? "{" + text + "}" : "[" + text + "]";
  }

  // The rule of a set of texts, made once.
  template <class Make>
  MaybePart Shared(const std::string& key, const Make& make) {
    const auto [known, is_new] = shared_.try_emplace(key);
    if (is_new) {
      if (const MaybePart part = make()) {
        known->second = builder_.Declare("");
        builder_.Define(*known->second, *part);
      }
    }
    return known->second ? MaybePart(builder_.Call(*known->second)) : std::nullopt;
  }

  MaybePart String(const Shape& shape) {
    return Shared("s" + Conjunctions::StringKey(shape), [&]() -> MaybePart {
      const bool is_free =
          shape.patterns.empty() && shape.not_patterns.empty() && shape.excluded.empty();
      if (is_free && shape.min_length < kNone) {
        return json_.String(
            static_cast<uint32_t>(shape.min_length),
            shape.max_length < kNone ? static_cast<uint32_t>(shape.max_length) : kNone);
      }
      // A limit is counted, unless the strings are short anyway.
      Shape any_length = shape;
      any_length.max_length = UINT64_MAX;
      const Dfa& dfa = all_.StringsOf(any_length);
      if (dfa.empty() || dfa.Shortest() > shape.max_length) return std::nullopt;
      if (dfa.Longest() <= shape.max_length || shape.max_length >= kNone) return json_.Quoted(dfa);
      return json_.Quoted(dfa, static_cast<uint32_t>(shape.max_length));
    });
  }

  MaybePart Number(const Shape& shape) {
    const NumberSet& numbers = shape.numbers;
    if (numbers.IsFree() && numbers.whole)
      return json_.Call(numbers.fractions ? "number" : "integer");
    return Shared(numbers.Key(), [&]() -> MaybePart {
      try {
        const Dfa dfa = numbers.Spellings(schemas_.budget());
        if (dfa.empty()) return std::nullopt;
        return json_.Plain(dfa);
      } catch (const Error& error) {
        FailAt(shape.place, error.what());
      }
    });
  }

  Part After(std::string_view text, Part part) {
    const Part space = json_.Call(text == "," ? "gap" : "ws");
    return builder_.Then(builder_.Then(builder_.Literal(text), space), part);
  }
  Part Value(RuleId rule) {
    return builder_.Then(builder_.Then(builder_.Literal(":"), json_.Call("gap")),
                         builder_.Call(rule));
  }

  // The ends of a list or an object: its body leads from the end of `open` to one of the others.
  struct Brackets {
    Part open;
    StateId after_some, after_none, end;
  };
  Brackets BracketsOf(char bracket) {
    const Part space = json_.Call("ws"), close = builder_.Literal(bracket == '{' ? "}" : "]");
    builder_.Link(space.end, close.start);
    return {After({&bracket, 1}, builder_.Empty()), space.start, close.start, close.end};
  }

  // Members in a rule of its own, since it counts in a register. `others`: what may come after
  // what is named.
  Part MembersIn(char bracket, uint32_t id, MaybePart others) {
    const Brackets brackets = BracketsOf(bracket);
    const StateId member = builder_.Member(id), key = builder_.Key(id);
    const Part more = After(",", builder_.Empty());
    builder_.Link(brackets.open.end, member);
    builder_.Link(more.end, key);
    Members& members = builder_.members(id);
    members.first = key;
    members.more = more.start;
    members.close = brackets.after_some;
    members.none = brackets.after_none;
    if (others) {
      members.other = others->start;
      builder_.Link(others->end, member);
    }
    for (size_t i = 0; i < ends_.size(); ++i) builder_.Link(ends_[i], member);
    ends_.clear();
    const RuleId rule = builder_.Declare("");
    builder_.Define(rule, {brackets.open.start, brackets.end});
    return builder_.Call(rule);
  }
  void AddMember(uint32_t id, const std::string& key, std::optional<RuleId> value,
                 bool is_required) {
    const auto index = static_cast<uint32_t>(builder_.members(id).keys.size());
    Part part = builder_.Then(builder_.Literal(key), builder_.Seen(id, index));
    if (value) part = builder_.Then(part, Value(*value));
    ends_.push_back(part.end);
    builder_.members(id).keys.push_back({part.start, value.value_or(kNone), is_required, true});
  }

  // --- Lists ---

  MaybePart Array(const Shape& shape) {
    uint64_t n_first = 0;
    const Schema* contains = nullptr;
    for (const uint32_t node : shape.nodes) {
      const Schema& s = schemas_[Literal{node}];
      n_first = std::max<uint64_t>(n_first, s.first.size());
      if (!s.contains.is_there() || (s.min_contains == 0 && !s.max_contains)) continue;
      if (contains != nullptr)
        FailAt(Below(s.place, "contains"), "two of this keyword are not supported together");
      contains = &s;
    }
    uint64_t most = shape.max;
    std::vector<RuleId> first;
    std::optional<RuleId> rest;
    for (uint64_t i = 0; i <= n_first; ++i) {
      const auto rule = RuleOf(all_.Item(shape, i), shape.place + "/items");
      if (!rule ||
          all_.IsEmpty(all_.Item(shape, i))) {  // no value fits here: the list ends before it
        most = std::min(most, i);
        break;
      }
      if (i == n_first) {
        rest = rule;
      } else {
        first.push_back(*rule);
      }
    }
    if (shape.min > most) return std::nullopt;
    if (shape.unique && most > 1) return Unique(shape, n_first, most, contains);
    if (contains != nullptr) return Containing(shape, n_first, most, *contains);
    if (shape.min >= kNone) FailAt(shape.place, "so many items are not supported");
    return Items(first, rest, static_cast<uint32_t>(shape.min),
                 most < kNone ? static_cast<uint32_t>(most) : kNone);
  }

  Part Item(RuleId rule, bool is_first) {
    return is_first ? builder_.Call(rule) : After(",", builder_.Call(rule));
  }

  // An array of `least` to `most` items: the first ones, then the rest.
  Part Items(const std::vector<RuleId>& first, std::optional<RuleId> rest, uint32_t least,
             uint32_t most) {
    const Brackets brackets = BracketsOf('[');
    StateId at = brackets.open.end;
    uint32_t n = 0;
    const auto item = [&](RuleId rule) {
      if (n >= least) builder_.Link(at, n == 0 ? brackets.after_none : brackets.after_some);
      const Part part = Item(rule, n == 0);
      builder_.Link(at, part.start);
      at = part.end;
      ++n;
    };
    for (; n < first.size() && n < most;) item(first[n]);
    if (rest && n == 0 && most > 0) item(*rest);
    if (n == 0) {
      builder_.Link(at, brackets.after_none);
    } else if (rest && n < most) {
      const Part more = builder_.Repeat(After(",", builder_.Call(*rest)), least > n ? least - n : 0,
                                        most == kNone ? kNone : most - n);
      builder_.Link(at, more.start);
      builder_.Link(more.end, brackets.after_some);
    } else {
      builder_.Link(at, brackets.after_some);
    }
    return {brackets.open.start, brackets.end};
  }

  // A place for each number of items and of those among them that are contained, as far as they
  // matter.
  MaybePart Containing(const Shape& shape, uint64_t n_first, uint64_t most, const Schema& schema) {
    const uint64_t n_counted =
        most != UINT64_MAX ? most : std::max<uint64_t>({shape.min, n_first, 1});
    const uint64_t n_contained = schema.max_contains ? *schema.max_contains : schema.min_contains;
    if (n_counted >= kMaxPlaces || n_contained >= kMaxPlaces ||
        (n_counted + 1) * (n_contained + 1) > kMaxPlaces) {
      FailAt(Below(schema.place, "contains"), "too many items to be counted");
    }
    const Brackets brackets = BracketsOf('[');
    std::map<std::pair<uint64_t, uint64_t>, StateId> places;
    std::vector<std::pair<uint64_t, uint64_t>> todo;
    const auto place = [&](uint64_t n, uint64_t c) {
      const auto [found, is_new] =
          places.try_emplace({std::min(n, n_counted), std::min(c, n_contained)});
      if (is_new) {
        found->second = builder_.Fork();
        todo.push_back(found->first);
      }
      return found->second;
    };
    builder_.Link(brackets.open.end, place(0, 0));
    for (size_t i = 0; i < todo.size(); ++i) {
      const auto n = todo[i].first;
      const auto c = todo[i].second;
      const StateId at = places[{n, c}];
      if (n >= shape.min && c >= schema.min_contains) {
        builder_.Link(at, n == 0 ? brackets.after_none : brackets.after_some);
      }
      if (n >= most) continue;
      const auto add = [&](const Conjunction& all, uint64_t to) {
        const auto rule = RuleOf(all, shape.place + "/items");
        if (!rule) return;
        const Part part = Item(*rule, n == 0);
        builder_.Link(at, part.start);
        builder_.Link(part.end, place(n + 1, to));
      };
      const Conjunction any = all_.Item(shape, n);
      Conjunction with = any, without = any;
      if (Conjunctions::Add(with, schema.contains) && (!schema.max_contains || c < n_contained))
        add(with, c + 1);
      if (!schema.max_contains) {
        add(any, c);
      } else if (Conjunctions::Add(without, !schema.contains)) {
        add(without, c);
      }
    }
    return Part{brackets.open.start, brackets.end};
  }

  // Items of a few values, each at most once.
  MaybePart Unique(const Shape& shape, uint64_t n_first, uint64_t most, const Schema* contains) {
    std::vector<std::string> texts;
    bool is_plain = n_first == 0 && contains == nullptr;
    for (const Shape& one : is_plain ? all_.ShapesOf(all_.Item(shape, 0)) : std::vector<Shape>()) {
      is_plain &= one.is_listed && one.values.size() + texts.size() <= kMaxUnique;
      for (const JsonView& value : is_plain ? one.values : std::vector<JsonView>()) {
        is_plain &= !value.IsArray() && !value.IsObject();
        const std::string text = value.IsNumber() ? NumberText(value) : Spelled(value);
        if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
      }
    }
    if (!is_plain)
      FailAt(Below(shape.place, "uniqueItems"), "supported for items of a few values only");
    const uint32_t id = builder_.AddMembers();
    for (const std::string& text : texts) AddMember(id, text, std::nullopt, false);
    Members& members = builder_.members(id);
    members.min = static_cast<uint32_t>(std::min<uint64_t>(shape.min, kNone - 1));
    members.max = static_cast<uint32_t>(std::min<uint64_t>(most, kNone));
    if (shape.min > texts.size()) {
      ends_.clear();
      return std::nullopt;
    }
    return MembersIn('[', id, std::nullopt);
  }
  // Equal numbers have one text.
  static std::string NumberText(const JsonView& value) {
    const auto number = Decimal::Parse(value.text());
    if (!number) return std::string(value.text());
    return (number->negative ? "-" : "") + number->whole +
           (number->IsWhole() ? "" : "." + number->fraction);
  }

  // --- Objects ---

  // Keys that no schema names, and what their values have to be valid under.
  struct Others {
    Conjunction value;
    Dfa keys;
  };

  MaybePart Object(const Shape& shape) {
    const Names names = all_.NamesOf(shape);
    if (shape.required.size() > shape.max) return std::nullopt;
    if (names.size() > kMaxProperties) FailAt(shape.place, "too many properties");
    schemas_.budget().Charge(10 * names.size());
    bool is_closed = false, has_rest = false;
    for (const uint32_t node : shape.nodes) {
      const Schema& s = schemas_[Literal{node}];
      is_closed |= options_.closed && (!s.properties.empty() || !s.by_pattern.empty());
      has_rest |= s.additional.is_there();
    }
    is_closed &= !has_rest;
    const uint32_t id = builder_.AddMembers();
    std::map<std::string, uint32_t> index;  // of those that can be written
    const auto add = [&](const std::string& name, const Conjunction& value, bool is_required) {
      const auto rule = RuleOf(value, Below(Below(shape.place, "properties"), name));
      if (!rule) return !is_required;
      index[name] = static_cast<uint32_t>(builder_.members(id).keys.size());
      AddMember(id, gguf::JsonQuoted(name), rule, is_required);
      return true;
    };
    const auto fail = [&]() -> MaybePart {
      ends_.clear();
      return std::nullopt;
    };
    for (const std::string& name : names) {
      if (!add(name, all_.Property(shape, name), shape.required.contains(name))) return fail();
    }
    // Other keys.
    std::vector<MaybePart> others;
    const std::vector<std::string> patterns = all_.PatternsOf(shape);
    const std::optional<Dfa> allowed = all_.KeysOf(shape);
    const auto add_others = [&](const Conjunction& value, Part key) {
      const auto rule = RuleOf(value, Below(shape.place, "additionalProperties"));
      if (!rule) return;
      others.push_back(builder_.Then(builder_.Then(key, builder_.Seen(id, kNone)), Value(*rule)));
    };
    if (patterns.empty() && !allowed) {
      const Conjunction value = all_.Other(shape, {});
      if (!is_closed && (value.empty() || value[0] != !schemas_.True())) {
        const RuleId key = builder_.Declare("");
        builder_.Define(key, json_.KeyBut(names));
        add_others(value, builder_.Call(key));
      }
    } else {
      for (const Others& other : OthersOf(shape, names, patterns, allowed, is_closed)) {
        const std::vector<std::string> few = other.keys.Strings(kFewKeys);
        if (few.size() <= kFewKeys) {
          for (const std::string& name : few) add(name, other.value, false);
        } else {
          const RuleId key = builder_.Declare("");
          builder_.Define(key, json_.Quoted(other.keys));
          add_others(other.value, builder_.Call(key));
        }
      }
    }
    // What some need.
    Members& members = builder_.members(id);
    members.ordered = options_.ordered;
    members.min = static_cast<uint32_t>(std::min<uint64_t>(shape.min, kNone - 1));
    members.max = static_cast<uint32_t>(std::min<uint64_t>(shape.max, kNone));
    for (const uint32_t node : shape.nodes) {
      const Schema& s = schemas_[Literal{node}];
      for (const auto& [name, needed] : s.needs) {
        if (!index.contains(name)) continue;
        std::vector<uint32_t> keys;
        for (const std::string& other : needed) {
          if (index.contains(other)) {
            keys.push_back(index[other]);
          } else {
            members.keys[index[name]].possible = false;  // what it needs cannot be there
            if (members.keys[index[name]].required) return fail();
          }
        }
        members.needs.emplace_back(index[name], std::move(keys));
      }
      if (s.outside == kNone) continue;
      const Schema& inside = schemas_[Literal{s.outside}];
      if (!inside.by_pattern.empty()) {
        FailAt(Below(inside.place, "patternProperties"),
               "this keyword cannot be negated, as not, if and oneOf need it");
      }
      std::vector<uint32_t> keys;
      for (const auto& entry : index) {
        const auto has = [&](const auto& property) { return property.first == entry.first; };
        if (std::ranges::none_of(inside.properties, has)) keys.push_back(entry.second);
      }
      if (keys.empty() && others.empty()) return fail();
      members.some.push_back(std::move(keys));
    }
    if (others.empty() && shape.min > members.keys.size()) return fail();
    return MembersIn('{', id, builder_.AnyOf(others));
  }

  // A part for each set of patterns that a key may fit.
  std::vector<Others> OthersOf(const Shape& shape, const Names& names,
                               const std::vector<std::string>& patterns,
                               const std::optional<Dfa>& allowed, bool is_closed) {
    Budget& budget = schemas_.budget();
    Dfa keys = allowed ? *allowed : Everything();
    if (!names.empty()) keys = Combine(keys, Listed(names, budget), Both::kButNot, budget);
    std::vector<std::pair<std::vector<bool>, Dfa>> parts;
    parts.emplace_back(std::vector<bool>(), std::move(keys));
    for (const std::string& pattern : patterns) {
      std::vector<std::pair<std::vector<bool>, Dfa>> next;
      const Dfa& strings =
          schemas_.Strings(pattern, Below(Below(shape.place, "patternProperties"), pattern));
      for (const auto& [fits, dfa] : parts) {
        for (const bool fit : {true, false}) {
          Dfa part = Combine(dfa, strings, fit ? Both::kAnd : Both::kButNot, budget);
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
      } else if (!dfa.empty()) {
        others.push_back({value, std::move(dfa)});
      }
    }
    return others;
  }

  const SchemaOptions& options_;
  Schemas& schemas_;
  Conjunctions all_;
  Builder& builder_;
  JsonRules json_;
  std::map<Conjunction, RuleId> rules_;
  std::vector<std::pair<Conjunction, RuleId>> pending_;  // rules not defined yet
  std::map<std::string, std::optional<RuleId>> shared_;
  std::vector<StateId> ends_;  // of members of the object or list that is being made
  RuleId any_value_ = kNone;
};

}  // namespace

RuleId AddJsonSchema(const std::string& text, Builder& builder, const SchemaOptions& options) {
  const auto root = [&] {
    try {
      return JsonView::Parse(text, {.depth = 100, .keys = 20'000});
    } catch (const gguf::Error& error) {
      throw Error(error.what());
    }
  }();
  if (!root.IsObject() && !root.IsBool()) throw Error("#: a schema is an object");
  Budget budget;
  Schemas schemas(root, options.closed, options.note, budget);
  builder.MakeKeysUnique();
  return Converter(schemas, options, builder).Convert();
}

Grammar ParseJsonSchema(const std::string& text, const SchemaOptions& options) {
  Builder builder;
  const RuleId root = AddJsonSchema(text, builder, options);
  return std::move(builder).Finish(root, /*prunes=*/true);
}

Grammar JsonObject(const SchemaOptions& options) {
  return ParseJsonSchema(R"({"type": "object", "minProperties": 1})", options);
}

}  // namespace grammar
