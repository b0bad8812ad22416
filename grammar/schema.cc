#include "grammar/schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "gguf/error.h"
#include "gguf/utf8.h"
#include "grammar/formats.h"
#include "grammar/pattern.h"

namespace grammar {
namespace {

constexpr size_t kMaxSchemaDepth = 100;

// Keywords that reject no value.
constexpr auto kAnnotations = std::to_array<std::string_view>(
    {"title", "description", "default", "examples", "example", "$schema", "$comment", "deprecated",
     "readOnly", "writeOnly", "$defs", "definitions", "$id", "id", "$anchor", "$dynamicAnchor",
     "$recursiveAnchor", "$vocabulary"});

constexpr auto kTypeNames =
    std::to_array<std::pair<std::string_view, uint8_t>>({{"null", kNull},
                                                         {"boolean", kBool},
                                                         {"integer", kInteger},
                                                         {"number", kNumber},
                                                         {"string", kString},
                                                         {"array", kArray},
                                                         {"object", kObject}});

bool IsSchema(const JsonView& value) { return value.IsObject() || value.IsBool(); }

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

// An address relative to another (RFC 3986, without "..").
std::string Resolved(const std::string& base, const std::string& reference) {
  if (reference.empty()) return base;
  const size_t scheme = reference.find_first_of(":/?#");
  if (scheme != reference.npos && reference[scheme] == ':') return reference;
  const size_t colon = base.find(':');
  if (colon == base.npos) {
    return reference[0] == '/' ? reference : base.substr(0, base.rfind('/') + 1) + reference;
  }
  const bool has_host = base.compare(colon, 3, "://") == 0;
  const size_t host = has_host ? std::min(base.find('/', colon + 3), base.size()) : colon + 1;
  if (reference[0] == '/') return base.substr(0, host) + reference;
  const size_t slash = base.rfind('/');
  if (slash == base.npos || slash < host) return base.substr(0, host) + "/" + reference;
  return base.substr(0, slash + 1) + reference;
}

}  // namespace

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

// Reads schemas into nodes.
class Schemas::Reader {
 public:
  Reader(Schemas& schemas, const JsonView& root, bool nullable,
         std::function<void(const std::string&)> note)
      : all_(schemas), root_(root), has_nullable_(nullable), note_(std::move(note)) {
    const JsonView named = root["$schema"];
    const std::string draft = named.IsString() ? named.String() : "";
    constexpr std::array<std::pair<const char*, int>, 6> kDrafts = {{{"draft-03", 3},
                                                                     {"draft-04", 4},
                                                                     {"draft-06", 6},
                                                                     {"draft-07", 7},
                                                                     {"2019-09", 8},
                                                                     {"2020-12", 9}}};
    for (const auto& [name, number] : kDrafts) {
      if (draft.find(name) != draft.npos) draft_ = number;
    }
    FindAddresses(root, "", 0);
  }

  Literal ReadAll() {
    const Literal root = Read(root_, "#", 0);
    while (!references_.empty()) {
      const Reference reference = references_.back();
      references_.pop_back();
      const Literal to = Follow(reference);
      all_.nodes_[reference.node].all.push_back(to);
    }
    return root;
  }

 private:
  struct Reference {
    uint32_t node;
    std::string to, base, place;
  };

  // Schemas' own addresses ($id) and anchors.
  void FindAddresses(const JsonView& value, std::string base, size_t depth) {
    if (depth > kMaxSchemaDepth) return;
    if (value.IsObject()) {
      for (const char* const key : {"$id", "id"}) {
        const JsonView id = value[key];
        // Beside a reference older drafts ignore everything.
        if (!id.IsString() || (draft_ <= 7 && value["$ref"].IsString()) ||
            (draft_ > 4 && std::string_view(key) == "id" && draft_given()))
          continue;
        std::string address = id.String();
        if (address.empty()) continue;
        if (address[0] == '#') {
          addresses_.try_emplace(base + address, value);
          continue;
        }
        if (address.back() == '#') address.pop_back();
        base = Resolved(base, address);
        addresses_.try_emplace(base, value);
        bases_[value.text().data()] = base;
      }
      for (const char* const key : {"$anchor", "$dynamicAnchor"}) {
        if (const JsonView anchor = value[key]; anchor.IsString()) {
          addresses_.try_emplace(base + "#" + anchor.String(), value);
        }
      }
    }
    if (!value.IsObject() && !value.IsArray()) return;
    for (const auto& [key, part] : value) {
      if (key != "enum" && key != "const" && (part.IsObject() || part.IsArray())) {
        FindAddresses(part, base, depth + 1);
      }
    }
  }
  bool draft_given() const { return root_["$schema"].IsString(); }

  Literal Follow(const Reference& reference) {
    const auto [known, is_new] = followed_.try_emplace(reference.base + " " + reference.to);
    if (!is_new) return known->second;
    const size_t hash = std::min(reference.to.find('#'), reference.to.size());
    const std::string file = reference.to.substr(0, hash);
    const std::string fragment =
        WithoutPercents(reference.to.substr(std::min(hash + 1, reference.to.size())));
    JsonView at = root_;
    std::string address = reference.base;
    if (!file.empty()) address = Resolved(reference.base, file);
    if (const auto found = addresses_.find(address); found != addresses_.end()) {
      at = found->second;
    } else if (!file.empty()) {
      FailAt(reference.place, "'$ref' leads to ", gguf::Quoted(reference.to),
             ", which is another document");
    }
    std::string base = address;
    if (!fragment.empty() && fragment[0] != '/') {
      const auto found = addresses_.find(address + "#" + fragment);
      at = found == addresses_.end() ? JsonView() : found->second;
    } else if (!fragment.empty()) {
      at = At(at, fragment, base);
      // Many schemas have addresses that were never meant as such.
      if (!IsSchema(at)) at = At(root_, fragment, base);
    }
    if (!IsSchema(at)) {
      FailAt(reference.place, "'$ref' leads to ", gguf::Quoted(reference.to),
             ", where no schema is");
    }
    const Literal to = Read(at, file.empty() ? "#" + fragment : reference.to, 0, base);
    return followed_[reference.base + " " + reference.to] = to;
  }

  // The value at a JSON Pointer (RFC 6901).
  JsonView At(JsonView at, std::string_view path, std::string& base) {
    while (!path.empty() && at.is_there()) {
      path.remove_prefix(1);
      std::string name(path.substr(0, path.find('/')));
      path.remove_prefix(name.size());
      for (size_t i = 0; (i = name.find('~', i)) != name.npos; ++i) {
        const bool is_tilde = name.compare(i, 2, "~0") == 0;
        if (is_tilde || name.compare(i, 2, "~1") == 0) name.replace(i, 2, is_tilde ? "~" : "/");
      }
      at = Part(at, name);
      if (const auto own = bases_.find(at.text().data()); at.IsObject() && own != bases_.end())
        base = own->second;
    }
    return at;
  }

  // A member or an item; the members of each object are read once.
  JsonView Part(const JsonView& value, const std::string& name) {
    const auto [known, is_new] = parts_.try_emplace(value.text().data());
    if (is_new) {
      size_t i = 0;
      all_.budget_.Charge(value.text().size() / 4);
      for (const auto& [key, part] : value)
        known->second[value.IsArray() ? std::to_string(i++) : key] = part;
    }
    const auto found = known->second.find(name);
    return found == known->second.end() ? JsonView() : found->second;
  }

  void Note(const std::string& keyword, const std::string& place, const char* what) {
    if (noted_.insert(keyword).second) note_(place + ": " + what);
  }

  Literal Read(const JsonView& value, const std::string& place, size_t depth,
               std::string base = "") {
    if (value.IsBool()) return value.Bool() ? all_.True() : !all_.True();
    if (!value.IsObject()) FailAt(place, "expected a schema");
    if (depth > kMaxSchemaDepth) FailAt(place, "the schema is nested too deep");
    const auto [known, is_new] = known_.try_emplace(value.text().data());
    if (!is_new) return known->second;
    const Literal literal = all_.Add({});
    known->second = literal;
    if (const auto own = bases_.find(value.text().data()); own != bases_.end()) base = own->second;
    Schema schema;
    schema.place = place;
    const size_t n_references = references_.size();
    ReadKeywords(value, schema, literal.node, depth, base);
    if (schema.IsPlain() && schema.all.empty() && references_.size() == n_references) {
      return known_[value.text().data()] = all_.True();
    }
    all_.nodes_[literal.node] = std::move(schema);
    return literal;
  }

  void ReadKeywords(const JsonView& value, Schema& to, uint32_t node, size_t depth,
                    const std::string& base) {
    const std::vector<JsonView::Member> members = value.Members();
    all_.budget_.Charge(800 + value.text().size() / 16 + members.size());
    std::map<std::string_view, const JsonView*> by_name;
    for (const auto& [name, part] : members) by_name[name] = &part;
    const auto get = [&](std::string_view name) {
      const auto found = by_name.find(name);
      return found == by_name.end() ? JsonView() : *found->second;
    };
    if (const JsonView reference = get("$ref"); reference.is_there()) {
      if (!reference.IsString()) FailAt(Below(to.place, "$ref"), "expected a string");
      references_.push_back({node, reference.String(), base, to.place});
      // Beside a reference older drafts ignore everything.
      if (draft_ <= 7) return;
    }
    for (const JsonView::Member& member : members) {
      const auto& name = member.key;
      const auto& part = member.value;
      const std::string at = Below(to.place, name);
      const auto schema = [&](const JsonView& v, const std::string& where) {
        return Read(v, where, depth + 1, base);
      };
      const auto one = [&](Literal& l) {
        if (!IsSchema(part)) FailAt(at, "expected a schema");
        l = schema(part, at);
      };
      const auto list = [&](std::vector<Literal>& l) {
        if (!part.IsArray() || part.begin() == part.end()) FailAt(at, "expected a list of schemas");
        size_t i = 0;
        for (const auto& [key, v] : part) {
          if (!IsSchema(v)) FailAt(at, "expected a list of schemas");
          l.push_back(schema(v, Below(at, std::to_string(i++))));
        }
      };
      const auto object = [&](std::vector<std::pair<std::string, Literal>>& l) {
        if (!part.IsObject()) FailAt(at, "expected an object of schemas");
        for (const auto& [key, v] : part.Members()) {
          if (!IsSchema(v)) FailAt(at, "expected an object of schemas");
          l.emplace_back(key, schema(v, Below(at, key)));
        }
      };
      const auto count = [&](std::optional<uint64_t>& n) {
        const auto number = part.IsNumber() ? Decimal::Parse(part.text()) : std::nullopt;
        if (!number || !number->IsWhole() || number->negative) {
          FailAt(at, "expected a whole number of at least 0");
        }
        n = number->whole.size() > 15 ? uint64_t{1} << 60 : std::stoull(number->whole);
      };
      const auto number = [&](const JsonView& v) {
        const auto decimal = v.IsNumber() ? Decimal::Parse(v.text()) : std::nullopt;
        if (!decimal)
          FailAt(at, v.IsNumber() ? "a number of too many digits" : "expected a number");
        return *decimal;
      };
      const auto names = [&](const JsonView& v) {
        Names all;
        if (!v.IsArray()) FailAt(at, "expected a list of strings");
        for (const auto& [key, item] : v) {
          if (!item.IsString()) FailAt(at, "expected a list of strings");
          all.push_back(item.String());
        }
        return all;
      };
      const auto bound = [&](const char* exclusive, bool is_min) {
        const JsonView flag = get(exclusive);
        const Bound b = {number(part), flag.IsBool() && flag.Bool()};
        is_min ? to.numbers.AtLeast(b) : to.numbers.AtMost(b);
      };
      const auto text = [&] {
        if (!part.IsString()) FailAt(at, "expected a string");
        return part.String();
      };
      const bool is_old_items = get("items").IsArray();
      if (name == "$ref" || std::ranges::find(kAnnotations, name) != kAnnotations.end() ||
          name.starts_with("x-")) {
        continue;
      } else if (name == "type") {
        to.types &= ReadTypes(part, at);
      } else if (name == "enum" || name == "const") {
        std::vector<JsonView> values;
        if (name == "const") {
          values.push_back(part);
        } else {
          if (!part.IsArray()) FailAt(at, "expected a list");
          for (const auto& [key, v] : part) values.push_back(v);
        }
        if (to.is_listed) {
          std::erase_if(values, [&](const JsonView& v) {
            return std::ranges::find(to.values, v) == to.values.end();
          });
        }
        to.is_listed = true;
        to.values = std::move(values);
      } else if (name == "properties") {
        object(to.properties);
        if (draft_ == 3) ReadRequired(part, to);
      } else if (name == "patternProperties") {
        object(to.by_pattern);
      } else if (name == "additionalProperties") {
        one(to.additional);
      } else if (name == "required") {
        if (part.IsBool()) {
          if (draft_ != 3) Note("required", at, "is no list of names, and ignored");
        } else {
          to.required = names(part);
        }
      } else if (name == "minProperties") {
        count(to.min_properties);
      } else if (name == "maxProperties") {
        count(to.max_properties);
      } else if (name == "propertyNames") {
        one(to.names);
      } else if (name == "dependentRequired" || name == "dependentSchemas" ||
                 name == "dependencies") {
        if (!part.IsObject()) FailAt(at, "expected an object");
        for (const auto& [key, v] : part.Members()) {
          if (v.IsArray()) {
            to.needs.emplace_back(key, names(v));
          } else if (v.IsString()) {
            to.needs.emplace_back(key, Names{v.String()});
          } else {
            to.needs_schema.emplace_back(key, schema(v, Below(at, key)));
          }
        }
      } else if (name == "prefixItems" || (name == "items" && part.IsArray())) {
        if (part.IsArray() && part.begin() == part.end()) continue;
        list(to.first);
      } else if (name == "items") {
        one(to.rest);
      } else if (name == "additionalItems") {
        if (is_old_items) one(to.rest);
      } else if (name == "minItems") {
        count(to.min_items);
      } else if (name == "maxItems") {
        count(to.max_items);
      } else if (name == "contains") {
        one(to.contains);
      } else if (name == "minContains") {
        std::optional<uint64_t> n;
        count(n);
        to.min_contains = *n;
      } else if (name == "maxContains") {
        count(to.max_contains);
      } else if (name == "uniqueItems") {
        if (!part.IsBool()) FailAt(at, "expected true or false");
        to.unique = part.Bool();
      } else if (name == "minLength") {
        count(to.min_length);
      } else if (name == "maxLength") {
        count(to.max_length);
      } else if (name == "pattern") {
        to.patterns.push_back(text());
      } else if (name == "format") {
        const std::string format = text();
        if (const auto pattern = PatternOfFormat(format)) {
          to.patterns.push_back(*pattern);
        } else {
          Note("format " + format, at,
               (gguf::Quoted(format) + " is unknown, and any string may be written").c_str());
        }
      } else if (name == "minimum") {
        bound("exclusiveMinimum", true);
      } else if (name == "maximum") {
        bound("exclusiveMaximum", false);
      } else if (name == "exclusiveMinimum" || name == "exclusiveMaximum") {
        if (part.IsBool()) continue;
        const Bound b = {number(part), true};
        name == "exclusiveMinimum" ? to.numbers.AtLeast(b) : to.numbers.AtMost(b);
      } else if (name == "multipleOf" || name == "divisibleBy") {
        const Decimal step = number(part);
        if (step.negative || step.IsZero()) FailAt(at, "expected a number above 0");
        to.numbers.multiples.push_back(step);
      } else if (name == "anyOf") {
        list(to.any);
      } else if (name == "oneOf") {
        list(to.one);
      } else if (name == "allOf") {
        list(to.all);
      } else if (name == "extends" && draft_ == 3) {
        if (part.IsArray()) {
          list(to.all);
        } else {
          Literal l;
          one(l);
          to.all.push_back(l);
        }
      } else if (name == "not") {
        one(to.no);
      } else if (name == "disallow" && draft_ == 3) {
        to.types &= static_cast<uint8_t>(~ReadTypes(part, at));
      } else if (name == "if") {
        one(to.condition);
      } else if (name == "then") {
        one(to.then);
      } else if (name == "else") {
        one(to.otherwise);
      } else if (name == "nullable" && has_nullable_) {
        continue;
      } else if (name == "unevaluatedProperties" || name == "unevaluatedItems" ||
                 name == "$dynamicRef" || name == "$recursiveRef") {
        if (part.IsBool() && part.Bool()) continue;
        const bool has_others = to.place.empty() || get("allOf").is_there() ||
                                get("anyOf").is_there() || get("oneOf").is_there() ||
                                get("$ref").is_there() || get("if").is_there() ||
                                get("not").is_there() || get("dependentSchemas").is_there() ||
                                get("contains").is_there();
        if (name[0] == '$' || has_others) {
          if (name == "$recursiveRef" && part.IsString() && part.String() == "#") {
            references_.push_back({node, "#", base, to.place});
          } else {
            to.refusal = at + ": this keyword is not supported here";
          }
        } else if (name == "unevaluatedItems") {
          if (!to.rest.is_there() && !get("items").is_there()) one(to.rest);
        } else if (!get("additionalProperties").is_there()) {
          one(to.additional);
        }
      } else if (name.starts_with("content")) {
        Note(name, at, "what a string encodes is not held");
      } else {
        Note(name, at, "this is no keyword of JSON Schema, and ignored");
      }
    }
    if (const JsonView nullable = get("nullable");
        has_nullable_ && nullable.IsBool() && nullable.Bool()) {
      const Literal rest = all_.Add(std::move(to));
      for (Reference& reference : references_) {
        if (reference.node == node) reference.node = rest.node;
      }
      to = {};
      to.place = all_.nodes_[rest.node].place;
      Schema null;
      null.place = to.place;
      null.types = kNull;
      to.any = {rest, all_.Add(std::move(null))};
    }
  }

  uint8_t ReadTypes(const JsonView& value, const std::string& at) {
    const auto one = [&](const JsonView& v) -> uint8_t {
      if (!v.IsString()) FailAt(at, "expected a type or a list of types");
      const std::string name = v.String();
      if (name == "any" && draft_ == 3) return kAllTypes;
      for (const auto& [known, type] : kTypeNames) {
        if (known == name) return type;
      }
      FailAt(at, gguf::Quoted(name), " is no type of JSON");
    };
    if (!value.IsArray()) return one(value);
    uint8_t types = 0;
    for (const auto& [key, v] : value) types |= one(v);
    return types;
  }

  // Draft 3 has "required": true in each property.
  static void ReadRequired(const JsonView& properties, Schema& to) {
    for (const auto& [key, v] : properties.Members()) {
      if (v["required"].IsBool() && v["required"].Bool()) to.required.push_back(key);
    }
  }

  Schemas& all_;
  const JsonView& root_;
  bool has_nullable_;
  std::function<void(const std::string&)> note_;
  int draft_ = 9;                                       // 8: 2019-09, 9: 2020-12
  std::map<std::string, JsonView> addresses_;           // by address, or address#anchor
  std::unordered_map<const char*, std::string> bases_;  // of schemas with an own address
  std::unordered_map<const char*, std::unordered_map<std::string, JsonView>> parts_;
  std::unordered_map<const char*, Literal> known_;     // by place in the text
  std::unordered_map<std::string, Literal> followed_;  // references
  std::vector<Reference> references_;
  std::set<std::string> noted_;
};

Schemas::Schemas(const JsonView& root, bool nullable, std::function<void(const std::string&)> note,
                 Budget& budget)
    : budget_(budget), nodes_(1) {
  root_ = Reader(*this, root, nullable, std::move(note)).ReadAll();
}

Literal Schemas::Add(Schema schema) {
  budget_.Charge(50);
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
    schema.min_items = schema.max_items = schema.first.size();
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
    uint64_t length = 0;
    for ([[maybe_unused]] const auto& c : gguf::Characters(text)) ++length;
    if (length < s.min_length.value_or(0) || length > s.max_length.value_or(UINT64_MAX))
      return false;
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
    if (items.size() < s.min_items.value_or(0) || items.size() > s.max_items.value_or(UINT64_MAX))
      return false;
    uint64_t n_contained = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (!fits_part(i < s.first.size() ? s.first[i] : s.rest, items[i])) return false;
      if (s.contains.is_there()) n_contained += fits_part(s.contains, items[i]);
      for (size_t j = 0; s.unique && j < i; ++j) {
        if (items[i] == items[j]) return false;
      }
    }
    if (s.contains.is_there() &&
        (n_contained < s.min_contains || n_contained > s.max_contains.value_or(UINT64_MAX))) {
      return false;
    }
  }
  if (type == kObject && (s.IsObject() || !s.needs_schema.empty())) {
    const std::vector<JsonView::Member> members = value.Members();
    const auto has = [&](const std::string& name) {
      return std::ranges::find(members, name, &JsonView::Member::key) != members.end();
    };
    if (members.size() < s.min_properties.value_or(0) ||
        members.size() > s.max_properties.value_or(UINT64_MAX)) {
      return false;
    }
    if (!std::ranges::all_of(s.required, has)) return false;
    for (const auto& [name, others] : s.needs) {
      if (has(name) && !std::ranges::all_of(others, has)) return false;
    }
    for (const auto& [name, other] : s.needs_schema) {
      if (has(name) && !fits(other)) return false;
    }
    if (s.outside != kNone) throw Error(s.place, ": this is not supported beside enum or const");
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
      if (s.names.is_there() && !fits_part(s.names, JsonView::Parse(gguf::JsonQuoted(key))))
        return false;
    }
  }
  if (!std::ranges::all_of(s.all, fits)) return false;
  if (!s.any.empty() && std::ranges::none_of(s.any, fits)) return false;
  if (!s.one.empty() && std::ranges::count_if(s.one, fits) != 1) return false;
  if (s.no.is_there() && fits(s.no)) return false;
  return !s.condition.is_there() || fits(fits(s.condition) ? s.then : s.otherwise);
}

}  // namespace grammar
