// Builds rules from parts.
#include "grammar/grammar.h"

#include <algorithm>
#include <utility>

namespace grammar {

using Kind = State::Kind;

const CodePoints& Plain() {
  static const CodePoints plain =
      Complement(Normal({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}, {0x2028, 0x2029}}));
  return plain;
}

namespace {

const CodePoints& PlainBeyondAscii() {
  static const CodePoints beyond = [] {
    CodePoints all;
    for (const auto& [low, high] : Plain()) {
      if (high >= 0x80) all.emplace_back(std::max<CodePoint>(low, 0x80), high);
    }
    return all;
  }();
  return beyond;
}

}  // namespace

const CodePoints& TextBeyondAscii() {
  static const CodePoints text = [] {
    CodePoints none = {{0, 0x7F}};
    none.insert(none.end(), WhiteSpace().begin(), WhiteSpace().end());
    return Complement(Normal(std::move(none)));
  }();
  return text;
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

Part Builder::Nothing() { return {Fork(), Fork()}; }

Part Builder::Byte(uint8_t low, uint8_t high) {
  const StateId end = Fork();
  return {Add({.kind = Kind::kByte, .low = low, .high = high, .next = end}), end};
}

Part Builder::OpenUnique() {
  const Part bracket = Byte('[', '[');
  grammar_.states_[bracket.start].other = kOpensUnique;
  return bracket;
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
  const RuleId rule = sets_[set] = Outline(any);
  grammar_.rules_[rule].has_all_beyond_ascii = IsSubset(TextBeyondAscii(), set);
  return Call(rule);
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
  bool counts = false;
  for (size_t i = ways.size(); i-- > 0;) {
    Link(ways[i].end, end);
    start = i + 1 == ways.size() ? ways[i].start : Add({.next = ways[i].start, .other = start});
    counts |= ways[i].counts;
  }
  return {start, end, counts};
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
    return {start, end, part.counts};
  }
  if (part.counts) part = Call(Outline(part));
  const StateId loop = Fork(), end = Fork();
  const StateId count =
      Add({.kind = Kind::kCount, .next = loop, .other = max == kNone ? min : max});
  const StateId enough = Add({.kind = Kind::kAtLeast, .next = end, .other = min});
  StateId begin = part.start;
  if (max != kNone) begin = Add({.kind = Kind::kBelow, .next = begin, .other = max});
  Link(part.end, count);
  Link(loop, begin);
  Link(loop, enough);
  grammar_.loops_.push_back({min, max, part.start, count, enough});
  return {loop, end, true};
}

Part Builder::Counted(Part part, uint32_t limit, uint32_t most) {
  const StateId end = Fork();
  Link(part.end, Add({.kind = Kind::kCount, .next = end, .other = most}));
  return {Add({.kind = Kind::kBelow, .next = part.start, .other = limit}), end, true};
}

void Builder::AddLimit(StateId start, uint32_t count) {
  grammar_.loops_.push_back({.min = 0, .max = count, .body = start});
}

Part Builder::Text(bool once) {
  const RuleId rule = grammar_.states_[Characters(PlainBeyondAscii()).start].other;
  const StateId start = Fork(), end = Fork();
  Link(start, Add({.kind = Kind::kText, .next = once ? end : start, .other = rule}));
  if (once) return {start, end};
  Link(start, end);
  return {start, end};
}

uint32_t Builder::AddMembers() {
  grammar_.members_.emplace_back();
  return static_cast<uint32_t>(grammar_.members_.size() - 1);
}

Part Builder::Seen(uint32_t members, uint32_t key) {
  if (key != kNone && key >= kMaxKeys) throw Error("the grammar is too large: too many properties");
  const StateId end = Fork();
  return {Add({.kind = Kind::kSeen,
               .low = static_cast<uint8_t>(key & 0xFF),
               .high = static_cast<uint8_t>(key >> 8 & 0xFF),
               .next = end,
               .other = members}),
          end};
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
  const auto first_members = static_cast<uint32_t>(grammar_.members_.size());
  const auto move = [](uint32_t& to, uint32_t by) {
    if (to != kNone) to += by;
  };
  for (State state : grammar.states_) {
    move(state.next, first_state);
    switch (state.kind) {
      case Kind::kFork:
        move(state.other, first_state);
        break;
      case Kind::kCall:
      case Kind::kText:
        move(state.other, first_rule);
        break;
      case Kind::kMember:
      case Kind::kKey:
      case Kind::kSeen:
        move(state.other, first_members);
        break;
      default:  // none, or a number
        break;
    }
    Add(state);
  }
  for (const Rule& rule : grammar.rules_) {
    const RuleId added = Declare(rule.name);
    grammar_.rules_[added].start = rule.start;
    grammar_.rules_[added].has_all_beyond_ascii = rule.has_all_beyond_ascii;
    move(grammar_.rules_[added].start, first_state);
  }
  for (Loop loop : grammar.loops_) {
    for (StateId* const state : {&loop.body, &loop.count, &loop.at_least})
      move(*state, first_state);
    grammar_.loops_.push_back(loop);
  }
  for (Members members : grammar.members_) {
    for (Members::Key& key : members.keys) {
      move(key.start, first_state);
      move(key.value, first_rule);
    }
    for (StateId* const state :
         {&members.other, &members.first, &members.more, &members.close, &members.none})
      move(*state, first_state);
    grammar_.members_.push_back(std::move(members));
  }
  return first_rule + grammar.root_;
}

Grammar Builder::Finish(RuleId root, bool prunes, bool is_answer) && {
  grammar_.root_ = root;
  grammar_.covers_thinking_ = !grammar_.tokens_.empty() && !is_answer;
  Analyze(grammar_, prunes);
  return std::move(grammar_);
}

}  // namespace grammar
