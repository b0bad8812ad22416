// Steps from a set of items by a byte, and which keys of an object may come.
#include "grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace grammar {
namespace {

using Kind = State::Kind;

// A set with its table takes about 1.5 KB, plus as much per hundred moves. Schemas of a hundred
// properties fill a few thousand. At most 24 MB of tables, 24 MB of items.
constexpr size_t kManyMoves = size_t{1} << 13, kMaxMoves = size_t{1} << 14;
constexpr size_t kManyItems = size_t{1} << 20, kMaxItems = size_t{1} << 21;
// Steps may visit kItemsOfStep items on average, and kMaxExcess more in total. Patterns and objects
// with hundreds of parses stay far below; a text whose number of parses grows with each byte does
// not.
constexpr size_t kItemsOfStep = size_t{1} << 12, kMaxExcess = size_t{1} << 23;
constexpr size_t kMaxItemsOfSet = size_t{1} << 18;
constexpr size_t kMaxKeySets = size_t{1} << 16;

[[noreturn]] void TooAmbiguous() {
  throw Error("the grammar is too ambiguous: a text can be read in too many ways");
}

}  // namespace

void Matcher::Charge(size_t n_items) {
  excess_ += n_items;
  if (excess_ > kMaxExcess) TooAmbiguous();
}

SetId Matcher::Start() {
  excess_ = 0;
  std::vector<Item> items = {{grammar_.rule(grammar_.root()).start, 0, ItemSets::kEnd}};
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

bool Matcher::OpensUnique(SetId set) {
  return std::ranges::any_of(MovesOf(set).all, &Move::opens_unique);
}

std::optional<uint8_t> Matcher::OnlyByte(SetId set) {
  const std::string only = FewBytes(set, 1);
  return only.size() == 1 ? std::optional(static_cast<uint8_t>(only[0])) : std::nullopt;
}

std::string Matcher::FewBytes(SetId set, size_t most) {
  std::string bytes;
  if (MayEnd(set)) return bytes;
  size_t n_space = 0;
  for (const Move& move : MovesOf(set).all) {
    for (unsigned byte = move.low; byte <= move.high; ++byte) {
      const auto c = static_cast<char>(byte);
      if (bytes.find(c) != bytes.npos) continue;
      bytes += c;
      n_space += c == ' ' || c == '\t' || c == '\n' || c == '\r';
      if (bytes.size() - n_space > most) return "";
    }
  }
  return bytes;
}

bool Matcher::AllowsOnly(SetId set, std::string_view bytes) {
  return !MayEnd(set) && std::ranges::all_of(MovesOf(set).all, [&](const Move& move) {
    for (unsigned byte = move.low; byte <= move.high; ++byte) {
      if (bytes.find(static_cast<char>(byte)) == bytes.npos) return false;
    }
    return true;
  });
}

bool Matcher::IsFull() const { return n_moves_ > kManyMoves || sets_.n_items() > kManyItems; }

void Matcher::CheckSize() const {
  if (n_moves_ > kMaxMoves || sets_.n_items() > kMaxItems) {
    TooAmbiguous();
  }
}

SetId Matcher::Forget(SetId kept) {
  moves_.clear();
  n_moves_ = 0;
  const SetId renamed = sets_.Forget(kept);
  Charge(sets_.n_items());
  CheckSize();
  return renamed;
}

SetId Matcher::Resolve(SetId set) {
  std::vector<Item> items(Items(set).begin(), Items(set).end());
  return Close(items);
}

// Follows states to the next bytes and calls: past forks, calls that may be empty, and ends.
SetId Matcher::Close(std::vector<Item>& items) {
  reached_.Clear();
  closed_.clear();
  counted_.clear();
  const auto push = [&](Item item) {
    Charge(1);
    if (item.at != kNone) reached_.Add(item);
    if (reached_.size() > kMaxItemsOfSet) TooAmbiguous();
  };
  for (const Item& item : items) push(item);
  for (size_t i = 0; i < reached_.size(); ++i) {
    const Item item = reached_[i];
    const auto [at, data, below] = item;
    if (at >= kEscape) {
      closed_.push_back(item);
      continue;
    }
    const State& state = grammar_.state(at);
    switch (state.kind) {
      case Kind::kFork:
        push({state.next, data, below});
        push({state.other, data, below});
        break;
      case Kind::kEnd:
        for (const Item& after : sets_[below]) push(after);
        break;
      case Kind::kCount: {
        // The repeated part may be empty: then a lower count allows everything that a higher one
        // does.
        if (state.low != 0) {
          const auto [counted, is_new] = counted_.try_emplace({at, below}, data);
          if (!is_new && counted->second <= data) break;
          counted->second = data;
        }
        push({state.next, std::min(data + 1, state.other), below});
        break;
      }
      case Kind::kAtLeast:
        if (data >= state.other) push({state.next, 0, below});
        break;
      case Kind::kBelow:
        if (data < state.other) push({state.next, data, below});
        break;
      case Kind::kMember: {
        const Members& members = grammar_.members(state.other);
        if (MayClose(members, *keys_[data]))
          push({data == 0 ? members.none : members.close, 0, below});
        if (!NextKeys(members, data).empty()) {
          push({data == 0 ? members.first : members.more, data, below});
        }
        break;
      }
      case Kind::kKey: {
        const Members& members = grammar_.members(state.other);
        for (const uint32_t key : NextKeys(members, data)) {
          push({key == kNone ? members.other : members.keys[key].start, data, below});
        }
        break;
      }
      case Kind::kSeen: {
        push({state.next, KeysWith(data, grammar_.members(state.other), SeenKey(state)), below});
        break;
      }
      case Kind::kCall:
        if (grammar_.rule(state.other).may_be_empty) push({state.next, data, below});
        [[fallthrough]];
      case Kind::kByte:
      case Kind::kText:
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
  std::map<std::pair<uint32_t, RuleId>, std::vector<Item>> calls;  // [order, rule]
  const auto take = [&](const Item& item) {
    const auto [at, data, below] = item;
    Charge(1);
    const State& state = grammar_.state(at);
    if (state.kind == Kind::kByte) {
      moves.all.push_back(
          {state.low, state.high, {state.next, data, below}, state.other == kOpensUnique});
      return;
    }
    if (state.kind == Kind::kText) {
      for (const auto& [low, high] : Plain()) {
        if (low >= 0x80) break;
        moves.all.push_back({static_cast<uint8_t>(low),
                             static_cast<uint8_t>(std::min<CodePoint>(high, 0x7F)),
                             {state.next, data, below}});
      }
    }
    std::vector<Item>& callers = calls[{grammar_.rule(state.other).order, state.other}];
    if (grammar_.state(state.next).kind != Kind::kEnd) {
      callers.push_back({state.next, data, below});
    } else {  // a tail call: nothing remains in the caller, so nothing is stacked
      Charge(sets_[below].size());
      callers.insert(callers.end(), sets_[below].begin(), sets_[below].end());
    }
    if (callers.size() > kMaxItemsOfSet) TooAmbiguous();
  };
  for (const Item& item : sets_[set]) {
    if (item.at < kEscape) take(item);
  }
  while (!calls.empty()) {
    const auto call = calls.extract(calls.begin());
    const SetId below = sets_.Intern(call.mapped());
    for (const auto& [at, data] : grammar_.rule(call.key().second).first) take({at, data, below});
  }
}

uint32_t Matcher::KeysWith(uint32_t keys, const Members& members, uint32_t key) {
  Keys with = *keys_[keys];
  if (key == kNone) {  // counted only as far as it matters
    with[0] = std::min<uint64_t>(with[0] + 1,
                                 members.max != kNone ? members.max : std::max(members.min, 1u));
  } else {
    if (with.size() < key / 64 + 2) with.resize(key / 64 + 2);
    with[key / 64 + 1] |= uint64_t{1} << (key % 64);
  }
  const auto [found, is_new] = key_numbers_.try_emplace(std::move(with), keys_.size());
  if (is_new) keys_.push_back(&found->first);
  if (keys_.size() > kMaxKeySets) TooAmbiguous();
  return found->second;
}

namespace {

bool HasKey(const std::vector<uint64_t>& keys, uint32_t key) {
  return key / 64 + 1 < keys.size() && (keys[key / 64 + 1] >> (key % 64) & 1) != 0;
}
uint64_t CountOf(const std::vector<uint64_t>& keys) {
  uint64_t n = keys[0];
  for (size_t i = 1; i < keys.size(); ++i) n += static_cast<uint64_t>(std::popcount(keys[i]));
  return n;
}

// The keys that an object still needs after the given keys and one more.
struct Missing {
  Missing(const Members& members, const std::vector<uint64_t>& keys, uint32_t key) {
    const auto has = [&](uint32_t k) { return k == key || HasKey(keys, k); };
    std::set<uint32_t> missing;
    std::vector<uint32_t> todo;
    const auto need = [&](uint32_t k) {
      if (!has(k) && missing.insert(k).second) todo.push_back(k);
    };
    for (uint32_t k = 0; k < members.keys.size(); ++k) {
      if (members.keys[k].required) need(k);
    }
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto& [from, to] : members.needs) {
        if (!has(from) && !missing.contains(from)) continue;
        const size_t before = missing.size();
        for (const uint32_t k : to) need(k);
        grows |= missing.size() > before;
      }
    }
    n = missing.size();
    for (const uint32_t k : missing) possible &= members.keys[k].possible;
    if (n > 0) first = *missing.begin();
  }
  size_t n = 0;
  uint32_t first = kNone;
  bool possible = true;
};
constexpr uint32_t kNoKey = kNone - 1;

}  // namespace

bool Matcher::MayClose(const Members& members, const Keys& keys) const {
  const Missing missing(members, keys, kNoKey);
  return missing.n == 0 && CountOf(keys) >= members.min;
}

std::vector<uint32_t> Matcher::NextKeys(const Members& members, uint32_t number) {
  const Keys& keys = *keys_[number];
  const auto n_keys = static_cast<uint32_t>(members.keys.size());
  const uint64_t count = CountOf(keys);
  std::vector<uint32_t> next;
  if (count >= members.max) return next;
  uint32_t from = 0;
  if (members.ordered) {
    from = keys[0] > 0 ? n_keys : 0;
    for (uint32_t k = n_keys; from == 0 && k-- > 0;) from = HasKey(keys, k) ? k + 1 : 0;
  }
  uint64_t n_left = 0;  // how many may come from here on
  for (uint32_t k = from; k < n_keys; ++k) n_left += members.keys[k].possible && !HasKey(keys, k);
  const bool is_simple = members.needs.empty();
  const Missing now(members, keys, kNoKey);
  const auto fits = [&](uint32_t key) {
    Missing missing = now;
    if (!is_simple) {
      missing = Missing(members, keys, key);
    } else if (key != kNone && members.keys[key].required) {
      missing.n -= 1;
    }
    if (!missing.possible || count + 1 + missing.n > members.max) return false;
    const bool has_other = members.other != kNone;
    if (!members.ordered) return has_other || count + n_left >= members.min;
    const uint32_t after = key == kNone ? n_keys : key + 1;
    if (missing.n > 0) {
      // Named keys come in order: a required one must not be skipped.
      const uint32_t first = missing.first == key ? kNone : missing.first;
      if (first != kNone && first < after) return false;
    }
    if (members.min == 0) return true;
    uint64_t n_after = 0;
    for (uint32_t k = after; k < n_keys; ++k) n_after += members.keys[k].possible;
    return has_other || count + 1 + n_after >= members.min;
  };
  for (uint32_t k = from; k < n_keys; ++k) {
    if (members.keys[k].possible && !HasKey(keys, k) && fits(k)) next.push_back(k);
  }
  if (members.other != kNone && fits(kNone)) next.push_back(kNone);
  return next;
}

SetId Matcher::Find(SetId from, uint8_t byte) {
  Moves& moves = MovesOf(from);
  excess_ -= std::min(excess_, kItemsOfStep);
  std::vector<Item> after;
  // The range of bytes around this one that lead to the same set.
  size_t first = 0, last = UINT8_MAX;
  for (const auto& [low, high, item, opens_unique] : moves.all) {
    if (low <= byte && byte <= high) after.push_back(item);
    first = std::max<size_t>(first, low <= byte ? low : 0);
    if (high < byte) first = std::max(first, high + size_t{1});
    if (high >= byte) last = std::min<size_t>(last, high);
    if (low > byte) last = std::min(last, low - size_t{1});
  }
  const SetId to = after.empty() ? ItemSets::kNothing : Close(after);
  std::fill(&moves.next[first], &moves.next[last] + 1, to);
  return to;
}

}  // namespace grammar
