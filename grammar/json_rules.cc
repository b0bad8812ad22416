// The rules of JSON, and those of automata and lists of texts.
#include "grammar/json_rules.h"

#include <algorithm>
#include <optional>
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
// A surrogate only as half of a pair.
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
  define("key", quoted(KeyText()));
  rules_ = AddGbnf(std::string(free_space ? kFree : kCompact).append(kRules), builder, rules_);
}

Part JsonRules::AnyText(const Part& others) {
  const Part text = builder_.Text();
  builder_.Link(text.start, others.start);
  builder_.Link(others.end, text.start);
  return text;
}

Part JsonRules::KeyText() { return AnyText(Character(Minus(Complement({}), grammar::Plain()))); }

Part JsonRules::String(uint32_t least, uint32_t most) {
  if (least == 0 && most == kNone) return Call("string");
  const Part characters = builder_.Repeat(
      builder_.Either(std::vector{builder_.Text(/*once=*/true), Call("odd")}), least, most);
  return builder_.Then(builder_.Then(builder_.Literal("\""), characters), builder_.Literal("\""));
}

Part JsonRules::Character(const CodePoints& set) {
  const CodePoints raw = Minus(set, Escaped()), escaped = Minus(set, Minus(set, Escaped()));
  if (escaped.empty()) return builder_.Characters(raw);
  const auto [known, is_new] = characters_.try_emplace(set);
  if (is_new) {
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

Part JsonRules::Texts(const Dfa& dfa, uint32_t most) {
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
    for (auto& [to, ranges] : by_target) {
      if (most != kNone && to_end[to] >= most) continue;
      CodePoints set = Normal(std::move(ranges));
      if (to == i && Minus(grammar::Plain(), set).empty()) {
        set = Minus(set, grammar::Plain());
        const Part text = counted(builder_.Text(/*once=*/true), to);
        builder_.Link(forks[i], text.start);
        builder_.Link(text.end, forks[i]);
      }
      if (set.empty()) continue;
      const Part one = counted(Character(set), to);
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

Part JsonRules::Quoted(const Dfa& dfa, uint32_t most) {
  return builder_.Then(builder_.Then(builder_.Literal("\""), Texts(dfa, most)),
                       builder_.Literal("\""));
}

Part JsonRules::OneOf(const std::vector<std::string>& texts) {
  // A trie of the bytes.
  std::vector<std::map<char, size_t>> next(1);
  std::vector<StateId> forks = {builder_.Fork()};
  const StateId end = builder_.Fork();
  std::vector<bool> ends(1);
  for (const std::string& text : texts) {
    size_t at = 0;
    for (const char c : text) {
      const auto [found, is_new] = next[at].try_emplace(c, next.size());
      const size_t to = found->second;
      if (is_new) {
        next.emplace_back();
        ends.push_back(false);
        forks.push_back(builder_.Fork());
        const Part byte = builder_.Literal({&c, 1});
        builder_.Link(forks[at], byte.start);
        builder_.Link(byte.end, forks[to]);
      }
      at = to;
    }
    if (!ends[at]) builder_.Link(forks[at], end);
    ends[at] = true;
  }
  return {forks[0], end};
}

// The trie of the names, and what leaves it.
Part JsonRules::KeyBut(const std::vector<std::string>& names) {
  if (names.empty()) return Call("key");
  struct Node {
    std::map<CodePoint, size_t> next;
    bool is_name = false;
  };
  std::vector<Node> nodes(1);
  for (const std::string& name : names) {
    size_t at = 0;
    for (const auto& [c, bytes] : gguf::Characters(name)) {
      const auto [next, is_new] = nodes[at].next.try_emplace(c, nodes.size());
      at = next->second;
      if (is_new) nodes.emplace_back();
    }
    nodes[at].is_name = true;
  }
  std::vector<StateId> forks;
  for (size_t i = 0; i < nodes.size(); ++i) forks.push_back(builder_.Fork());
  const Part rest = KeyText(), close = builder_.Literal("\"");
  builder_.Link(rest.end, close.start);
  for (size_t i = 0; i < nodes.size(); ++i) {
    CodePoints own;
    for (const auto& [c, next] : nodes[i].next) {
      const Part step = Character({{c, c}});
      builder_.Link(forks[i], step.start);
      builder_.Link(step.end, forks[next]);
      own.emplace_back(c, c);
    }
    const Part other = Character(Complement(Normal(std::move(own))));
    builder_.Link(forks[i], other.start);
    builder_.Link(other.end, rest.start);
    if (!nodes[i].is_name) builder_.Link(forks[i], close.start);
  }
  const Part open = builder_.Literal("\"");
  builder_.Link(open.end, forks[0]);
  return {open.start, close.end};
}

}  // namespace grammar
