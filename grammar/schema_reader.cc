// Reads the keywords of schemas into nodes.
#include <algorithm>
#include <array>

#include "gguf/error.h"
#include "grammar/addresses.h"
#include "grammar/formats.h"
#include "grammar/schema.h"

namespace grammar {
namespace {

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

}  // namespace

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
    addresses_.emplace(root, draft_, schemas.budget_);
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

  Literal Follow(const Reference& reference) {
    const auto [known, is_new] = followed_.try_emplace(reference.base + " " + reference.to);
    if (!is_new) return known->second;
    const auto [schema, base, place] =
        addresses_->Follow(reference.to, reference.base, reference.place);
    const Literal to = Read(schema, place, 0, base);
    return followed_[reference.base + " " + reference.to] = to;
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
    if (const std::string own = addresses_->Own(value); !own.empty()) base = own;
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
      // Older drafts ignore all keywords beside a reference.
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
      const auto count = [&] {
        const auto number = part.IsNumber() ? Decimal::Parse(part.text()) : std::nullopt;
        if (!number || !number->IsWhole() || number->negative) {
          FailAt(at, "expected a whole number of at least 0");
        }
        return number->whole.size() > 15 ? uint64_t{1} << 60 : std::stoull(number->whole);
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
        to.lists_properties = true;
        object(to.properties);
        if (draft_ == 3) ReadRequired(part, to);
      } else if (name == "patternProperties") {
        to.lists_properties = true;
        object(to.by_pattern);
      } else if (name == "additionalProperties") {
        one(to.additional);
      } else if (name == "required") {
        if (part.IsBool()) {
          if (draft_ != 3) Note("required", at, "is not a list of names, and is ignored");
        } else {
          to.required = names(part);
        }
      } else if (name == "minProperties") {
        to.properties_count.min = count();
      } else if (name == "maxProperties") {
        to.properties_count.max = count();
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
        to.items_count.min = count();
      } else if (name == "maxItems") {
        to.items_count.max = count();
      } else if (name == "contains") {
        one(to.contains.item);
      } else if (name == "minContains") {
        to.contains.count.min = count();
      } else if (name == "maxContains") {
        to.contains.count.max = count();
      } else if (name == "uniqueItems") {
        if (!part.IsBool()) FailAt(at, "expected true or false");
        to.unique = part.Bool();
      } else if (name == "minLength") {
        to.length.min = count();
      } else if (name == "maxLength") {
        to.length.max = count();
      } else if (name == "pattern") {
        to.patterns.push_back(text());
      } else if (name == "format") {
        const std::string format = text();
        if (const auto pattern = PatternOfFormat(format)) {
          to.patterns.push_back(*pattern);
        } else {
          Note("format " + format, at,
               (gguf::Quoted(format) + " is unknown, and is ignored").c_str());
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
        Note(name, at, "the content of an encoded string is not checked");
      } else {
        Note(name, at, "this is not a keyword of JSON Schema, and is ignored");
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
      FailAt(at, gguf::Quoted(name), " is not a JSON type");
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
  int draft_ = 9;  // numbered as in Addresses
  std::optional<Addresses> addresses_;
  std::unordered_map<const char*, Literal> known_;     // [place in the text]
  std::unordered_map<std::string, Literal> followed_;  // references
  std::vector<Reference> references_;
  std::set<std::string> noted_;
};

Literal Schemas::ReadAll(const JsonView& root, bool nullable,
                         std::function<void(const std::string&)> note) {
  return Reader(*this, root, nullable, std::move(note)).ReadAll();
}

}  // namespace grammar
