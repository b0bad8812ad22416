#include "grammar/schema_parts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "grammar/error.h"

namespace grammar {
namespace {

// Limit of nested merges: a schema that has to be merged with itself never ends.
constexpr size_t kMaxMerges = 64;
constexpr size_t kMaxValues = size_t{1} << 20;
constexpr size_t kMaxWays = 64;  // in the product of two lists of alternatives

// Keywords that only describe.
constexpr auto kAnnotations = std::to_array<std::string_view>(
    {"title", "description", "default", "examples", "example", "$schema", "$id", "$comment",
     "deprecated", "readOnly", "writeOnly", "$defs", "definitions", "discriminator"});

// The required kind of a keyword's value.
enum class Shape {
  kAny,
  kString,
  kList,
  kSchemas,
  kObject,
  kSchema,
  kCount,
  kNumber,
  kBool,
  kTypes,
  kItems
};
using enum Shape;
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
    {"$ref", kString, ""},
    {"nullable", kBool, ""},
    {"properties", kObject, "object"},
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
    {"minimum", kNumber, "number"},
    {"maximum", kNumber, "number"},
    {"exclusiveMinimum", kNumber, "number"},
    {"exclusiveMaximum", kNumber, "number"},
});

const Keyword* Find(std::string_view name) {
  const auto* const found = std::ranges::find(kKeywords, name, &Keyword::name);
  return found == kKeywords.end() ? nullptr : found;
}

bool IsSchema(const Json& value) { return value.is_object() || value.is_boolean(); }

bool Has(const Json& value, Shape shape) {
  const auto are_schemas = [](const Json& values) { return std::ranges::all_of(values, IsSchema); };
  switch (shape) {
    case kAny:
      return true;
    case kString:
      return value.is_string();
    case kList:
      return value.is_array();
    case kSchemas:
      return value.is_array() && !value.empty() && are_schemas(value);
    case kObject:
      return value.is_object() && are_schemas(value);
    case kSchema:
      return IsSchema(value);
    case kCount:
      return value.is_number() && value >= 0 && std::floor(value.get<double>()) == value;
    case kNumber:
      return value.is_number();
    case kBool:
      return value.is_boolean();
    case kTypes:
      return value.is_string() ||
             (value.is_array() && !value.empty() &&
              std::ranges::all_of(value, [](const Json& type) { return type.is_string(); }));
    case kItems:  // a list in older drafts
      return IsSchema(value) || (value.is_array() && are_schemas(value));
  }
  return false;
}

constexpr std::string_view ShapeName(Shape shape) {
  constexpr std::array<std::string_view, 11> kNames = {"anything",
                                                       "a string",
                                                       "a list",
                                                       "a list of schemas",
                                                       "an object of schemas",
                                                       "a schema",
                                                       "a whole number of at least 0",
                                                       "a number",
                                                       "true or false",
                                                       "a type or a list of types",
                                                       "a schema"};
  return kNames[static_cast<size_t>(shape)];
}

bool Contains(const Json& list, const Json& value) {
  return std::ranges::find(list, value) != list.end();
}

Json Both(const Json& a, const Json& b) { return Json{{"allOf", Json::array({a, b})}}; }

// As a list; a number is also an integer.
Json CommonTypes(const Json& a, const Json& b) {
  const Json left = a.is_array() ? a : Json::array({a}),
             right = b.is_array() ? b : Json::array({b});
  Json common = Json::array();
  const auto allows = [](const Json& types, const Json& type) {
    return Contains(types, type) || (type == "integer" && Contains(types, "number"));
  };
  for (const auto& [from, with] : {std::pair(&left, &right), std::pair(&right, &left)}) {
    for (const Json& type : *from) {
      if (allows(*with, type) && !Contains(common, type)) common.push_back(type);
    }
  }
  return common;
}

Json And(const Json& a, const Json& b) {
  if (a == Json(true) || b == Json(true)) return a == Json(true) ? b : a;
  if (a == Json(false) || b == Json(false)) return false;
  return Both(a, b);
}

// The rules of both objects: one schema's additionalProperties apply to properties that only the
// other names.
void MergeObjects(Json& a, const Json& b) {
  const Json rest_a = a.value("additionalProperties", Json(true));
  const Json rest_b = b.value("additionalProperties", Json(true));
  const Json named_b = b.value("properties", Json::object());
  Json named = a.value("properties", Json::object());
  for (auto& [name, schema] : named.items()) {
    schema = And(schema, named_b.contains(name) ? named_b[name] : rest_b);
  }
  for (const auto& [name, schema] : named_b.items()) {
    if (!named.contains(name)) named[name] = And(rest_a, schema);
  }
  if (!named.empty()) a["properties"] = named;
  if (a.contains("additionalProperties") || b.contains("additionalProperties")) {
    a["additionalProperties"] = And(rest_a, rest_b);
  }
}

bool HasAny(const Json& schema, std::initializer_list<const char*> names) {
  return std::ranges::any_of(names, [&](const char* name) { return schema.contains(name); });
}

// The same for arrays: each item obeys both schemas' rules for its position.
void MergeItems(Json& a, const Json& b) {
  struct Items {
    Json first, rest;
    const Json& At(size_t i) const { return i < first.size() ? first[i] : rest; }
  };
  // Older drafts have a list of items, and additionalItems for the rest.
  const auto items_of = [](const Json& schema) -> Items {
    const bool is_old = schema.contains("items") && schema["items"].is_array();
    return {schema.value(is_old ? "items" : "prefixItems", Json::array()),
            schema.value(is_old ? "additionalItems" : "items", Json(true))};
  };
  const Items mine = items_of(a), others = items_of(b);
  const bool has_rest = HasAny(a, {"items"}) || HasAny(b, {"items"});
  a.erase("additionalItems");
  a.erase("items");
  Json first = Json::array();
  for (size_t i = 0; i < std::max(mine.first.size(), others.first.size()); ++i) {
    first.push_back(And(mine.At(i), others.At(i)));
  }
  if (!first.empty()) a["prefixItems"] = first;
  if (has_rest) a["items"] = And(mine.rest, others.rest);
}

Json Product(const Json& a, const Json& b, const std::string& pointer) {
  if (a.size() * b.size() > kMaxWays) FailAt(pointer, "too many alternatives to be merged");
  Json ways = Json::array();
  for (const Json& one : a) {
    for (const Json& other : b) ways.push_back(Both(one, other));
  }
  return ways;
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

bool Refers(const Json& value) {
  return value.is_structured() &&
         (value.contains("$ref") ||
          std::ranges::any_of(value, [](const Json& part) { return Refers(part); }));
}

// A nested schema may have its own $id, to which its references are relative.
void CheckAddresses(const Json& value, const std::string& pointer) {
  const bool has_address = pointer != "#" && value.is_object() && value.contains("$id") &&
                           value["$id"].is_string() &&
                           !value["$id"].get_ref<const std::string&>().starts_with('#');
  if (has_address && Refers(value)) {
    FailAt(Below(pointer, "$id"), "references below an '$id' are not supported");
  }
  for (const auto& [name, part] : value.items()) {
    if (part.is_structured()) CheckAddresses(part, Below(pointer, name));
  }
}

}  // namespace

SchemaParts::SchemaParts(const Json& root) : root_(root) { CheckAddresses(root, "#"); }

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

const Json& SchemaParts::Follow(const std::string& reference, const std::string& pointer) const {
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) {
    FailAt(pointer,
           "'$ref' is \"" + reference + "\"; only references such as #/$defs/name are supported");
  }
  try {
    const Json::json_pointer path(WithoutPercents(reference.substr(1)));
    if (root_.contains(path) && IsSchema(root_[path])) return root_[path];
  } catch (const Json::exception&) {
  }
  FailAt(pointer, "'$ref' leads to \"" + reference + "\", where no schema is");
}

void SchemaParts::Charge(const Json& schema, const std::string& pointer) {
  std::vector<const Json*> todo = {&schema};
  while (!todo.empty()) {
    const Json* const value = todo.back();
    todo.pop_back();
    if (++n_values_ > kMaxValues) FailAt(pointer, "the schema is too large");
    if (!value->is_structured()) continue;
    for (const Json& part : *value) todo.push_back(&part);
  }
}

void SchemaParts::CheckKeywords(const Json& schema, const std::string& pointer) const {
  for (const auto& [name, value] : schema.items()) {
    if (std::ranges::find(kAnnotations, name) != kAnnotations.end() || name.starts_with("x-"))
      continue;
    const Keyword* const keyword = Find(name);
    if (keyword == nullptr) FailAt(Below(pointer, name), "this keyword is not supported");
    const bool is_old = keyword->name.starts_with("exclusive") && value.is_boolean();
    if (!Has(value, keyword->shape) && !is_old) {
      FailAt(Below(pointer, name), "expected " + std::string(ShapeName(keyword->shape)));
    }
  }
}

Json SchemaParts::Merged(Json a, const Json& b, const std::string& pointer) {
  if (a == Json(false) || b == Json(false)) return false;
  if (a == Json(true)) a = Json::object();
  if (b == Json(true)) return a;
  MergeObjects(a, b);
  const bool merges_items =
      HasAny(a, {"items", "prefixItems"}) && HasAny(b, {"items", "prefixItems"});
  if (merges_items) MergeItems(a, b);
  for (const auto& [name, value] : b.items()) {
    if (name == "properties" || name == "additionalProperties") continue;
    if (merges_items && (name == "items" || name == "prefixItems" || name == "additionalItems")) {
      continue;
    }
    if (!a.contains(name)) {
      a[name] = value;
      continue;
    }
    Json& mine = a[name];
    if (name == "type") {
      mine = CommonTypes(mine, value);
      if (mine.empty()) return false;
    } else if (name == "enum") {
      Json common = Json::array();
      for (const Json& one : mine) {
        if (Contains(value, one)) common.push_back(one);
      }
      mine = common;
    } else if (name == "required") {
      for (const Json& one : value) {
        if (!Contains(mine, one)) mine.push_back(one);
      }
    } else if (name == "anyOf" || name == "oneOf") {
      mine = Product(mine, value, Below(pointer, name));
    } else if (name.starts_with("min") || name == "exclusiveMinimum") {
      mine = std::max(mine, value);
    } else if (name.starts_with("max") || name == "exclusiveMaximum") {
      mine = std::min(mine, value);
    } else if (name == "nullable") {
      mine = mine == Json(true) && value == Json(true);
    } else if (name == "uniqueItems") {
      mine = mine == Json(true) || value == Json(true);
    } else if (mine != value) {
      FailAt(Below(pointer, name), "two of this keyword cannot be merged");
    }
  }
  return a;
}

Json SchemaParts::Flat(const Json& schema, const std::string& pointer, size_t depth) {
  if (depth > kMaxMerges)
    FailAt(pointer, "the schema leads to itself through what has to be merged");
  if (schema.is_boolean()) return schema;
  Charge(schema, pointer);
  CheckKeywords(schema, pointer);
  Json flat = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name == "const") {
      flat = Merged(flat, Json{{"enum", Json::array({value})}}, pointer);
    } else if (name == "enum") {
      flat = Merged(flat, Json{{"enum", value}}, pointer);
    } else if (name != "allOf" && name != "$ref" && Find(name) != nullptr) {
      flat[name] = value;
    }
  }
  // Exclusive bounds of older drafts: true or false beside minimum and maximum.
  for (const auto& [exclusive, bound] :
       {std::pair("exclusiveMinimum", "minimum"), std::pair("exclusiveMaximum", "maximum")}) {
    if (!flat.contains(exclusive) || !flat[exclusive].is_boolean()) continue;
    const bool is_on = flat[exclusive] == Json(true) && flat.contains(bound);
    flat.erase(exclusive);
    if (!is_on) continue;
    flat[exclusive] = flat[bound];
    flat.erase(bound);
  }
  const bool refers = schema.contains("$ref"), merges = schema.contains("allOf");
  if (refers && !merges && flat.empty()) return Json{{"$ref", schema["$ref"]}};
  if (merges && !refers && flat.empty() && schema["allOf"].size() == 1) {
    return Flat(schema["allOf"][0], Below(Below(pointer, "allOf"), "0"), depth + 1);
  }
  const auto merge = [&](const Json& other, const std::string& place) {
    Json part = Flat(other, place, depth + 1);
    for (size_t i = 0; part.is_object() && part.contains("$ref"); ++i) {
      const std::string reference = part["$ref"];
      if (i > kMaxMerges) FailAt(place, "'$ref' leads to itself");
      part = Flat(Follow(reference, place), reference, depth + 1);
    }
    Charge(part, place);
    flat = Merged(std::move(flat), part, place);
  };
  if (refers) merge(Json{{"$ref", schema["$ref"]}}, pointer);
  if (merges) {
    size_t i = 0;
    for (const Json& part : schema["allOf"]) {
      merge(part, Below(Below(pointer, "allOf"), std::to_string(i++)));
    }
  }
  return flat;
}

std::vector<std::string> TypesOf(const Json& flat) {
  if (flat.is_object() && flat.contains("type")) {
    if (flat["type"].is_string()) return {flat["type"]};
    return flat["type"];
  }
  std::vector<std::string> types;
  for (const Keyword& keyword : kKeywords) {
    if (keyword.type.empty() || !flat.is_object() || !flat.contains(keyword.name)) continue;
    if (std::ranges::find(types, keyword.type) == types.end()) types.emplace_back(keyword.type);
  }
  if (types.empty()) return {"object", "array", "string", "number", "boolean", "null"};
  return types;
}

bool SchemaParts::Apart(const Json& a, const Json& b, const std::string& pointer, size_t depth) {
  return Misses(a, b, pointer, depth) && Misses(b, a, pointer, depth);
}

// Whether no value generated for `made` is valid under `other`.
bool SchemaParts::Misses(const Json& made, const Json& other, const std::string& pointer,
                         size_t depth) {
  constexpr size_t kFarEnough = 4;
  if (depth > kFarEnough) return false;
  const auto flat = [&](const Json& schema) {
    Json parts = Flat(schema, pointer);
    for (size_t i = 0; i < kMaxMerges && parts.is_object() && parts.contains("$ref"); ++i) {
      const std::string reference = parts["$ref"];
      parts = Flat(Follow(reference, pointer), reference);
    }
    return parts;
  };
  const Json from = flat(made), to = flat(other);
  if (from.is_boolean() || to.is_boolean()) return false;
  const auto plain = [](const Json& s) {
    return !s.contains("nullable") && !s.contains("anyOf") && !s.contains("oneOf");
  };
  if (!plain(from) || !plain(to)) return false;
  if (from.contains("enum") && to.contains("enum")) {
    return std::ranges::none_of(from["enum"],
                                [&](const Json& v) { return Contains(to["enum"], v); });
  }
  if (from.contains("enum") != to.contains("enum") &&
      !(from.contains("type") && to.contains("type"))) {
    return false;
  }
  if (!to.contains("type") && !to.contains("properties")) return false;
  const Json types = TypesOf(from);
  if (to.contains("type") && CommonTypes(types, TypesOf(to)).empty()) return true;
  if (types != Json::array({"object"})) return false;
  // Objects: by their required and their allowed properties.
  const Json names = from.value("properties", Json::object()),
             others_names = to.value("properties", Json::object());
  const Json needs = from.value("required", Json::array()),
             others_needs = to.value("required", Json::array());
  // As in json_schema.cc: if some are named, others are allowed only if the schema says so.
  const bool is_closed =
      from.value("additionalProperties", Json(!from.contains("properties"))) == Json(false);
  const bool other_is_closed = to.value("additionalProperties", Json(true)) == Json(false);
  for (const Json& need : others_needs) {
    if (need.is_string() && is_closed && !names.contains(need) && !Contains(needs, need))
      return true;
  }
  for (const Json& need : needs) {
    if (!need.is_string()) continue;
    const std::string name = need;
    if (other_is_closed && !others_names.contains(name)) return true;
    if (names.contains(name) && others_names.contains(name) &&
        Misses(names[name], others_names[name], Below(Below(pointer, "properties"), name),
               depth + 1)) {
      return true;
    }
  }
  return false;
}

}  // namespace grammar
