#include "grammar/schema_parts.h"

#include <array>
#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

namespace grammar {
namespace {

// Limit of nested merges: a schema that has to be merged with itself never ends.
constexpr size_t kMaxMerges = 64;
// Of schemas each time that they are looked at; eight times for what merging makes, which is kept.
constexpr size_t kMaxSchemaBytes = size_t{64} << 20, kCopied = 8;

// Of which Flatten() makes others.
constexpr auto kMerged =
    std::to_array<std::string_view>({"allOf", "$ref", "not", "if", "then", "else"});

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

SchemaParts::SchemaParts(JsonView root) : root_(std::move(root)) { CheckAddresses(root_, "#"); }

JsonView SchemaParts::Follow(const std::string& reference, const std::string& pointer) const {
  if (!reference.starts_with('#') || (reference.size() > 1 && reference[1] != '/')) {
    FailAt(pointer, "'$ref' is \"", reference,
           "\"; only references such as #/$defs/name are supported");
  }
  JsonView found = At(root_, WithoutPercents(reference.substr(1)));
  if (!IsSchema(found)) FailAt(pointer, "'$ref' leads to \"", reference, "\", where no schema is");
  return found;
}

void SchemaParts::Charge(size_t bytes, const std::string& pointer) {
  n_bytes_ += bytes;
  if (n_bytes_ > kMaxSchemaBytes) FailAt(pointer, "the schema is too large");
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
    } else if (!IsOneOf(kMerged, name) && IsKeyword(name)) {
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
