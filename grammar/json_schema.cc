// A JSON Schema as rules: values of each type. Lists and objects have files of their own.
#include "grammar/json_schema.h"

#include <algorithm>
#include <set>

#include "gguf/error.h"
#include "gguf/json.h"
#include "grammar/converter.h"

namespace grammar {

RuleId Converter::Convert() {
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

std::optional<RuleId> Converter::RuleOf(const Conjunction& all, const std::string& place) {
  if (all.empty()) return AnyValue();
  if (all[0] == !schemas_.True()) return std::nullopt;
  const auto [known, is_new] = rules_.try_emplace(all);
  if (is_new) {
    schemas_.budget().Charge(300);
    known->second = builder_.Declare(place);
    pending_.emplace_back(all, known->second);
  }
  return known->second;
}

RuleId Converter::AnyValue() {
  if (any_value_ == kNone) any_value_ = Outline(json_.Call("value"));
  return any_value_;
}

RuleId Converter::Outline(Part part) {
  const RuleId rule = builder_.Declare("");
  builder_.Define(rule, part);
  return rule;
}

void Converter::Define(const Conjunction& all, RuleId rule) {
  const std::vector<Shape>& shapes = all_.ShapesOf(all);
  // Without "type", a generated value has a type that the keywords apply to.
  std::set<size_t> told;
  const auto says_something = [](const Shape& s) {
    return !s.nodes.empty() || !s.numbers.IsFree() || !s.length.IsFree() || !s.patterns.empty() ||
           !s.not_patterns.empty();
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

Converter::MaybePart Converter::OfShape(const Shape& shape) {
  schemas_.budget().Charge(50);
  if (shape.is_listed) {
    Names texts;
    for (const JsonView& value : shape.values) {
      texts.push_back(Spelled(value));
      if (value.IsNumber()) texts.push_back(NumberText(value));  // 2 is 2.0
    }
    return json_.Plain(Listed(texts, schemas_.budget()));
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

std::string Converter::Spelled(const JsonView& value) const {
  const bool is_object = value.IsObject();
  if (options_.free_space || (!is_object && !value.IsArray())) return value.Compact();
  std::string text;
  for (const auto& [key, part] : value) {
    text += (text.empty() ? "" : ", ") + (is_object ? gguf::JsonQuoted(key) + ": " : "");
    text += Spelled(part);
  }
  return is_object ? "{" + text + "}" : "[" + text + "]";
}

Converter::MaybePart Converter::String(const Shape& shape) {
  // The rule of a set of strings is made once.
  const auto [known, is_new] = shared_.try_emplace("s" + Conjunctions::StringKey(shape));
  if (is_new) {
    const auto& [least, most] = shape.length;
    const bool is_free =
        shape.patterns.empty() && shape.not_patterns.empty() && shape.excluded.empty();
    const uint32_t limit = most < kNone ? static_cast<uint32_t>(most) : kNone;
    if (is_free && least < kNone) {
      known->second = Outline(json_.String(static_cast<uint32_t>(least), limit));
    } else {
      // A limit is counted, unless the strings are short anyway.
      Shape any_length = shape;
      any_length.length.max = UINT64_MAX;
      const Dfa& dfa = all_.StringsOf(any_length);
      const bool is_short = dfa.Longest() <= most;
      if (!dfa.empty() && dfa.Shortest() <= most)
        known->second = Outline(json_.Quoted(dfa, is_short ? kNone : limit));
    }
  }
  return known->second ? MaybePart(builder_.Call(*known->second)) : std::nullopt;
}

Converter::MaybePart Converter::Number(const Shape& shape) {
  const NumberSet& numbers = shape.numbers;
  if (numbers.IsFree() && numbers.whole)
    return json_.Call(numbers.fractions ? "number" : "integer");
  const auto [known, is_new] = shared_.try_emplace(numbers.Key());
  if (is_new) {
    try {
      const Dfa dfa = numbers.Spellings(schemas_.budget());
      if (!dfa.empty()) known->second = Outline(json_.Plain(dfa));
    } catch (const Error& error) {
      FailAt(shape.place, error.what());
    }
  }
  return known->second ? MaybePart(builder_.Call(*known->second)) : std::nullopt;
}

Part Converter::After(std::string_view text, Part part) {
  const Part space = json_.Call(text == "," ? "gap" : "ws");
  return builder_.Then(builder_.Then(builder_.Literal(text), space), part);
}

Part Converter::Value(RuleId rule) {
  return builder_.Then(builder_.Then(builder_.Literal(":"), json_.Call("gap")),
                       builder_.Call(rule));
}

Converter::Brackets Converter::BracketsOf(char bracket, bool is_unique) {
  const Part space = json_.Call("ws"), close = builder_.Literal(bracket == '{' ? "}" : "]");
  builder_.Link(space.end, close.start);
  const Part open = is_unique ? builder_.OpenUnique() : builder_.Literal({&bracket, 1});
  return {builder_.Then(open, json_.Call("ws")), space.start, close.start, close.end};
}

Part Converter::MembersIn(char bracket, uint32_t id, MaybePart others) {
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
  for (const StateId end : ends_) builder_.Link(end, member);
  ends_.clear();
  return builder_.Call(Outline({brackets.open.start, brackets.end}));
}

void Converter::AddMember(uint32_t id, Part key, std::optional<RuleId> value, bool is_required) {
  const auto index = static_cast<uint32_t>(builder_.members(id).keys.size());
  Part part = builder_.Then(key, builder_.Seen(id, index));
  if (value) part = builder_.Then(part, Value(*value));
  ends_.push_back(part.end);
  builder_.members(id).keys.push_back({part.start, value.value_or(kNone), is_required, true});
}

RuleId AddJsonSchema(const std::string& text, Builder& builder, const SchemaOptions& options) {
  const auto root = [&] {
    try {
      return JsonView::Parse(text, {.depth = 100, .keys = 20'000});
    } catch (const gguf::Error& error) {
      throw Error(error.what());
    }
  }();
  if (!root.IsObject() && !root.IsBool()) throw Error("#: expected an object or a boolean");
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
