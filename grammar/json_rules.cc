// The rules of JSON, of automata and of lists of texts.
#include "grammar/json_rules.h"

#include <algorithm>
#include <utility>

#include "gguf/json.h"
#include "gguf/utf8.h"

namespace grammar {
namespace {

constexpr std::string_view kCompact = R"(
ws  ::= ""
gap ::= " "
)";
constexpr std::string_view kFree = R"(
ws  ::= | " " | "\n" [ \t]{0,20}
gap ::= ws
)";
// A surrogate is allowed only as half of a pair.
constexpr std::string_view kEscapes = R"(
odd  ::= [\x7F\u2028\u2029] | "\\" (["\\/bfnrt] | "u" unit)
unit ::= [0-9a-cefA-CEF] hex hex hex | [dD] ([0-7] hex hex | [89abAB] hex hex "\\u" [dD] [c-fC-F] hex hex)
hex  ::= [0-9a-fA-F]
)";
constexpr std::string_view kRules = R"(
value   ::= object | array | string | number | boolean | null
object  ::= "{" ws (member ("," gap member)* ws)? "}"
member  ::= key ":" gap value
array   ::= "[" ws (value ("," gap value)* ws)? "]"
number  ::= "-"? whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9] [0-9]?)?
integer ::= "0" | "-"? [1-9] [0-9]{0,15}
whole   ::= "0" | [1-9] [0-9]{0,15}
boolean ::= "true" | "false"
null    ::= "null"
)";

CodePoints Minus(const CodePoints& a, const CodePoints& b) {
  CodePoints outside = Complement(a);
  outside.insert(outside.end(), b.begin(), b.end());
  return Complement(Normal(std::move(outside)));
}

const CodePoints& Escaped() {
  static const CodePoints set = Normal({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}});
  return set;
}

}  // namespace

JsonRules::JsonRules(Builder& builder, bool free_space)
    : builder_(builder), rules_(AddGbnf(kEscapes, builder)) {
  const auto define = [&](const char* name, Part part) {
    const RuleId rule = builder_.Declare(name);
    builder_.Define(rule, part);
    rules_[name] = rule;
  };
  const auto quoted = [&](Part part) {
    return builder_.Then(builder_.Then(builder_.Literal("\""), part), builder_.Literal("\""));
  };
  define("string", quoted(AnyText(Call("odd"))));
  define("key", quoted(AnyText(Character(Minus(Complement({}), grammar::Plain())))));
  rules_ = AddGbnf(std::string(free_space ? kFree : kCompact).append(kRules), builder, rules_);
}

Part JsonRules::AnyText(const Part& others) {
  const Part text = builder_.Text();
  builder_.Link(text.start, others.start);
  builder_.Link(others.end, text.start);
  return text;
}

Part JsonRules::String(uint32_t least, uint32_t most) {
  if (least == 0 && most == kNone) return Call("string");
  const Part characters = builder_.Repeat(
      builder_.Either(std::vector{builder_.Text(/*once=*/true), Call("odd")}), least, most);
  return builder_.Then(builder_.Then(builder_.Literal("\""), characters), builder_.Literal("\""));
}

Part JsonRules::Character(const CodePoints& set) {
  const CodePoint least = set[0].first;
  if (set.size() == 1 && least == set[0].second && IsPlain(least)) return builder_.Characters(set);
  const auto [known, is_new] = characters_.try_emplace(set);
  if (is_new) {
    const CodePoints raw = Minus(set, Escaped()), escaped = Minus(set, raw);
    std::vector<Part> ways;
    if (!raw.empty()) ways.push_back(builder_.Characters(raw));
    for (const auto& [low, high] : escaped) {
      for (CodePoint c = low; c <= high; ++c) {
        const std::string quoted = gguf::JsonQuoted(gguf::ToUtf8(c));
        ways.push_back(builder_.Literal(quoted.substr(1, quoted.size() - 2)));
      }
    }
    known->second = builder_.Declare("");
    builder_.Define(known->second, builder_.Either(ways));
  }
  return builder_.Call(known->second);
}

Part JsonRules::Texts(const Dfa& dfa, const std::function<Part(const CodePoints&)>& character,
                      uint32_t most) {
  // With a limit, a character may come if the shortest text after it is within the limit.
  const std::vector<uint32_t> to_end = most == kNone ? std::vector<uint32_t>() : dfa.Distances();
  const auto counted = [&](Part part, uint32_t to) {
    return most == kNone ? part : builder_.Counted(part, most - to_end[to], most);
  };
  std::vector<StateId> forks;
  const StateId end = builder_.Fork();
  for (size_t i = 0; i < dfa.states.size(); ++i) forks.push_back(builder_.Fork());
  for (size_t i = 0; i < dfa.states.size(); ++i) {
    const Dfa::State& state = dfa.states[i];
    if (state.accepts) builder_.Link(forks[i], end);
    std::map<uint32_t, CodePoints> by_target;
    for (const auto& [low, high, to] : state.edges) by_target[to].emplace_back(low, high);
    for (auto& [to, set] : by_target) {
      if (most != kNone && to_end[to] >= most) continue;
      if (to == i && IsSubset(grammar::Plain(), set)) {
        set = Minus(set, grammar::Plain());
        const Part text = counted(builder_.Text(/*once=*/true), to);
        builder_.Link(forks[i], text.start);
        builder_.Link(text.end, forks[i]);
      }
      if (set.empty()) continue;
      const Part one = counted(character(set), to);
      builder_.Link(forks[i], one.start);
      builder_.Link(one.end, forks[to]);
    }
  }
  if (most != kNone) {
    const uint32_t farthest = *std::ranges::max_element(to_end);
    builder_.AddLimit(forks[0], most - std::min(most, farthest));
  }
  return {forks[0], end, most != kNone};
}

Part JsonRules::Plain(const Dfa& dfa) {
  return Texts(
      dfa, [&](const CodePoints& set) { return builder_.Characters(set); }, kNone);
}

Part JsonRules::Quoted(const Dfa& dfa, uint32_t most) {
  const auto [known, is_new] = quoted_.try_emplace({dfa, most});
  if (is_new) {
    known->second = builder_.Declare("");
    const Part text = Texts(
        dfa, [&](const CodePoints& set) { return Character(set); }, most);
    builder_.Define(known->second, builder_.Then(builder_.Then(builder_.Literal("\""), text),
                                                 builder_.Literal("\"")));
  }
  return builder_.Call(known->second);
}

}  // namespace grammar
