#include "grammar/schema_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "grammar/error.h"

namespace grammar {
namespace {

// Limit of nested merges: a schema that has to be merged with itself never ends.
constexpr size_t kMaxMerges = 64;
// Of schemas, each time that they are looked at, and eight times for what merging makes: that is
// kept for a while.
constexpr size_t kMaxSchemaBytes = size_t{64} << 20, kCopied = 8;
constexpr size_t kMaxCompared = size_t{1} << 20;  // pairs of values of two enums
constexpr size_t kMaxKeys = 1000;                 // required ones, merged
constexpr size_t kMaxWays = 64;                   // in the product of two lists of alternatives

// Keywords that only describe.
constexpr auto kAnnotations = std::to_array<std::string_view>(
    {"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
     "deprecated", "readOnly", "writeOnly", "$defs", "definitions", "discriminator"});

bool IsSchema(const JsonView& value) { return value.IsObject() || value.IsBool(); }

template <typename Fits>
bool AllOf(const JsonView& values, Fits fits) {
  for (const auto& [key, value] : values) {
    if (!fits(value)) return false;
  }
  return true;
}

bool IsListOf(const JsonView& value, bool (*fits)(const JsonView&)) {
  return value.IsArray() && value.begin() != value.end() && AllOf(value, fits);
}
bool IsText(const JsonView& value) { return value.IsString(); }

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

// Of which Flatten() makes others.
constexpr auto kMerged =
    std::to_array<std::string_view>({"allOf", "$ref", "not", "if", "then", "else"});

const Keyword* Find(std::string_view name) {
  const auto* const found = std::ranges::find(kKeywords, name, &Keyword::name);
  return found == kKeywords.end() ? nullptr : found;
}

JsonView Text(std::string_view json) { return JsonView::Parse(std::string(json)); }

std::vector<JsonView> ItemsOf(const JsonView& list) {
  std::vector<JsonView> items;
  for (const auto& item : list) items.push_back(item.value);
  return items;
}

template <typename List, typename Value>
bool IsOneOf(const List& list, const Value& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// A number is also an integer.
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

// What both schemas allow, of which one may be absent.
JsonView And(const JsonView& a, const JsonView& b) {
  if (!a.is_there() || IsTrue(a) || IsFalse(b)) return b.is_there() ? b : Text("true");
  if (!b.is_there() || IsTrue(b) || IsFalse(a)) return a;
  return Both(a, b);
}

JsonView Made(const std::string& name, const JsonView& value) {
  return JsonView::Object({{name, value}});
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

// The values of both lists, or of either.
JsonView Common(const JsonView& a, const JsonView& b, const std::string& pointer) {
  const std::vector<JsonView> mine = ItemsOf(a), others = ItemsOf(b);
  if (mine.size() * others.size() > kMaxCompared) FailAt(pointer, "too many values to be merged");
  std::vector<JsonView> common;
  for (const JsonView& one : mine) {
    if (IsOneOf(others, one)) common.push_back(one);
  }
  return JsonView::Array(common);
}

JsonView United(const JsonView& a, const JsonView& b, const std::string& pointer) {
  std::vector<JsonView> all = ItemsOf(a);
  for (const auto& [key, value] : b) {
    if (all.size() > kMaxKeys) FailAt(pointer, "too many values to be merged");
    if (!IsOneOf(all, value)) all.push_back(value);
  }
  return JsonView::Array(all);
}

// Numbers go with the whole ones: no grammar has the others alone.
void ExcludeTypes(Flat& flat, const std::vector<std::string>& types) {
  std::vector<JsonView> left;
  const std::vector<std::string> allowed = TypesOf(flat);
  // Without "type" those that no keyword applies to are valid as well.
  if (!flat.Has("type") && allowed.size() < 6) flat.exact = false;
  for (const std::string& type : allowed) {
    const bool has_whole = type == "number" && IsOneOf(types, "integer");
    const bool is_whole = type == "integer" && IsOneOf(types, "number");
    if (has_whole && !IsOneOf(types, type)) flat.exact = false;
    if (!has_whole && !is_whole && !IsOneOf(types, type)) {
      left.push_back(Text(gguf::JsonQuoted(type)));
    }
  }
  flat.fits = flat.fits && !left.empty();
  flat.Set("type", JsonView::Array(left));
}

// A reference is part of a URI: %25 in it is a percent sign.
std::string WithoutPercents(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && text.size() - i > 2 &&
        std::from_chars(digits, digits + 2, code, 16).ptr == digits + 2) {
      plain += static_cast<char>(code);
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

bool Refers(const JsonView& value) {
  return value["$ref"].is_there() ||
         !AllOf(value, [](const JsonView& part) { return !Refers(part); });
}

// A nested schema may have its own $id, to which its references are relative.
void CheckAddresses(const JsonView& value, const std::string& pointer) {
  const JsonView id = pointer == "#" ? JsonView() : value["$id"];
  if (id.IsString() && !id.String().starts_with('#') && Refers(value)) {
    FailAt(Below(pointer, "$id"), "references below an '$id' are not supported");
  }
  size_t i = 0;
  for (const auto& [key, part] : value) {
    const std::string name = value.IsObject() ? key : std::to_string(i++);
    if (part.IsObject() || part.IsArray()) CheckAddresses(part, Below(pointer, name));
  }
}

// Throws if a keyword is not supported or has a wrong value.
void CheckKeywords(const std::vector<JsonView::Member>& keywords, const std::string& pointer) {
  for (const auto& [name, value] : keywords) {
    if (IsOneOf(kAnnotations, name) || name.starts_with("x-")) continue;
    const Keyword* const keyword = Find(name);
    if (keyword == nullptr) FailAt(Below(pointer, name), "this keyword is not supported");
    const bool is_old = keyword->name.starts_with("exclusive") && value.IsBool();
    if (!keyword->shape.fits(value) && !is_old) {
      FailAt(Below(pointer, name), std::string("expected ") + keyword->shape.name);
    }
  }
}

// The value at a path (JSON Pointer, RFC 6901) below this one, or absent.
JsonView At(JsonView value, std::string_view path) {
  while (!path.empty() && value.is_there()) {
    path.remove_prefix(1);
    std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    for (size_t at = 0; (at = name.find('~', at)) != std::string::npos; ++at) {
      const bool is_tilde = name.compare(at, 2, "~0") == 0;
      if (!is_tilde && name.compare(at, 2, "~1") != 0) return {};
      name.replace(at, 2, is_tilde ? "~" : "/");
    }
    if (value.IsObject()) {
      value = value[name];
      continue;
    }
    JsonView found;
    size_t i = 0;
    for (const auto& item : value) {
      if (std::to_string(i++) == name) found = item.value;
    }
    value = found;
  }
  return value;
}

}  // namespace

JsonView Both(const JsonView& a, const JsonView& b) {
  return Made("allOf", JsonView::Array({a, b}));
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

SchemaParts::SchemaParts(JsonView root) : root_(std::move(root)) { CheckAddresses(root_, "#"); }

void FailAt(const std::string& pointer, const std::string& what) {
  throw Error(pointer + ": " + what);
}

std::string Below(const std::string& pointer, const std::string& name) {
  std::string path = pointer + '/';
  for (const char c : name) {
    path += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  }
  return path;
}

JsonView SchemaParts::Follow(const std::string& reference, const std::string& pointer) const {
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) {
    FailAt(pointer,
           "'$ref' is \"" + reference + "\"; only references such as #/$defs/name are supported");
  }
  JsonView found = At(root_, WithoutPercents(reference.substr(1)));
  if (!IsSchema(found)) {
    FailAt(pointer, "'$ref' leads to \"" + reference + "\", where no schema is");
  }
  return found;
}

void SchemaParts::Charge(size_t bytes, const std::string& pointer) {
  n_bytes_ += bytes;
  if (n_bytes_ > kMaxSchemaBytes) FailAt(pointer, "the schema is too large");
}

// Adds b's rules to a's.
void SchemaParts::Merge(Flat& a, const Flat& b, const std::string& pointer) {
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

Flat SchemaParts::Resolve(const JsonView& schema, const std::string& pointer, size_t depth) {
  Flat flat = Flatten(schema, pointer, depth);
  for (size_t i = 0; flat.Has("$ref"); ++i) {
    const std::string to = flat["$ref"].String();
    if (i > kMaxMerges) FailAt(pointer, "'$ref' leads to itself");
    flat = Flatten(Follow(to, pointer), to, depth);
  }
  return flat;
}

Flat SchemaParts::Flatten(const JsonView& schema, const std::string& pointer, size_t depth) {
  if (depth > kMaxMerges)
    FailAt(pointer, "the schema leads to itself through what has to be merged");
  Flat flat;
  if (schema.IsBool()) {
    flat.fits = schema.Bool();
    return flat;
  }
  Charge(schema.text().size(), pointer);
  const std::vector<JsonView::Member> keywords = schema.Members();
  CheckKeywords(keywords, pointer);
  for (const auto& [name, value] : keywords) {
    if (name == "const" || name == "enum") {
      const Flat listed{.keywords = {{"enum", name == "enum" ? value : JsonView::Array({value})}}};
      Merge(flat, listed, pointer);
    } else if (!IsOneOf(kMerged, name) && Find(name) != nullptr) {
      flat.Set(name, value);
    }
  }
  // Exclusive bounds of older drafts: true or false beside minimum and maximum.
  for (const auto& [exclusive, bound] :
       {std::pair("exclusiveMinimum", "minimum"), std::pair("exclusiveMaximum", "maximum")}) {
    if (!flat[exclusive].IsBool()) continue;
    const bool is_on = flat[exclusive].Bool() && flat.Has(bound);
    flat.Erase(exclusive);
    if (!is_on) continue;
    flat.Set(exclusive, flat[bound]);
    flat.Erase(bound);
  }
  const JsonView reference = schema["$ref"], all = schema["allOf"];
  const JsonView excluded = schema["not"], condition = schema["if"];
  const bool refers = reference.is_there();
  const bool merges = all.is_there() || excluded.is_there() || condition.is_there();
  if (refers && !merges && flat.keywords.empty()) {
    flat.Set("$ref", reference);
    return flat;
  }
  if (all.size() == 1 && !refers && !excluded.is_there() && !condition.is_there() &&
      flat.keywords.empty()) {
    return Flatten(all.begin()->value, Below(Below(pointer, "allOf"), "0"), depth + 1);
  }
  const auto merge = [&](const JsonView& other, const std::string& place) {
    Flat part = Resolve(other, place, depth + 1);
    for (const Flat* const each : {&flat, &part}) {
      for (const auto& keyword : each->keywords) {
        Charge(kCopied * keyword.value.text().size(), place);
      }
    }
    Merge(flat, part, place);
  };
  if (refers) merge(JsonView::Object({{"$ref", reference}}), pointer);
  size_t i = 0;
  for (const auto& part : all)
    merge(part.value, Below(Below(pointer, "allOf"), std::to_string(i++)));
  const JsonView then = schema["then"], otherwise = schema["else"];
  if (condition.is_there() && (then.is_there() || otherwise.is_there())) {
    const std::string place = Below(pointer, "if");
    const JsonView fails = Negation(condition, place, depth + 1);
    merge(Made("anyOf", JsonView::Array({And(condition, then), And(fails, otherwise)})), place);
  }
  if (!excluded.is_there()) return flat;
  const std::string place = Below(pointer, "not");
  const Flat plainly{.keywords = excluded.Members()};
  CheckKeywords(plainly.keywords, place);
  if (plainly.keywords.size() == 1 && plainly.Has("type")) {
    ExcludeTypes(flat, TypesOf(plainly));
  } else if (plainly.keywords.size() == 1 && plainly.Has("enum")) {
    Merge(flat, {.keywords = {{"not", excluded}}}, pointer);
  } else {
    merge(Negation(excluded, place, depth + 1), place);
  }
  return flat;
}

// Each keyword is a way not to be valid.
JsonView SchemaParts::Negation(const JsonView& schema, const std::string& pointer, size_t depth) {
  const Flat flat = Resolve(schema, pointer, depth);
  if (!flat.fits) return Text("true");
  if (!flat.exact)
    FailAt(pointer, "what pronk allows of this is narrower, so it cannot be negated");
  std::vector<JsonView> ways;
  const auto add_object = [&](const std::string& name, const JsonView& value, bool is_there) {
    std::vector<JsonView::Member> rules = {{"type", Text("\"object\"")},
                                           {"properties", Made(name, value)}};
    if (is_there) rules.push_back({"required", JsonView::Array({Text(gguf::JsonQuoted(name))})});
    ways.push_back(JsonView::Object(rules));
  };
  for (const auto& [name, value] : flat.keywords) {
    if (name == "type" || name == "enum") {
      ways.push_back(Made("not", Made(name, value)));
    } else if (name == "not") {
      ways.push_back(value);
    } else if (name == "required" && AllOf(value, IsText)) {
      for (const auto& key : value) add_object(key.value.String(), Text("false"), false);
    } else if (name == "properties") {
      for (const auto& [key, part] : value) {
        const JsonView other = Negation(part, Below(Below(pointer, name), key), depth + 1);
        if (!IsFalse(other)) add_object(key, other, true);
      }
    } else if (name == "anyOf") {
      std::vector<JsonView> all;
      for (const auto& way : value) all.push_back(Negation(way.value, pointer, depth + 1));
      ways.push_back(Made("allOf", JsonView::Array(all)));
    } else {
      FailAt(Below(pointer, name), "this keyword cannot be negated, as not and if need it");
    }
  }
  if (ways.size() == 1) return ways[0];
  return ways.empty() ? Text("false") : Made("anyOf", JsonView::Array(ways));
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

bool SchemaParts::Apart(const JsonView& a, const JsonView& b, const std::string& pointer,
                        size_t depth) {
  return Misses(a, b, pointer, depth) && Misses(b, a, pointer, depth);
}

// Whether no value generated for `made` is valid under `other`.
bool SchemaParts::Misses(const JsonView& made, const JsonView& other, const std::string& pointer,
                         size_t depth) {
  constexpr size_t kFarEnough = 4;
  if (depth > kFarEnough) return false;
  const Flat from = Resolve(made, pointer), to = Resolve(other, pointer);
  const auto plain = [](const Flat& s) {
    return s.fits && !s.Has("nullable") && !s.Has("anyOf") && !s.Has("oneOf") &&
           !s.Has("patternProperties");
  };
  if (!plain(from) || !plain(to)) return false;
  if (from.Has("enum") && to.Has("enum")) {
    return Common(from["enum"], to["enum"], pointer).size() == 0;
  }
  if (from.Has("enum") != to.Has("enum") && !(from.Has("type") && to.Has("type"))) return false;
  if (!to.Has("type") && !to.Has("properties")) return false;
  const std::vector<std::string> types = TypesOf(from);
  if (to.Has("type") && CommonTypes(types, TypesOf(to)).empty()) return true;
  if (types != std::vector<std::string>{"object"}) return false;
  // Objects: by their required and their allowed properties.
  const JsonView names = from["properties"], others_names = to["properties"];
  const std::vector<JsonView> needs = ItemsOf(from["required"]);
  // As in json_schema.cc: if some are named, others are allowed only if the schema says so.
  const JsonView rest = from["additionalProperties"];
  const bool is_closed = rest.is_there() ? IsFalse(rest) : names.is_there();
  const bool other_is_closed = IsFalse(to["additionalProperties"]);
  for (const auto& [key, need] : to["required"]) {
    if (need.IsString() && is_closed && !names[need.String()].is_there() && !IsOneOf(needs, need))
      return true;
  }
  for (const JsonView& need : needs) {
    if (!need.IsString()) continue;
    const std::string name = need.String();
    const JsonView mine = names[name], others = others_names[name];
    if (other_is_closed && !others.is_there()) return true;
    if (mine.is_there() && others.is_there() &&
        Misses(mine, others, Below(Below(pointer, "properties"), name), depth + 1)) {
      return true;
    }
  }
  return false;
}

}  // namespace grammar
