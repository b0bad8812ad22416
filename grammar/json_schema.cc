#include "grammar/json_schema.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/error.h"
#include "grammar/json_rules.h"
#include "grammar/pattern.h"
#include "grammar/schema_parts.h"

namespace grammar {
namespace {

constexpr size_t kMaxDepth = 200;  // nested schemas
constexpr size_t kMaxProperties = 2000;

// Turns schemas into parts of rules; a schema that no value matches gives an empty result.
class Converter {
 public:
  explicit Converter(const JsonView& root) : parts_(root), json_(builder_) {}

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
      return Either({Values(rest, pointer), json_.Call("null")});
    }
    for (const char* const name : {"anyOf", "oneOf"}) {
      if (flat.Has(name)) return Alternatives(flat, name, pointer);
    }
    if (flat.Has("enum")) return Listed(flat, pointer);
    std::vector<MaybePart> ways;
    for (const std::string& type : TypesOf(flat)) ways.push_back(OfType(type, flat, pointer));
    return Either(ways);
  }

  MaybePart Either(const std::vector<MaybePart>& ways) {
    std::vector<Part> there;
    for (const MaybePart& way : ways) {
      if (way) there.push_back(*way);
    }
    if (there.empty()) return std::nullopt;
    return builder_.Either(there);
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
          FailAt(place, "a value could fit " + std::to_string(j) + " and " + std::to_string(i) +
                            ", as far as pronk sees; use anyOf");
        }
      }
    }
    std::vector<MaybePart> parts;
    for (size_t i = 0; i < schemas.size(); ++i) {
      parts.push_back(Visit(schemas[i], Below(place, std::to_string(i))));
    }
    return Either(parts);
  }

  // The enum values of the right type.
  MaybePart Listed(const Flat& flat, const std::string& pointer) {
    for (const auto& [name, value] : flat.keywords) {
      if (name != "enum" && name != "type")
        FailAt(Below(pointer, name), "not supported beside enum or const");
    }
    const std::vector<std::string> types = TypesOf(flat);
    const auto allows = [&](const JsonView& value) {
      const auto has = [&](const std::string& t) {
        return std::ranges::find(types, t) != types.end();
      };
      const bool is_whole = value.text().find_first_not_of("-0123456789") == std::string::npos;
      return has(value.KindName()) || (is_whole && has("integer"));
    };
    std::vector<MaybePart> ways;
    for (const auto& [key, value] : flat["enum"]) {
      if (allows(value)) ways.emplace_back(builder_.Literal(value.Compact()));
    }
    return Either(ways);
  }

  MaybePart OfType(const std::string& type, const Flat& flat, const std::string& pointer) {
    if (type == "null" || type == "boolean") return json_.Call(type);
    if (type == "string") return String(flat, pointer);
    if (type == "integer") return json_.Integer(Bounds(flat, pointer, /*whole=*/true));
    if (type == "number") return json_.Number(Bounds(flat, pointer, /*whole=*/false));
    if (type == "array") return Array(flat, pointer);
    if (type == "object") return Object(flat, pointer);
    FailAt(Below(pointer, "type"), "\"" + type + "\" is no type of JSON");
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
    const bool has_pattern = flat.Has("pattern"), has_format = flat.Has("format");
    if (has_format) {
      const std::string format = flat["format"].String();
      const std::optional<Lengths> lengths = JsonRules::LengthsOf(format);
      if (!lengths) {
        FailAt(Below(pointer, "format"), "the format \"" + format + "\" is not supported");
      }
      if (!has_pattern && least <= lengths->least && lengths->most <= most)
        return json_.Call(format);
    }
    if (has_pattern + has_format + (least > 0 || most != kNone) > 1) {
      FailAt(pointer, "pattern, format and lengths are not supported beside each other");
    }
    if (has_pattern) {
      try {
        return PatternString(flat["pattern"].String(), builder_, json_);
      } catch (const Error& error) {
        FailAt(Below(pointer, "pattern"), error.what());
      }
    }
    if (least > most) return std::nullopt;
    return json_.String(least, most);
  }

  NumberBounds Bounds(const Flat& flat, const std::string& pointer, bool whole) {
    NumberBounds bounds;
    const auto read = [&](const char* name, bool is_min, bool is_exclusive) {
      if (!flat.Has(name)) return;
      const double value = flat[name].Number();
      if (std::abs(value) > kMaxBound) FailAt(Below(pointer, name), "too large a number");
      if (!whole && !IsFine(value)) {
        FailAt(Below(pointer, name), "too many digits for a bound of numbers that are not whole");
      }
      std::optional<double>& mine = is_min ? bounds.min : bounds.max;
      bool& leaves_out = is_min ? bounds.above_min : bounds.below_max;
      const bool is_tighter = !mine || (is_min ? value > *mine : value < *mine);
      if (!is_tighter && value != *mine) return;
      leaves_out = is_exclusive || (!is_tighter && leaves_out);
      mine = value;
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
    return builder_.Then(builder_.Then(builder_.Literal(text), json_.Call("ws")), part);
  }

  MaybePart Array(const Flat& flat, const std::string& pointer) {
    if (IsTrue(flat["uniqueItems"]))
      FailAt(Below(pointer, "uniqueItems"), "this keyword is not supported");
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
    return Items(first, rest, least, most);
  }

  // An array of `least` to `most` items: the first ones, then the rest.
  Part Items(const std::vector<RuleId>& first, std::optional<RuleId> rest, uint32_t least,
             uint32_t most) {
    const Part open = After("[", builder_.Empty());
    const Part close = builder_.Then(json_.Call("ws"), builder_.Literal("]"));
    const Part close_empty = builder_.Literal("]");
    const StateId end = builder_.Fork();
    builder_.Link(close.end, end);
    builder_.Link(close_empty.end, end);
    StateId at = open.end;
    uint32_t n = 0;
    const auto item = [&](RuleId rule) {
      if (n >= least) builder_.Link(at, n == 0 ? close_empty.start : close.start);
      const Part part = n == 0 ? builder_.Call(rule) : After(",", builder_.Call(rule));
      builder_.Link(at, part.start);
      at = part.end;
      ++n;
    };
    for (; n < first.size() && n < most;) item(first[n]);
    if (rest && n == 0 && most > 0) item(*rest);
    if (n == 0) {
      builder_.Link(at, close_empty.start);
    } else if (rest && n < most) {
      const Part more = builder_.Repeat(After(",", builder_.Call(*rest)), least > n ? least - n : 0,
                                        most == kNone ? kNone : most - n);
      builder_.Link(at, more.start);
      builder_.Link(more.end, close.start);
    } else {
      builder_.Link(at, close.start);
    }
    return {open.start, end};
  }

  struct Property {
    RuleId rule;
    bool required;
  };

  MaybePart Object(const Flat& flat, const std::string& pointer) {
    const JsonView rest = flat["additionalProperties"];
    std::vector<JsonView::Member> named = flat["properties"].Members();
    std::set<std::string> required, known;
    for (const JsonView::Member& property : named) known.insert(property.key);
    for (const auto& [key, name] : flat["required"]) {
      if (!name.IsString()) FailAt(Below(pointer, "required"), "expected a list of strings");
      // A required property without a description can have any value.
      required.insert(name.String());
      if (known.insert(name.String()).second) named.push_back({name.String(), rest});
      if (known.size() > kMaxProperties) FailAt(pointer, "too many properties");
    }
    std::vector<Property> properties;
    std::vector<std::string> names;
    for (const auto& [name, schema] : named) {
      const std::string place = Below(Below(pointer, "properties"), name);
      const bool is_required = required.contains(name);
      names.push_back(name);
      const MaybePart value = schema.is_there() ? Visit(schema, place) : json_.Call("value");
      if (!value && is_required) return std::nullopt;
      if (!value) continue;
      const Part key = builder_.Literal(gguf::JsonQuoted(name) + ":");
      properties.push_back(
          {*Rule(builder_.Then(builder_.Then(key, json_.Call("ws")), *value), place), is_required});
    }
    std::optional<RuleId> others;
    if (rest.is_there() || !flat.Has("properties")) {
      const std::string place = Below(pointer, "additionalProperties");
      if (const MaybePart value = rest.is_there() ? Visit(rest, place) : json_.Call("value")) {
        const Part key = names.empty() ? json_.Call("string") : json_.KeyBut(names);
        others = Rule(builder_.Then(builder_.Then(key, builder_.Literal(":")),
                                    builder_.Then(json_.Call("ws"), *value)),
                      place);
      }
    }
    return Members(properties, others);
  }

  // Two chains run along the properties, one before and one after the first one present: only after
  // it does a comma precede the next.
  Part Members(const std::vector<Property>& properties, std::optional<RuleId> others) {
    const Part open = After("{", builder_.Empty());
    StateId none = open.end, some = builder_.Fork();
    for (const Property& property : properties) {
      const StateId next_none = builder_.Fork(), next_some = builder_.Fork();
      const Part first = builder_.Call(property.rule);
      const Part later = After(",", builder_.Call(property.rule));
      builder_.Link(none, first.start);
      builder_.Link(some, later.start);
      builder_.Link(first.end, next_some);
      builder_.Link(later.end, next_some);
      if (!property.required) {
        builder_.Link(none, next_none);
        builder_.Link(some, next_some);
      }
      none = next_none;
      some = next_some;
    }
    if (others) {
      const Part first = builder_.Call(*others);
      const Part later = After(",", builder_.Call(*others));
      builder_.Link(none, first.start);
      builder_.Link(some, later.start);
      builder_.Link(first.end, some);
      builder_.Link(later.end, some);
    }
    const Part close = builder_.Then(json_.Call("ws"), builder_.Literal("}"));
    const Part close_empty = builder_.Literal("}");
    const StateId end = builder_.Fork();
    builder_.Link(none, close_empty.start);
    builder_.Link(some, close.start);
    builder_.Link(close.end, end);
    builder_.Link(close_empty.end, end);
    return {open.start, end};
  }

  SchemaParts parts_;
  Builder builder_;
  JsonRules json_;
  std::map<std::string, RuleId> rules_;  // of referenced schemas, by pointer
  std::vector<std::string> pending_;     // pointers not defined yet
  size_t depth_ = 0;
};

}  // namespace

Grammar ParseJsonSchema(const std::string& text) {
  const auto root = [&] {
    try {
      return JsonView::Parse(text);
    } catch (const gguf::Error& error) {
      throw Error(error.what());
    }
  }();
  if (!root.IsObject() && !root.IsBool()) throw Error("#: a schema is an object");
  return Converter(root).Convert();
}

Grammar JsonObject() { return ParseJsonSchema(R"({"type": "object"})"); }

}  // namespace grammar
