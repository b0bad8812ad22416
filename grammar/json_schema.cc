#include "grammar/json_schema.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/json_rules.h"
#include "grammar/pattern.h"
#include "grammar/schema_parts.h"

namespace grammar {
namespace {

constexpr size_t kMaxDepth = 200;  // nested schemas
constexpr size_t kMaxProperties = 2000;
constexpr size_t kMaxUnique = 1000;  // values that a list may have once each

// Turns schemas into parts of rules; a schema that no value matches gives an empty result.
class Converter {
 public:
  Converter(const JsonView& root, const SchemaOptions& options)
      : options_(options), parts_(root), json_(builder_, options.free_space) {}

  Grammar Convert() {
    const RuleId root = builder_.Declare("#");
    rules_["#"] = root;
    pending_.push_back("#");
    while (!pending_.empty()) {
      const std::string pointer = pending_.back();
      pending_.pop_back();
      const std::optional<Part> part = Visit(parts_.Follow(pointer, pointer), pointer);
      if (!part) FailAt(pointer, "no value fits this schema");
      builder_.Define(rules_[pointer], *part);
    }
    return std::move(builder_).Finish(root);
  }

 private:
  using MaybePart = std::optional<Part>;

  MaybePart Visit(const JsonView& schema, const std::string& pointer) {
    if (++depth_ > kMaxDepth) FailAt(pointer, "the schema is nested too deep");
    MaybePart part = Values(parts_.Flatten(schema, pointer), pointer);
    --depth_;
    return part;
  }

  MaybePart Values(const Flat& flat, const std::string& pointer) {
    if (!flat.fits) return std::nullopt;
    if (flat.IsAny()) return json_.Call("value");
    if (flat.Has("$ref")) return Reference(flat["$ref"].String(), pointer);
    if (IsTrue(flat["nullable"])) {
      Flat rest = flat;
      rest.Erase("nullable");
      return builder_.AnyOf({Values(rest, pointer), json_.Call("null")});
    }
    for (const char* const name : {"anyOf", "oneOf"}) {
      if (flat.Has(name)) return Alternatives(flat, name, pointer);
    }
    if (flat.Has("enum")) return Listed(flat, pointer);
    std::vector<MaybePart> ways;
    for (const std::string& type : TypesOf(flat)) ways.push_back(OfType(type, flat, pointer));
    return builder_.AnyOf(ways);
  }

  MaybePart Reference(const std::string& reference, const std::string& pointer) {
    parts_.Follow(reference, pointer);
    const std::string target = reference == "#/" ? "#" : reference;
    const auto [rule, is_new] = rules_.try_emplace(target);
    if (is_new) {
      rule->second = builder_.Declare(target);
      pending_.push_back(target);
    }
    return builder_.Call(rule->second);
  }

  MaybePart Alternatives(const Flat& flat, const char* name, const std::string& pointer) {
    Flat rest = flat;
    rest.Erase(name);
    const std::string place = Below(pointer, name);
    std::vector<JsonView> schemas;
    for (const auto& [key, way] : flat[name]) {
      schemas.push_back(rest.IsAny() ? way : Both(rest.Json(), way));
    }
    if (std::string_view(name) == "oneOf") {
      for (size_t i = 0; i < schemas.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
          if (parts_.Apart(schemas[j], schemas[i], place)) continue;
          FailAt(place, "a value could fit ", j, " and ", i, ", as far as pronk sees; use anyOf");
        }
      }
    }
    std::vector<MaybePart> parts;
    for (size_t i = 0; i < schemas.size(); ++i) {
      parts.push_back(Visit(schemas[i], Below(place, std::to_string(i))));
    }
    return builder_.AnyOf(parts);
  }

  // Calls `take` with each of the enum values of the right type. They are not collected: a list may
  // have millions, of which `take` refuses what is too many.
  template <typename Take>
  void ForEachListed(const Flat& flat, const std::string& pointer, const Take& take) {
    for (const auto& [name, value] : flat.keywords) {
      if (name != "enum" && name != "type" && name != "not")
        FailAt(Below(pointer, name), "not supported beside enum or const");
    }
    const std::vector<std::string> types = TypesOf(flat);
    const auto allows = [&](const JsonView& value) {
      const bool is_whole = value.text().find_first_not_of("-0123456789") == std::string::npos;
      return IsOneOf(types, value.KindName()) || (is_whole && IsOneOf(types, "integer"));
    };
    std::vector<JsonView::Member> but;
    for (const auto& one : flat["not"]["enum"]) but.push_back(one);
    for (const auto& [key, value] : flat["enum"]) {
      const auto same = [&value = value](const auto& other) { return other.value == value; };
      if (allows(value) && std::ranges::none_of(but, same)) take(value);
    }
  }
  MaybePart Listed(const Flat& flat, const std::string& pointer) {
    std::vector<MaybePart> ways;
    ForEachListed(flat, pointer, [&](const JsonView& value) {
      ways.emplace_back(builder_.Literal(Spelled(value)));
    });
    return builder_.AnyOf(ways);
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

  // The values of a kind that "not" excludes.
  static std::vector<JsonView> Excluded(const Flat& flat, JsonView::Kind kind) {
    std::vector<JsonView> values;
    for (const auto& [key, value] : flat["not"]["enum"]) {
      if (value.kind() == kind) values.push_back(value);
    }
    return values;
  }

  MaybePart OfType(const std::string& type, const Flat& flat, const std::string& pointer) {
    if (type == "null" || type == "boolean") {
      const bool is_null = type == "null";
      return Listed({.keywords = {{"enum", JsonView::Parse(is_null ? "[null]" : "[true, false]")},
                                  {"not", flat["not"]}}},
                    pointer);
    }
    if (type == "string") return String(flat, pointer);
    if (type == "integer" || type == "number") return Numbers(flat, pointer, type == "integer");
    const bool is_array = type == "array";
    if (is_array || type == "object") {
      if (!Excluded(flat, is_array ? JsonView::Kind::kArray : JsonView::Kind::kObject).empty()) {
        FailAt(Below(pointer, "not"), "lists and objects cannot be left out");
      }
      return is_array ? Array(flat, pointer) : Object(flat, pointer);
    }
    FailAt(Below(pointer, "type"), "\"", type, "\" is no type of JSON");
  }

  uint32_t Count(const Flat& flat, const char* name, uint32_t otherwise,
                 const std::string& pointer) {
    if (!flat.Has(name)) return otherwise;
    const double count = flat[name].Number();
    if (count >= kMaxStates) FailAt(Below(pointer, name), "too large a number");
    return static_cast<uint32_t>(count);
  }

  MaybePart String(const Flat& flat, const std::string& pointer) {
    const uint32_t least = Count(flat, "minLength", 0, pointer);
    const uint32_t most = Count(flat, "maxLength", kNone, pointer);
    const bool has_pattern = flat.Has("pattern");
    const std::string format = flat.Has("format") ? flat["format"].String() : "";
    const std::optional<Lengths> lengths = JsonRules::LengthsOf(format);
    const bool is_free = lengths && least <= lengths->least && lengths->most <= most;
    if (flat.Has("format") && !lengths) {
      options_.note(Below(pointer, "format") + ": " + gguf::Quoted(format) +
                    " is unknown, and any string may be written");
    }
    std::vector<std::string> but;
    for (const JsonView& text : Excluded(flat, JsonView::Kind::kString)) {
      but.push_back(text.String());
    }
    const bool has_lengths = !is_free && (least > 0 || most != kNone);
    if (has_pattern + lengths.has_value() + has_lengths + !but.empty() > 1) {
      FailAt(pointer, "pattern, format, lengths and not are not supported beside each other");
    }
    if (lengths) return json_.Call(format);
    if (!but.empty()) return json_.KeyBut(but);
    if (has_pattern) return Pattern(flat["pattern"].String(), Below(pointer, "pattern"));
    if (least > most) return std::nullopt;
    return json_.String(least, most);
  }

  template <typename Make>
  auto At(const std::string& place, Make make) {
    try {
      return make();
    } catch (const Error& error) {
      FailAt(place, error.what());
    }
  }
  Part Pattern(const std::string& pattern, const std::string& place) {
    return At(place, [&] { return PatternString(pattern, builder_, json_); });
  }

  // The numbers between the bounds, but those that are excluded.
  MaybePart Numbers(const Flat& flat, const std::string& pointer, bool whole) {
    const NumberBounds all = Bounds(flat, pointer, whole);
    std::vector<double> but;
    for (const JsonView& number : Excluded(flat, JsonView::Kind::kNumber)) {
      but.push_back(number.Number());
      if (!IsFine(but.back())) FailAt(Below(pointer, "not"), "a number of too many digits");
    }
    std::ranges::sort(but);
    std::vector<MaybePart> ways;
    for (size_t i = 0; i <= but.size(); ++i) {
      NumberBounds part = all;
      if (i > 0) Tighten(part, /*is_min=*/true, but[i - 1], /*leaves_out=*/true);
      if (i < but.size()) Tighten(part, /*is_min=*/false, but[i], /*leaves_out=*/true);
      const std::string place = part.step ? Below(pointer, "multipleOf") : pointer;
      ways.push_back(At(place, [&] { return whole ? json_.Integer(part) : json_.Number(part); }));
    }
    return builder_.AnyOf(ways);
  }

  static void Tighten(NumberBounds& bounds, bool is_min, double value, bool leaves_out) {
    std::optional<double>& mine = is_min ? bounds.min : bounds.max;
    bool& mine_leaves_out = is_min ? bounds.above_min : bounds.below_max;
    const bool is_tighter = !mine || (is_min ? value > *mine : value < *mine);
    if (!is_tighter && value != *mine) return;
    mine_leaves_out = leaves_out || (!is_tighter && mine_leaves_out);
    mine = value;
  }

  NumberBounds Bounds(const Flat& flat, const std::string& pointer, bool whole) {
    NumberBounds bounds;
    if (const JsonView step = flat["multipleOf"]; step.is_there()) {
      bounds.step = StepOf(step.Number());
      if (!bounds.step) FailAt(Below(pointer, "multipleOf"), "too many digits");
    }
    const auto read = [&](const char* name, bool is_min, bool is_exclusive) {
      if (!flat.Has(name)) return;
      const double value = flat[name].Number();
      if (std::abs(value) > kMaxBound) FailAt(Below(pointer, name), "too large a number");
      if (!whole && !IsFine(value)) {
        FailAt(Below(pointer, name), "too many digits for a bound of numbers that are not whole");
      }
      Tighten(bounds, is_min, value, is_exclusive);
    };
    read("minimum", true, false);
    read("exclusiveMinimum", true, true);
    read("maximum", false, false);
    read("exclusiveMaximum", false, true);
    return bounds;
  }

  // A separate rule, since it is called from several places.
  std::optional<RuleId> Rule(const MaybePart& part, const std::string& pointer) {
    if (!part) return std::nullopt;
    const RuleId rule = builder_.Declare(pointer);
    builder_.Define(rule, *part);
    return rule;
  }
  Part After(std::string_view text, Part part) {
    const Part space = json_.Call(text == "," ? "gap" : "ws");
    return builder_.Then(builder_.Then(builder_.Literal(text), space), part);
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
  Part Item(RuleId rule, bool is_first) {
    return is_first ? builder_.Call(rule) : After(",", builder_.Call(rule));
  }

  MaybePart Array(const Flat& flat, const std::string& pointer) {
    const uint32_t least = Count(flat, "minItems", 0, pointer);
    uint32_t most = Count(flat, "maxItems", kNone, pointer);
    // Older drafts have a list of items, and additionalItems for the rest.
    const bool is_old = flat["items"].IsArray();
    const char* const first_name = is_old ? "items" : "prefixItems";
    const char* const rest_name = is_old ? "additionalItems" : "items";
    std::vector<RuleId> first;
    for (const auto& [key, schema] : flat[first_name]) {
      const std::string place = Below(Below(pointer, first_name), std::to_string(first.size()));
      const auto rule = Rule(Visit(schema, place), place);
      if (!rule) {  // no value fits here: the array ends before it
        most = std::min(most, static_cast<uint32_t>(first.size()));
        break;
      }
      first.push_back(*rule);
    }
    std::optional<RuleId> rest;
    const bool has_rest = flat.Has(rest_name);
    if (has_rest || first.empty() || least > first.size()) {
      const std::string place = Below(pointer, rest_name);
      rest = Rule(has_rest ? Visit(flat[rest_name], place) : json_.Call("value"), place);
    }
    if (!rest) most = std::min(most, static_cast<uint32_t>(first.size()));
    if (least > most) return std::nullopt;
    if (IsTrue(flat["uniqueItems"]) && most > 1) {
      std::vector<JsonView> values;
      if (!first.empty() || !has_rest || !AddValues(flat[rest_name], pointer, 0, values)) {
        FailAt(Below(pointer, "uniqueItems"), "supported for items of a few values only");
      }
      return Unique(values, least, most);
    }
    return Items(first, rest, least, most);
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

  struct Property {
    RuleId rule;
    bool required;
  };

  // Adds a schema's values, each once. Succeeds for up to kMaxUnique, none of them list or object.
  bool AddValues(const JsonView& schema, const std::string& pointer, size_t depth,
                 std::vector<JsonView>& values) {
    const Flat flat = parts_.Resolve(schema, pointer);
    if (!flat.fits) return true;
    bool is_plain = depth < kMaxDepth;
    const auto add = [&](const JsonView& value) {
      is_plain = is_plain && values.size() <= kMaxUnique && !value.IsArray() && !value.IsObject();
      if (is_plain && !IsOneOf(values, value)) values.push_back(value);
    };
    if (flat.Has("anyOf") && flat.keywords.size() == 1) {
      for (const auto& [key, way] : flat["anyOf"]) {
        is_plain = is_plain && AddValues(way, pointer, depth + 1, values);
      }
    } else if (flat.Has("enum")) {
      ForEachListed(flat, pointer, add);
    } else {
      for (const std::string& type : TypesOf(flat)) {
        if (type != "boolean" && type != "null") return false;
        for (const char* const value : {"true", "false", "null"}) {
          if ((type == "null") == (value[0] == 'n')) add(JsonView::Parse(value));
        }
      }
    }
    return is_plain && values.size() <= kMaxUnique;
  }

  // Each value at most once: in any order if they are few, otherwise in the schema's.
  MaybePart Unique(const std::vector<JsonView>& values, uint32_t least, uint32_t most) {
    constexpr size_t kFew = 8;
    if (least > std::min<size_t>(values.size(), most)) return std::nullopt;
    std::vector<Property> items;
    items.reserve(values.size());
    for (const JsonView& value : values) {
      items.push_back({*Rule(builder_.Literal(Spelled(value)), "uniqueItems"), false});
    }
    if (items.size() > kFew) return Members('[', items, {}, least, most);
    const Brackets brackets = BracketsOf('[');
    std::vector<StateId> after;  // by a bit for each value that is there
    for (size_t there = 0; there < size_t{1} << items.size(); ++there) {
      after.push_back(builder_.Fork());
    }
    for (size_t there = 0; there < after.size(); ++there) {
      const auto n = static_cast<uint32_t>(std::popcount(there));
      if (n >= least) {
        builder_.Link(after[there], n == 0 ? brackets.after_none : brackets.after_some);
      }
      for (size_t i = 0; i < items.size() && n < most; ++i) {
        if ((there >> i & 1) != 0) continue;
        const Part next = Item(items[i].rule, there == 0);
        builder_.Link(after[there], next.start);
        builder_.Link(next.end, after[there | size_t{1} << i]);
      }
    }
    builder_.Link(brackets.open.end, after[0]);
    return Part{brackets.open.start, brackets.end};
  }

  struct KeyPattern {
    std::string pattern, place;
    JsonView schema;
    Grammar keys;
  };

  std::vector<KeyPattern> PatternsOf(const Flat& flat, const std::string& pointer) {
    std::vector<KeyPattern> patterns;
    for (const auto& [pattern, schema] : flat["patternProperties"]) {
      const std::string place = Below(Below(pointer, "patternProperties"), pattern);
      Pattern(pattern, place);  // throws with its place
      patterns.push_back({pattern, place, schema, PatternStrings(pattern)});
    }
    return patterns;
  }

  // Members whose keys fit a pattern; their values are valid by all patterns that the keys may fit.
  MaybePart ByPatterns(const std::vector<KeyPattern>& patterns, const JsonView& named) {
    std::vector<MaybePart> ways;
    for (const KeyPattern& one : patterns) {
      // A key that is described would be written twice.
      bool is_named = false;
      for (const auto& [name, value] : named) is_named |= FitsKey(one.keys, name);
      JsonView all = one.schema;
      for (const KeyPattern& other : patterns) {
        if (!(other.schema == one.schema) && MayOverlap(one.keys, other.keys)) {
          all = Both(all, other.schema);
        }
      }
      const MaybePart value = is_named ? std::nullopt : Visit(all, one.place);
      if (value) ways.emplace_back(Member(Pattern(one.pattern, one.place), *value));
    }
    return builder_.AnyOf(ways);
  }

  Part Member(Part key, Part value) {
    return builder_.Then(builder_.Then(key, builder_.Literal(":")),
                         builder_.Then(json_.Call("gap"), value));
  }

  MaybePart Object(const Flat& flat, const std::string& pointer) {
    const JsonView rest = flat["additionalProperties"];
    const std::vector<KeyPattern> patterns = PatternsOf(flat, pointer);
    std::vector<JsonView::Member> named = flat["properties"].Members();
    std::set<std::string> required, known;
    for (const JsonView::Member& property : named) known.insert(property.key);
    for (const auto& [key, name] : flat["required"]) {
      if (!name.IsString()) FailAt(Below(pointer, "required"), "expected a list of strings");
      // A required property without a description can have any value.
      required.insert(name.String());
      if (known.insert(name.String()).second) named.push_back({name.String(), {}});
      if (known.size() > kMaxProperties) FailAt(pointer, "too many properties");
    }
    std::vector<Property> properties;
    std::vector<std::string> names;
    for (auto& [name, schema] : named) {
      const bool is_described = schema.is_there();
      for (const KeyPattern& pattern : patterns) {
        if (!FitsKey(pattern.keys, name)) continue;
        schema = schema.is_there() ? Both(schema, pattern.schema) : pattern.schema;
      }
      if (!is_described && !schema.is_there()) schema = rest;
      const std::string place = Below(Below(pointer, "properties"), name);
      const bool is_required = required.contains(name);
      names.push_back(name);
      const MaybePart value = schema.is_there() ? Visit(schema, place) : json_.Call("value");
      if (!value && is_required) return std::nullopt;
      if (!value) continue;
      const Part key = builder_.Literal(gguf::JsonQuoted(name));
      properties.push_back({*Rule(Member(key, *value), place), is_required});
    }
    std::optional<RuleId> others = Rule(ByPatterns(patterns, flat["properties"]), pointer);
    if (patterns.empty() && (rest.is_there() || !flat.Has("properties"))) {
      const std::string place = Below(pointer, "additionalProperties");
      if (const MaybePart value = rest.is_there() ? Visit(rest, place) : json_.Call("value")) {
        const Part key = names.empty() ? json_.Call("string") : json_.KeyBut(names);
        others = Rule(Member(key, *value), place);
      }
    }
    const uint32_t least = Count(flat, "minProperties", 0, pointer);
    if (others && least > properties.size() + 1) {
      FailAt(Below(pointer, "minProperties"), "only one property may be needed that is not named");
    }
    return Members('{', properties, others, least, Count(flat, "maxProperties", kNone, pointer));
  }

  // Chains run along the members, one for each number of those that are there: only after the
  // first does a comma precede the next. The last chain counts no further unless it has to. Others
  // come last and could be one key again and again, so they count as one of the least.
  MaybePart Members(char bracket, const std::vector<Property>& members,
                    std::optional<RuleId> others, uint32_t least, uint32_t most) {
    const auto n_counted = static_cast<uint32_t>(
        std::min<size_t>(members.size(), most != kNone ? most : std::max(least, 1u)));
    const auto is_needed = [](const Property& member) { return member.required; };
    if (std::cmp_greater(std::ranges::count_if(members, is_needed), most) ||
        least > std::min<size_t>(members.size() + (others ? 1 : 0), most)) {
      return std::nullopt;
    }
    const Brackets brackets = BracketsOf(bracket);
    std::vector<StateId> at = {brackets.open.end};
    for (const Property& member : members) {
      std::vector<StateId> after;
      for (uint32_t n = 0; n <= n_counted; ++n) after.push_back(builder_.Fork());
      for (uint32_t n = 0; n < at.size(); ++n) {
        if (!member.required) builder_.Link(at[n], after[n]);
        if (n == most) continue;
        const Part part = Item(member.rule, n == 0);
        builder_.Link(at[n], part.start);
        builder_.Link(part.end, after[std::min(n + 1, n_counted)]);
      }
      at = after;
    }
    for (uint32_t n = 0; n < at.size(); ++n) {
      if (n >= least) builder_.Link(at[n], n == 0 ? brackets.after_none : brackets.after_some);
      if (!others || n + 1 < least || n >= most) continue;
      const Part more = builder_.Then(
          Item(*others, n == 0),
          builder_.Repeat(Item(*others, false), 0, most == kNone ? kNone : most - n - 1));
      builder_.Link(at[n], more.start);
      builder_.Link(more.end, brackets.after_some);
    }
    return Part{brackets.open.start, brackets.end};
  }

  const SchemaOptions& options_;
  SchemaParts parts_;
  Builder builder_;
  JsonRules json_;
  std::map<std::string, RuleId> rules_;  // of referenced schemas, by pointer
  std::vector<std::string> pending_;     // pointers not defined yet
  size_t depth_ = 0;
};

}  // namespace

Grammar ParseJsonSchema(const std::string& text, const SchemaOptions& options) {
  const auto root = [&] {
    try {
      return JsonView::Parse(text);
    } catch (const gguf::Error& error) {
      throw Error(error.what());
    }
  }();
  if (!root.IsObject() && !root.IsBool()) throw Error("#: a schema is an object");
  return Converter(root, options).Convert();
}

Grammar JsonObject(const SchemaOptions& options) {
  return ParseJsonSchema(R"({"type": "object", "minProperties": 1})", options);
}

}  // namespace grammar
