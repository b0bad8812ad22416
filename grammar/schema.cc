// The nodes of a schema, and whether a value is valid under one.
#include "grammar/schema.h"

#include <algorithm>

#include "gguf/utf8.h"
#include "grammar/addresses.h"
#include "grammar/pattern.h"

namespace grammar {
std::string Below(const std::string& pointer, std::string_view name) {
  std::string path = pointer + '/';
  for (const char c : name) path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return path;
}

Type TypeOf(const JsonView& value) {
  switch (value.kind()) {
    case JsonView::Kind::kNull:
      return kNull;
    case JsonView::Kind::kBool:
      return kBool;
    case JsonView::Kind::kNumber: {
      const auto number = Decimal::Parse(value.text());
      return !number || number->IsWhole() ? kInteger : kFraction;
    }
    case JsonView::Kind::kString:
      return kString;
    case JsonView::Kind::kArray:
      return kArray;
    default:
      return kObject;
  }
}

uint64_t CountCharacters(std::string_view text) {
  uint64_t n = 0;
  for ([[maybe_unused]] const auto& c : gguf::Characters(text)) ++n;
  return n;
}

std::string NumberText(const JsonView& number) {
  const auto decimal = Decimal::Parse(number.text());
  if (!decimal) return std::string(number.text());
  return (decimal->negative ? "-" : "") + decimal->whole +
         (decimal->IsWhole() ? "" : "." + decimal->fraction);
}

Schemas::Schemas(const JsonView& root, bool nullable, std::function<void(const std::string&)> note,
                 Budget& budget)
    : budget_(budget), nodes_(1) {
  root_ = ReadAll(root, nullable, std::move(note));
  n_read_ = nodes_.size();
}

Literal Schemas::Add(Schema schema) {
  budget_.Charge(400);
  nodes_.push_back(std::move(schema));
  return {static_cast<uint32_t>(nodes_.size() - 1), false};
}

const Dfa& Schemas::Strings(const std::string& pattern, const std::string& place) {
  const auto known = patterns_.find(pattern);
  if (known != patterns_.end()) return known->second;
  try {
    return patterns_[pattern] = PatternStrings(pattern, budget_);
  } catch (const Error& error) {
    patterns_.erase(pattern);
    FailAt(place, error.what());
  }
}

Literal Schemas::Of(const JsonView& value, const std::string& place) {
  Schema schema;
  schema.place = place;
  schema.types = TypeOf(value);
  if (value.IsObject()) {
    for (const auto& [key, part] : value.Members()) {
      schema.properties.emplace_back(key, Of(part, place));
      schema.required.push_back(key);
    }
    schema.additional = !True();
  } else if (value.IsArray()) {
    for (const auto& [key, part] : value) schema.first.push_back(Of(part, place));
    schema.items_count = {schema.first.size(), schema.first.size()};
  } else {
    schema.types = kAllTypes;
    schema.is_listed = true;
    schema.values = {value};
  }
  return Add(std::move(schema));
}

bool Schemas::IsValid(Literal l, const JsonView& value, size_t depth) {
  if (!l.is_there() || l == True()) return true;
  if (l == !True()) return false;
  if (depth > kMaxSchemaDepth) FailAt(nodes_[l.node].place, "the schema is nested too deep");
  budget_.Charge(10);
  return Fits(nodes_[l.node], value, depth) != l.negated;
}

bool Schemas::IsValidKey(Literal names, const std::string& key, size_t depth) {
  return IsValid(names, JsonView::Parse(gguf::JsonQuoted(key)), depth + 1);
}

bool Schemas::HasKey(const SomeMember& some, const std::string& key, size_t depth) {
  if (some.names.is_there() && !IsValidKey(some.names, key, depth)) return false;
  if (!some.pattern.empty() && !Strings(some.pattern, some.place).Has(key)) return false;
  if (some.outside == kNone) return true;
  const Schema& inside = nodes_[some.outside];
  const auto fits = [&](const auto& entry) { return Strings(entry.first, inside.place).Has(key); };
  const auto is_name = [&](const auto& property) { return property.first == key; };
  return std::ranges::none_of(inside.properties, is_name) &&
         std::ranges::none_of(inside.by_pattern, fits);
}

bool Schemas::Fits(const Schema& s, const JsonView& value, size_t depth) {
  const auto fits = [&](Literal l) { return IsValid(l, value, depth + 1); };
  const auto fits_part = [&](Literal l, const JsonView& part) {
    return IsValid(l, part, depth + 1);
  };
  if (!s.refusal.empty()) throw Error(s.refusal);
  const Type type = TypeOf(value);
  if ((s.types & type) == 0) return false;
  const auto is_same = [&](const JsonView& other) { return other == value; };
  if (s.is_listed) budget_.Charge(s.values.size());
  if (s.is_listed && std::ranges::none_of(s.values, is_same)) return false;
  if (std::ranges::any_of(s.excluded, is_same)) return false;
  if (type == kString && s.IsString()) {
    const std::string text = value.String();
    if (!s.length.Has(CountCharacters(text))) return false;
    for (const std::string& p : s.patterns) {
      if (!Strings(p, s.place).Has(text)) return false;
    }
    for (const std::string& p : s.not_patterns) {
      if (Strings(p, s.place).Has(text)) return false;
    }
  }
  if ((type & kNumber) != 0 && !s.numbers.IsFree()) {
    const auto number = Decimal::Parse(value.text());
    if (!number || !s.numbers.Has(*number)) return false;
  }
  if (type == kArray && s.IsArray()) {
    std::vector<JsonView> items;
    for (const auto& [key, item] : value) items.push_back(item);
    if (!s.items_count.Has(items.size())) return false;
    uint64_t n_contained = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!fits_part(i < s.first.size() ? s.first[i] : s.rest, items[i])) return false;
      if (s.contains.is_there() && i >= s.contains.from)
        n_contained += fits_part(s.contains.item, items[i]);
      for (size_t j = 0; s.unique && j < i; ++j) {
        if (items[i] == items[j]) return false;
      }
    }
    if (s.contains.is_there() && !s.contains.count.Has(n_contained)) return false;
  }
  if (type == kObject && (s.IsObject() || !s.needs_schema.empty())) {
    const std::vector<JsonView::Member> members = value.Members();
    const auto has = [&](const std::string& name) {
      return std::ranges::find(members, name, &JsonView::Member::key) != members.end();
    };
    if (!s.properties_count.Has(members.size())) return false;
    if (!std::ranges::all_of(s.required, has)) return false;
    for (const auto& [name, others] : s.needs) {
      if (has(name) && !std::ranges::all_of(others, has)) return false;
    }
    for (const auto& [name, other] : s.needs_schema) {
      if (has(name) && !fits(other)) return false;
    }
    const auto is_some = [&](const JsonView::Member& m) {
      return HasKey(*s.some, m.key, depth) && fits_part(s.some->value, m.value);
    };
    if (s.some && std::ranges::none_of(members, is_some)) return false;
    for (const auto& [key, part] : members) {
      bool is_known = false;
      for (const auto& [name, l] : s.properties) {
        if (name != key) continue;
        is_known = true;
        if (!fits_part(l, part)) return false;
      }
      for (const auto& [pattern, l] : s.by_pattern) {
        if (!Strings(pattern, s.place).Has(key)) continue;
        is_known = true;
        if (!fits_part(l, part)) return false;
      }
      if (!is_known && s.additional.is_there() && !fits_part(s.additional, part)) return false;
      if (s.names.is_there() && !IsValidKey(s.names, key, depth)) return false;
    }
  }
  if (!std::ranges::all_of(s.all, fits)) return false;
  if (!s.any.empty() && std::ranges::none_of(s.any, fits)) return false;
  if (!s.one.empty() && std::ranges::count_if(s.one, fits) != 1) return false;
  if (s.no.is_there() && fits(s.no)) return false;
  return !s.condition.is_there() || fits(fits(s.condition) ? s.then : s.otherwise);
}

}  // namespace grammar
