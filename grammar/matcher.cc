#include "grammar/matcher.h"

#include <algorithm>
#include <utility>

namespace grammar {
namespace {

using Kind = State::Kind;

// A set with its table takes about 1.5 KB, plus as much per hundred moves. Schemas of a hundred
// properties fill a few thousand.
constexpr size_t kManyMoves = size_t{1} << 13, kMaxMoves = size_t{1} << 15;
constexpr size_t kManyItems = size_t{1} << 20, kMaxItems = size_t{1} << 22;

}  // namespace

SetId Matcher::Start() {
  std::vector<Item> items = {{grammar_.rule(grammar_.root()).start, ItemSets::kEnd}};
  return Close(items);
}

SetId Matcher::Steps(SetId from, std::string_view bytes) {
  for (const char c : bytes) {
    if (from == ItemSets::kNothing) break;
    from = Step(from, static_cast<uint8_t>(c));
  }
  return from;
}

bool Matcher::Has(SetId set, StateId at) const {
  // The two pseudo-states are the largest, so they come last.
  const std::span<const Item> items = Items(set);
  for (size_t i = items.size(); i-- > 0 && items[i].at >= kEscape;) {
    if (items[i].at == at) return true;
  }
  return false;
}

std::optional<uint8_t> Matcher::OnlyByte(SetId set) {
  if (MayEnd(set)) return std::nullopt;
  const std::vector<Move>& moves = MovesOf(set).all;
  if (moves.empty()) return std::nullopt;
  const uint8_t byte = moves[0].low;
  for (const Move& move : moves) {
    if (move.low != byte || move.high != byte) return std::nullopt;
  }
  return byte;
}

bool Matcher::IsFull() const { return n_moves_ > kManyMoves || sets_.n_items() > kManyItems; }

void Matcher::CheckSize() const {
  if (n_moves_ > kMaxMoves || sets_.n_items() > kMaxItems) {
    throw Error("the grammar is too ambiguous: a text can be read in too many ways");
  }
}

SetId Matcher::Forget(SetId kept) {
  moves_.clear();
  n_moves_ = 0;
  const SetId renamed = sets_.Forget(kept);
  CheckSize();
  return renamed;
}

SetId Matcher::Resolve(SetId set) {
  std::vector<Item> items(Items(set).begin(), Items(set).end());
  return Close(items);
}

// From states to the bytes and calls that come next: past forks, calls that may be empty, and ends.
SetId Matcher::Close(std::vector<Item>& items) {
  seen_.clear();
  todo_.clear();
  closed_.clear();
  const auto push = [&](Item item) {
    if (item.at == kNone || !seen_.insert(uint64_t{item.at} << 32 | item.below).second) return;
    todo_.push_back(item);
  };
  for (const Item& item : items) push(item);
  while (!todo_.empty()) {
    const Item item = todo_.back();
    todo_.pop_back();
    if (item.at >= kEscape) {
      closed_.push_back(item);
      continue;
    }
    const State& state = grammar_.state(item.at);
    switch (state.kind) {
      case Kind::kFork:
        push({state.next, item.below});
        push({state.other, item.below});
        break;
      case Kind::kEnd:
        for (const Item& after : sets_[item.below]) push(after);
        break;
      case Kind::kCall:
        if (grammar_.rule(state.other).may_be_empty) push({state.next, item.below});
        [[fallthrough]];
      case Kind::kByte:
        closed_.push_back(item);
        break;
    }
  }
  const SetId id = sets_.Intern(closed_);
  CheckSize();
  return id;
}

Matcher::Moves& Matcher::MovesOf(SetId set) {
  if (moves_.size() <= set) moves_.resize(std::max(sets_.size(), size_t{set} + 1));
  if (moves_[set] == nullptr) {
    auto moves = std::make_unique<Moves>();
    moves->next.fill(kNotYet);
    Expand(set, *moves);
    moves_[set] = std::move(moves);
    n_moves_ += 1 + moves_[set]->all.size() * sizeof(Move) / sizeof(Moves);
    CheckSize();
  }
  return *moves_[set];
}

// The bytes that may come. A rule that several items call here is entered once, with the
// continuations of all its callers below it. All callers are known by then, since rules are entered
// in order, and a rule that may begin with it has a lower order.
void Matcher::Expand(SetId set, Moves& moves) {
  std::map<std::pair<uint32_t, RuleId>, std::vector<Item>> calls;  // by order
  const auto take = [&](StateId at, SetId below) {
    const State& state = grammar_.state(at);
    if (state.kind == Kind::kByte) {
      moves.all.push_back({state.low, state.high, {state.next, below}});
      return;
    }
    std::vector<Item>& callers = calls[{grammar_.rule(state.other).order, state.other}];
    if (grammar_.state(state.next).kind != Kind::kEnd) {
      callers.push_back({state.next, below});
    } else {  // a tail call: nothing remains in the caller, so nothing is stacked
      callers.insert(callers.end(), sets_[below].begin(), sets_[below].end());
    }
  };
  for (const Item& item : sets_[set]) {
    if (item.at < kEscape) take(item.at, item.below);
  }
  while (!calls.empty()) {
    const auto call = calls.extract(calls.begin());
    const SetId below = sets_.Intern(call.mapped());
    for (const StateId at : grammar_.rule(call.key().second).first) take(at, below);
  }
}

SetId Matcher::Find(SetId from, uint8_t byte) {
  Moves& moves = MovesOf(from);
  std::vector<Item> after;
  for (const Move& move : moves.all) {
    if (move.low <= byte && byte <= move.high) after.push_back(move.after);
  }
  const SetId to = after.empty() ? ItemSets::kNothing : Close(after);
  return moves.next[byte] = to;
}

}  // namespace grammar
