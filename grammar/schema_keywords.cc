#include "grammar/schema_keywords.h"

#include <array>
#include <cmath>
#include <utility>

namespace grammar {
namespace {

constexpr size_t kMaxCompared = size_t{1} << 20;  // pairs of values of two enums
constexpr size_t kMaxKeys = 1000;                 // required ones, merged
constexpr size_t kMaxWays = 64;                   // in the product of two lists of alternatives

// Keywords that only describe.
constexpr auto kAnnotations = std::to_array<std::string_view>(
    {"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
     "deprecated", "readOnly", "writeOnly", "$defs", "definitions", "discriminator"});

bool IsListOf(const JsonView& value, bool (*fits)(const JsonView&)) {
  return value.IsArray() && value.begin() != value.end() && AllOf(value, fits);
}

// The required kind of a keyword's value.
struct Shape {
  const char* name;
  bool (*fits)(const JsonView& value);
};
constexpr Shape kAny{"anything", [](const JsonView&) { return true; }};
constexpr Shape kString{"a string", IsText};
constexpr Shape kList{"a list", [](const JsonView& v) { return v.IsArray(); }};
constexpr Shape kSchemas{"a list of schemas",
                         [](const JsonView& v) { return IsListOf(v, IsSchema); }};
constexpr Shape kObject{"an object of schemas",
                        [](const JsonView& v) { return v.IsObject() && AllOf(v, IsSchema); }};
constexpr Shape kSchema{"a schema", IsSchema};
constexpr Shape kCount{"a whole number of at least 0", [](const JsonView& v) {
                         return v.IsNumber() && v.Number() >= 0 &&
                                std::floor(v.Number()) == v.Number();
                       }};
constexpr Shape kAboveZero{"a number above 0",
                           [](const JsonView& v) { return v.IsNumber() && v.Number() > 0; }};
constexpr Shape kNumber{"a number", [](const JsonView& v) { return v.IsNumber(); }};
constexpr Shape kBool{"true or false", [](const JsonView& v) { return v.IsBool(); }};
constexpr Shape kTypes{"a type or a list of types",
                       [](const JsonView& v) { return v.IsString() || IsListOf(v, IsText); }};
// A list in older drafts.
constexpr Shape kItems{"a schema", [](const JsonView& v) {
                         return IsSchema(v) || (v.IsArray() && AllOf(v, IsSchema));
                       }};

struct Keyword {
  std::string_view name;
  Shape shape;
  std::string_view type;  // it applies to; "" for all
};
constexpr auto kKeywords = std::to_array<Keyword>({
    {"type", kTypes, ""},
    {"enum", kList, ""},
    {"const", kAny, ""},
    {"anyOf", kSchemas, ""},
    {"oneOf", kSchemas, ""},
    {"allOf", kSchemas, ""},
    {"not", kSchema, ""},
    {"if", kSchema, ""},
    {"then", kSchema, ""},
    {"else", kSchema, ""},
    {"$ref", kString, ""},
    {"nullable", kBool, ""},
    {"properties", kObject, "object"},
    {"patternProperties", kObject, "object"},
    {"minProperties", kCount, "object"},
    {"maxProperties", kCount, "object"},
    {"required", kList, "object"},
    {"additionalProperties", kSchema, "object"},
    {"items", kItems, "array"},
    {"prefixItems", kSchemas, "array"},
    {"additionalItems", kSchema, "array"},
    {"minItems", kCount, "array"},
    {"maxItems", kCount, "array"},
    {"uniqueItems", kBool, "array"},
    {"minLength", kCount, "string"},
    {"maxLength", kCount, "string"},
    {"pattern", kString, "string"},
    {"format", kString, "string"},
    {"multipleOf", kAboveZero, "number"},
    {"minimum", kNumber, "number"},
    {"maximum", kNumber, "number"},
    {"exclusiveMinimum", kNumber, "number"},
    {"exclusiveMaximum", kNumber, "number"},
});

const Keyword* Find(std::string_view name) {
  const auto* const found = std::ranges::find(kKeywords, name, &Keyword::name);
  return found == kKeywords.end() ? nullptr : found;
}

// The rules of both objects: one schema's additionalProperties apply to properties that only the
// other names, or whose names only the other has a pattern for.
void MergeObjects(Flat& a, const Flat& b) {
  const JsonView rest_a = a["additionalProperties"], rest_b = b["additionalProperties"];
  std::vector<JsonView::Member> named = a["properties"].Members();
  const std::vector<JsonView::Member> named_b = b["properties"].Members();
  const auto find = [](const std::vector<JsonView::Member>& members, const std::string& name) {
    return std::ranges::find(members, name, &JsonView::Member::key);
  };
  const size_t n_named = named.size();
  for (const auto& [name, schema] : named_b) {
    if (find(named, name) == named.end()) named.push_back({name, And(rest_a, schema)});
  }
  for (size_t i = 0; i < n_named; ++i) {
    const auto other = find(named_b, named[i].key);
    named[i].value = And(named[i].value, other == named_b.end() ? rest_b : other->value);
  }
  if (!named.empty()) a.Set("properties", JsonView::Object(named));
  const bool is_mine = a.Has("patternProperties");
  if (is_mine != b.Has("patternProperties")) {
    std::vector<JsonView::Member> patterns = (is_mine ? a : b)["patternProperties"].Members();
    for (auto& [pattern, schema] : patterns) schema = And(schema, is_mine ? rest_b : rest_a);
    a.Set("patternProperties", JsonView::Object(patterns));
  }
  if (rest_a.is_there() || rest_b.is_there()) a.Set("additionalProperties", And(rest_a, rest_b));
}

// The same for arrays: each item obeys both schemas' rules for its position.
void MergeItems(Flat& a, const Flat& b) {
  struct Items {
    std::vector<JsonView> first;
    JsonView rest;
    const JsonView& At(size_t i) const { return i < first.size() ? first[i] : rest; }
  };
  // Older drafts have a list of items, and additionalItems for the rest.
  const auto items_of = [](const Flat& schema) -> Items {
    const bool is_old = schema["items"].IsArray();
    return {ItemsOf(schema[is_old ? "items" : "prefixItems"]),
            schema[is_old ? "additionalItems" : "items"]};
  };
  const Items mine = items_of(a), others = items_of(b);
  const bool has_rest = a.Has("items") || b.Has("items");
  a.Erase("additionalItems");
  a.Erase("items");
  std::vector<JsonView> first;
  for (size_t i = 0; i < std::max(mine.first.size(), others.first.size()); ++i) {
    first.push_back(And(mine.At(i), others.At(i)));
  }
  if (!first.empty()) a.Set("prefixItems", JsonView::Array(first));
  if (has_rest) a.Set("items", And(mine.rest, others.rest));
}

JsonView Product(const JsonView& a, const JsonView& b, const std::string& pointer) {
  if (a.size() * b.size() > kMaxWays) FailAt(pointer, "too many alternatives to be merged");
  std::vector<JsonView> ways;
  for (const auto& one : a) {
    for (const auto& other : b) ways.push_back(Both(one.value, other.value));
  }
  return JsonView::Array(ways);
}

JsonView United(const JsonView& a, const JsonView& b, const std::string& pointer) {
  std::vector<JsonView> all = ItemsOf(a);
  for (const auto& [key, value] : b) {
    if (all.size() > kMaxKeys) FailAt(pointer, "too many values to be merged");
    if (!IsOneOf(all, value)) all.push_back(value);
  }
  return JsonView::Array(all);
}

}  // namespace

std::string Below(const std::string& pointer, const std::string& name) {
  std::string path = pointer + '/';
  for (const char c : name) path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return path;
}

JsonView Text(std::string_view json) { return JsonView::Parse(std::string(json)); }

JsonView Made(const std::string& name, const JsonView& value) {
  return JsonView::Object({{name, value}});
}

std::vector<JsonView> ItemsOf(const JsonView& list) {
  std::vector<JsonView> items;
  for (const auto& item : list) items.push_back(item.value);
  return items;
}

JsonView Flat::operator[](std::string_view name) const {
  const auto found = std::ranges::find(keywords, name, &JsonView::Member::key);
  return found == keywords.end() ? JsonView() : found->value;
}

void Flat::Set(std::string_view name, const JsonView& value) {
  const auto found = std::ranges::find(keywords, name, &JsonView::Member::key);
  if (found == keywords.end()) {
    keywords.push_back({std::string(name), value});
  } else {
    found->value = value;
  }
}

void Flat::Erase(std::string_view name) {
  std::erase_if(keywords, [&](const JsonView::Member& keyword) { return keyword.key == name; });
}

JsonView Flat::Json() const { return fits ? JsonView::Object(keywords) : Text("false"); }

bool IsKeyword(std::string_view name) { return Find(name) != nullptr; }

void CheckKeywords(const std::vector<JsonView::Member>& keywords, const std::string& pointer) {
  for (const auto& [name, value] : keywords) {
    if (IsOneOf(kAnnotations, name) || name.starts_with("x-")) continue;
    const Keyword* const keyword = Find(name);
    if (keyword == nullptr) FailAt(Below(pointer, name), "this keyword is not supported");
    const bool is_old = keyword->name.starts_with("exclusive") && value.IsBool();
    if (!keyword->shape.fits(value) && !is_old) {
      FailAt(Below(pointer, name), "expected ", keyword->shape.name);
    }
  }
}

std::vector<std::string> TypesOf(const Flat& flat) {
  const JsonView given = flat["type"];
  if (given.IsString()) return {given.String()};
  std::vector<std::string> types;
  for (const auto& type : given) types.push_back(type.value.String());
  if (given.is_there()) return types;
  for (const Keyword& keyword : kKeywords) {
    if (keyword.type.empty() || !flat.Has(keyword.name)) continue;
    if (!IsOneOf(types, keyword.type)) types.emplace_back(keyword.type);
  }
  if (types.empty()) return {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

std::vector<std::string> CommonTypes(const std::vector<std::string>& a,
                                     const std::vector<std::string>& b) {
  std::vector<std::string> common;
  for (const auto& [from, with] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    for (const std::string& type : *from) {
      const bool allows = IsOneOf(*with, type) || (type == "integer" && IsOneOf(*with, "number"));
      if (allows && !IsOneOf(common, type)) common.push_back(type);
    }
  }
  return common;
}

JsonView Both(const JsonView& a, const JsonView& b) {
  return Made("allOf", JsonView::Array({a, b}));
}

JsonView And(const JsonView& a, const JsonView& b) {
  if (!a.is_there() || IsTrue(a) || IsFalse(b)) return b.is_there() ? b : Text("true");
  if (!b.is_there() || IsTrue(b) || IsFalse(a)) return a;
  return Both(a, b);
}

JsonView Common(const JsonView& a, const JsonView& b, const std::string& pointer) {
  const std::vector<JsonView> mine = ItemsOf(a), others = ItemsOf(b);
  if (mine.size() * others.size() > kMaxCompared) FailAt(pointer, "too many values to be merged");
  std::vector<JsonView> common;
  for (const JsonView& one : mine) {
    if (IsOneOf(others, one)) common.push_back(one);
  }
  return JsonView::Array(common);
}

void Merge(Flat& a, const Flat& b, const std::string& pointer) {
  a.exact = a.exact && b.exact;
  if (!a.fits || !b.fits) {
    a = {.fits = false, .exact = a.exact, .keywords = {}};
    return;
  }
  const bool merges_patterns = !a.Has("patternProperties") || !b.Has("patternProperties");
  MergeObjects(a, b);
  const bool merges_items =
      (a.Has("items") || a.Has("prefixItems")) && (b.Has("items") || b.Has("prefixItems"));
  if (merges_items) MergeItems(a, b);
  for (const auto& [name, value] : b.keywords) {
    if (name == "properties" || name == "additionalProperties") continue;
    if (name == "patternProperties" && merges_patterns) continue;
    if (merges_items && (name == "items" || name == "prefixItems" || name == "additionalItems")) {
      continue;
    }
    const JsonView mine = a[name];
    if (!mine.is_there()) {
      a.Set(name, value);
    } else if (name == "type") {
      std::vector<JsonView> common;
      for (const std::string& type : CommonTypes(TypesOf(a), TypesOf(b))) {
        common.push_back(Text(gguf::JsonQuoted(type)));
      }
      a.fits = !common.empty();
      if (!a.fits) return;
      a.Set(name, JsonView::Array(common));
    } else if (name == "enum") {
      a.Set(name, Common(mine, value, Below(pointer, name)));
    } else if (name == "required") {
      a.Set(name, United(mine, value, Below(pointer, name)));
    } else if (name == "not") {
      a.Set(name, Made("enum", United(mine["enum"], value["enum"], Below(pointer, name))));
    } else if (name == "anyOf" || name == "oneOf") {
      a.Set(name, Product(mine, value, Below(pointer, name)));
    } else if (name.starts_with("min") || name == "exclusiveMinimum") {
      if (value.Number() > mine.Number()) a.Set(name, value);
    } else if (name.starts_with("max") || name == "exclusiveMaximum") {
      if (value.Number() < mine.Number()) a.Set(name, value);
    } else if (name == "nullable") {
      if (!IsTrue(value)) a.Set(name, value);
    } else if (name == "uniqueItems") {
      if (IsTrue(value)) a.Set(name, value);
    } else if (!(mine == value)) {
      FailAt(Below(pointer, name), "two of this keyword cannot be merged");
    }
  }
}

}  // namespace grammar
