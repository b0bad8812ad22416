// Finds which characters may follow a position in any order.
#include "grammar/runs.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace grammar {
namespace {

using Kind = State::Kind;

constexpr uint32_t kNotYet = kNone - 1;
constexpr size_t kMaxHubStates = 256;  // larger hubs allow no run
constexpr size_t kMaxHubsAtOnce = 4000;
constexpr size_t kMaxRunItems = 8192;
constexpr size_t kManyCharacters = 20;  // more in a row make no difference

constexpr auto kKinds = std::to_array<std::string_view>(
    {"a",          "b",  "c",  "d",   "e", "f",      "g",
     "h",          "i",  "j",  "k",   "l", "m",      "n",
     "o",          "p",  "q",  "r",   "s", "t",      "u",
     "v",          "w",  "x",  "y",   "z", "ABCDEF", "GHIJKLMNOPQRSTUVWXYZ",
     "0123456789", "_",  " ",  "-",   ".", "/",      ":",
     ",",          "@",  "#",  "+",   "=", "&",      "%",
     "*",          "?",  "!",  "'",   "$", ";",      "()",
     "<>",         "[]", "{}", "|^`~"});

}  // namespace

Kinds KindOf(CodePoint c) {
  static const std::array<Kinds, 128> of = [] {
    std::array<Kinds, 128> all;
    all.fill(kQuotedKinds);  // quotes, backslashes and controls
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      for (const char one : kKinds[kind]) all[static_cast<uint8_t>(one)] = Kinds{1} << kind;
    }
    return all;
  }();
  return c < of.size() ? of[c] : IsSubset({{c, c}}, TextBeyondAscii()) ? kBeyond : kOdd;
}

size_t Runs::Set::size() const {
  return static_cast<size_t>(std::popcount(low)) + static_cast<size_t>(std::popcount(high));
}

Runs::Set Runs::Range(uint32_t first, uint32_t last) {
  Set set;
  for (uint32_t c = std::max(first, 2u); c <= std::min(last, 127u); ++c)
    (c < 64 ? set.low : set.high) |= uint64_t{1} << (c % 64);
  return set;
}

// The kinds whose characters are all in the set.
Kinds Runs::KindsIn(const Set& set) {
  Kinds kinds = set.Has({2, 0}) ? kBeyond : 0;
  for (size_t kind = 0; kind < kKinds.size(); ++kind) {
    const auto has = [&](char c) {
      return set.Has(Range(static_cast<uint8_t>(c), static_cast<uint8_t>(c)));
    };
    if (std::ranges::all_of(kKinds[kind], has)) kinds |= Kinds{1} << kind;
  }
  return kinds;
}

Runs::Runs(const Grammar& grammar)
    : grammar_(grammar), hub_after_(grammar.n_states(), kNotYet), visits_(grammar.n_states()) {}

bool Runs::MayEnd(StateId state) {
  std::vector<StateId> todo = {state};
  for (size_t i = 0; i < todo.size() && i < kMaxHubStates; ++i) {
    const State& at = grammar_.state(todo[i]);
    if (at.kind == Kind::kEnd) return true;
    if (at.kind != Kind::kFork) continue;
    for (const StateId next : {at.next, at.other}) {
      if (next != kNone) todo.push_back(next);
    }
  }
  return false;
}

// The characters that are whole texts of a rule. Rules of characters call each other twice at most.
const Runs::Set& Runs::CharactersOf(RuleId rule, size_t depth) {
  const auto [known, is_new] = rules_.try_emplace(rule);
  if (!is_new || depth > 2 || grammar_.rule(rule).first.size() > kMaxHubStates)
    return known->second;
  Set set;
  if (grammar_.rule(rule).has_all_beyond_ascii) set.low |= 2;
  for (const auto& [at, data] : grammar_.rule(rule).first) {
    const State& state = grammar_.state(at);
    if (state.next == kNone || !MayEnd(state.next)) continue;
    if (state.kind == Kind::kByte) set.Add(Range(state.low, state.high));
    if (state.kind == Kind::kCall) set.Add(CharactersOf(state.other, depth + 1));
  }
  return rules_[rule] = set;
}

bool Runs::IsCharacter(RuleId rule) {
  if (CharactersOf(rule).IsEmpty()) return false;
  return std::ranges::all_of(grammar_.rule(rule).first, [&](const Place& place) {
    const State& state = grammar_.state(place.at);
    const bool is_escape = state.kind == Kind::kByte && state.low == '\\';
    return is_escape || state.low >= 0x80 || MayEnd(state.next);
  });
}

Runs::Set Runs::CharactersAt(StateId at) {
  const State& state = grammar_.state(at);
  if (state.kind == Kind::kByte) return Range(state.low, state.high);
  if (state.kind == Kind::kCall) return CharactersOf(state.other);
  Set plain = {2, 0};
  for (const auto& [low, high] : Plain()) plain.Add(Range(low, high));
  return plain;
}

uint32_t Runs::LoopAt(StateId state) const {
  const Loop* const loop = grammar_.LoopOf(state);
  return loop == nullptr ? kNone : loop->body;
}

// A repetition's end is not passed: its continuation may depend on the count.
uint32_t Runs::HubAfter(StateId state) {
  std::vector<StateId> states, todo = {grammar_.state(state).next};
  const uint32_t loop = LoopAt(state);
  ++n_visits_;
  for (size_t n = 0; !todo.empty();) {
    const StateId s = todo.back();
    todo.pop_back();
    if (s == kNone || std::exchange(visits_[s], n_visits_) == n_visits_) continue;
    if (++n > kMaxHubStates) return kNone;
    const State& at = grammar_.state(s);
    switch (at.kind) {
      case Kind::kFork:
        todo.push_back(at.other);
        [[fallthrough]];
      case Kind::kCount:
      case Kind::kBelow:
        todo.push_back(at.next);
        break;
      case Kind::kByte:
      case Kind::kCall:
      case Kind::kText:
        if (LoopAt(s) == loop) states.push_back(s);
        break;
      default:
        break;
    }
  }
  if (states.empty()) return kNone;
  Set all;
  for (const StateId s : states) all.Add(CharactersAt(s));
  if (all.size() <= 1 && !all.IsBeyondAscii()) return kOneCharacter;
  std::sort(states.begin(), states.end());
  const auto [known, is_new] = numbers_.try_emplace(states, hubs_.size());
  if (is_new) hubs_.push_back({.states = std::move(states)});
  return known->second;
}

// Finds the hubs that follow the items' states, and the runs of all of them.
void Runs::Explore(std::span<const Item> items) {
  const auto begin = static_cast<uint32_t>(hubs_.size());
  const auto group = static_cast<uint32_t>(groups_.size());
  const auto look = [&](StateId s) {
    if (hub_after_[s] != kNotYet) return;
    const size_t n_before = hubs_.size();
    hub_after_[s] = HubAfter(s);
    if (hubs_.size() > n_before) hubs_.back().group = group;
  };
  for (const Item& item : items) {
    if (item.at < kEscape) look(item.at);
  }
  for (size_t i = begin; i < hubs_.size() && hubs_.size() < begin + kMaxHubsAtOnce; ++i) {
    const std::vector<StateId> states = hubs_[i].states;
    for (const StateId s : states) look(s);
  }
  if (hubs_.size() == begin) return;
  groups_.emplace_back();
  TrySets(begin, group);
}

// Tries sets of characters with the hubs from `begin` on.
void Runs::TrySets(uint32_t begin, uint32_t group) {
  struct Edge {
    Set set;
    uint32_t to;
  };
  const auto end = static_cast<uint32_t>(hubs_.size());
  const auto index = [&](uint32_t hub) { return hub == kOneCharacter ? 0 : hub - begin + 1; };
  std::vector<std::vector<Edge>> edges(index(end));
  std::vector<std::vector<uint32_t>> before(index(end));
  std::map<Set, size_t> weights;
  for (uint32_t hub = begin; hub < end; ++hub) {
    Set all, same;
    for (const StateId s : hubs_[hub].states) {
      const uint32_t to = hub_after_[s] == kNotYet ? kNone : hub_after_[s];
      const Edge edge = {CharactersAt(s), to};
      if (edge.set.IsEmpty() || to == kNone) continue;
      if (to != kOneCharacter && hubs_[to].group != group) continue;
      edges[index(hub)].push_back(edge);
      before[index(to)].push_back(hub);
      all.Add(edge.set);
      if (to == hub) same.Add(edge.set);
    }
    ++weights[all];
    if (same != all) ++weights[same];
  }
  weights.erase(Set{});
  std::vector<std::pair<size_t, Set>> best;
  best.reserve(weights.size());
  for (const auto& [set, n] : weights) best.emplace_back(n * set.size(), set);
  std::sort(best.rbegin(), best.rend());
  best.resize(std::min(best.size(), kMaxTried));
  for (size_t t = 0; t < best.size(); ++t) {
    const Set& wanted = best[t].second;
    groups_[group].sets.push_back(wanted);
    groups_[group].kinds.push_back(KindsIn(wanted));
    for (uint32_t hub = begin; hub < end; ++hub) hubs_[hub].lengths[t] = kAny;
    // Whether every character of the set leads from the hub to one that allows at least `length`.
    const auto allows = [&](uint32_t hub, uint32_t length) {
      Set covered;
      for (const Edge& edge : edges[index(hub)]) {
        if (hubs_[edge.to].lengths[t] >= length) covered.Add(edge.set);
      }
      return covered.Has(wanted);
    };
    std::vector<uint32_t> ended = {kOneCharacter};
    for (uint32_t hub = begin; hub < end; ++hub) {
      if (!allows(hub, 0)) ended.push_back(hub);
    }
    for (uint32_t length = 0; length < kAny && !ended.empty(); ++length) {
      for (const uint32_t hub : ended) hubs_[hub].lengths[t] = static_cast<uint8_t>(length);
      std::vector<uint32_t> next;
      for (const uint32_t hub : ended) {
        for (const uint32_t b : before[index(hub)]) {
          if (hubs_[b].lengths[t] == kAny && !allows(b, length + 1)) next.push_back(b);
        }
      }
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      ended = std::move(next);
    }
  }
}

Run Runs::Of(std::span<const Item> items) {
  Run best;
  size_t most = 0;
  if (items.size() > kMaxRunItems) return best;
  // Items of one rule's call and count, which can be read together.
  struct Way {
    Item item;
    uint32_t hub;
  };
  std::vector<Way> ways;
  Explore(items);
  for (const Item& item : items) {
    if (item.at >= kEscape) continue;
    const uint32_t hub = hub_after_[item.at];
    if (hub != kNone && hub != kOneCharacter) ways.push_back({item, hub});
  }
  const auto key = [&](const Way& way) {
    return std::tuple(way.item.below, way.item.data, hubs_[way.hub].group);
  };
  std::ranges::sort(ways, {}, key);
  for (size_t begin = 0, end = 0; begin < ways.size(); begin = end) {
    uint32_t limit = kAny;
    for (; end < ways.size() && key(ways[end]) == key(ways[begin]); ++end) {
      const auto& [at, data, below] = ways[end].item;
      const Loop* const loop = grammar_.LoopOf(at);
      if (loop != nullptr && loop->max != kNone)
        limit = std::min(limit, loop->max - std::min(loop->max, data));
    }
    const std::span<Way> some = std::span(ways).subspan(begin, end - begin);
    const Group& group = groups_[hubs_[ways[begin].hub].group];
    for (size_t t = 0; t < group.sets.size(); ++t) {
      const auto length_of = [&](const Way& way) { return hubs_[way.hub].lengths[t]; };
      std::ranges::sort(some, std::greater(), length_of);
      Set covered;
      uint32_t length = 0;
      for (const Way& way : some) {
        covered.Add(CharactersAt(way.item.at));
        if (!covered.Has(group.sets[t])) continue;
        length = std::min(limit, length_of(way) + 1u);
        break;
      }
      const size_t score = std::min<size_t>(length, kManyCharacters) * group.sets[t].size();
      if (score > most) best = {group.kinds[t], length};
      most = std::max(most, score);
    }
  }
  return best;
}

}  // namespace grammar
