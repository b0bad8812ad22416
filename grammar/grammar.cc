#include "grammar/grammar.h"

#include <algorithm>
#include <utility>

namespace grammar {

using Kind = State::Kind;

const Repetition* Grammar::FindRepetition(StateId call) const {
  const auto found = std::ranges::lower_bound(repetitions_, call, {}, &Repetition::call);
  if (found == repetitions_.end() || found->call != call) return nullptr;
  return rule(state(call).other).may_be_empty ? nullptr : &*found;
}

StateId Builder::Add(const State& state) {
  if (grammar_.states_.size() == kMaxStates) {
    throw Error("the grammar is too large: more than ", kMaxStates, " states");
  }
  grammar_.states_.push_back(state);
  return static_cast<StateId>(grammar_.states_.size() - 1);
}

void Builder::Link(StateId fork, StateId to) {
  const State& from = grammar_.states_[fork];
  if (from.next == kNone) {
    grammar_.states_[fork].next = to;
  } else if (from.other == kNone) {
    grammar_.states_[fork].other = to;
  } else {  // a third target: the second becomes a fork of the two
    const StateId both = Add({.next = from.other, .other = to});
    grammar_.states_[fork].other = both;
  }
}

Part Builder::Empty() {
  const StateId fork = Fork();
  return {fork, fork};
}

Part Builder::Byte(uint8_t low, uint8_t high) {
  const StateId end = Fork();
  return {Add({.kind = Kind::kByte, .low = low, .high = high, .next = end}), end};
}

Part Builder::Literal(std::string_view bytes) {
  Part all = Empty();
  for (const char c : bytes)
    all = Then(all, Byte(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
  return all;
}

Part Builder::Characters(const CodePoints& set) {
  std::vector<Part> ways;
  // A set beyond ASCII takes many states: all its uses share one rule.
  const bool is_ascii = set.back().second < 0x80;
  if (!is_ascii) {
    if (const auto known = sets_.find(set); known != sets_.end()) return Call(known->second);
  }
  ForUtf8(set, [&](const ByteRanges& ranges) {
    Part all = Byte(ranges.bytes[0].low, ranges.bytes[0].high);
    for (size_t i = 1; i < ranges.size; ++i) {
      all = Then(all, Byte(ranges.bytes[i].low, ranges.bytes[i].high));
    }
    ways.push_back(all);
  });
  const Part any = Either(ways);
  if (is_ascii) return any;
  return Call(sets_[set] = Outline(any));
}

Part Builder::Token(const std::string& name, bool but_this) {
  std::vector<TokenName>& tokens = grammar_.tokens_;
  const auto found = std::ranges::find(tokens, name, &TokenName::name);
  const auto index = static_cast<uint8_t>(found - tokens.begin());
  if (index == kOtherToken) throw Error("the grammar names more than 255 tokens");
  if (index == tokens.size()) tokens.push_back({name, false});
  tokens[index].is_wanted |= !but_this;
  std::vector<Part> ways;
  if (!but_this) ways.push_back(Byte(index, index));
  if (but_this && index > 0) ways.push_back(Byte(0, static_cast<uint8_t>(index - 1)));
  if (but_this) ways.push_back(Byte(static_cast<uint8_t>(index + 1), kOtherToken));
  return Then(Byte(kTokenByte, kTokenByte), Either(ways));
}

Part Builder::Call(RuleId rule) {
  const StateId end = Fork();
  return {Add({.kind = Kind::kCall, .next = end, .other = rule}), end};
}

Part Builder::Either(std::span<const Part> ways) {
  if (ways.size() == 1) return ways[0];
  const StateId end = Fork();
  StateId start = end;
  for (size_t i = ways.size(); i-- > 0;) {
    Link(ways[i].end, end);
    start = i + 1 == ways.size() ? ways[i].start : Add({.next = ways[i].start, .other = start});
  }
  return {start, end};
}

std::optional<Part> Builder::AnyOf(const std::vector<std::optional<Part>>& ways) {
  std::vector<Part> there;
  for (const std::optional<Part>& way : ways) {
    if (way) there.push_back(*way);
  }
  return there.empty() ? std::nullopt : std::optional(Either(there));
}

Part Builder::Repeat(Part part, uint32_t min, uint32_t max) {
  if (max == 0) return Empty();
  if (min <= 1 && (max == kNone || max == 1)) {
    const StateId end = Fork(), start = min == 0 ? Fork() : part.start;
    if (min == 0) {
      Link(start, part.start);
      Link(start, end);
    }
    // The order does not matter: the matcher follows all targets.
    Link(part.end, end);
    if (max == kNone) Link(part.end, part.start);
    return {start, end};
  }
  const RuleId rule = Outline(part);
  StateId first = kNone;
  const auto call = [&](uint32_t left) {
    const Part one = Call(rule);
    if (first == kNone) first = one.start;
    grammar_.repetitions_.push_back({one.start, first, left});
    return one;
  };
  Part all = Empty();
  for (uint32_t i = 0; i < min; ++i) all = Then(all, call(min - i));
  if (max == kNone) return Then(all, Repeat(Call(rule), 0, kNone));
  const StateId end = Fork();
  first = kNone;
  for (uint32_t i = min; i < max; ++i) {
    Link(all.end, end);  // enough
    all = Then(all, call(max - i));
  }
  Link(all.end, end);
  return {all.start, end};
}

RuleId Builder::Declare(std::string name) {
  if (grammar_.rules_.size() == kMaxStates) throw Error("the grammar is too large: too many rules");
  grammar_.rules_.emplace_back().name = std::move(name);
  return static_cast<RuleId>(grammar_.rules_.size() - 1);
}

void Builder::Define(RuleId rule, Part part) {
  Link(part.end, Add({.kind = Kind::kEnd}));
  grammar_.rules_[rule].start = part.start;
}

RuleId Builder::Outline(Part part) {
  const RuleId rule = Declare("");
  Define(rule, part);
  return rule;
}

RuleId Builder::Include(const Grammar& grammar) {
  if (!grammar.tokens_.empty())
    throw Error("a grammar that names tokens cannot be part of another");
  const auto first_state = static_cast<StateId>(grammar_.states_.size());
  const auto first_rule = static_cast<RuleId>(grammar_.rules_.size());
  const auto move = [](uint32_t& to, uint32_t by) {
    if (to != kNone) to += by;
  };
  for (State state : grammar.states_) {
    move(state.next, first_state);
    move(state.other, state.kind == Kind::kCall ? first_rule : first_state);
    Add(state);
  }
  for (const Rule& rule : grammar.rules_) {
    const RuleId added = Declare(rule.name);
    grammar_.rules_[added].start = rule.start;
    move(grammar_.rules_[added].start, first_state);
  }
  for (const auto& [call, first, left] : grammar.repetitions_)
    grammar_.repetitions_.push_back({call + first_state, first + first_state, left});
  return first_rule + grammar.root_;
}

Grammar Builder::Finish(RuleId root, bool is_answer) && {
  grammar_.root_ = root;
  grammar_.covers_thinking_ = !grammar_.tokens_.empty() && !is_answer;
  Analyze(grammar_);
  return std::move(grammar_);
}

}  // namespace grammar
