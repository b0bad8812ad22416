// Walks the trie of tokens together with a grammar.
#include "grammar/token_masks.h"

#include <algorithm>
#include <map>
#include <utility>

namespace grammar {
namespace {

using tokenizer::TokenId;

// A mask takes 16 KB for a vocabulary of 128 thousand tokens.
constexpr size_t kMaxMasks = 512;
// A set with more groups than this is walked as a whole.
constexpr size_t kMaxGroups = 3;
// This close to the end of a repetition, most tokens reach it and are walked.
constexpr uint32_t kFewBytes = 3;

void Allow(TokenId id, TokenMasks::Mask& mask) {
  const auto bit = static_cast<size_t>(id);
  mask[bit / 64] |= uint64_t{1} << (bit % 64);
}

}  // namespace

TokenMasks::TokenMasks(const tokenizer::Vocabulary& vocab, const TokenTrie& trie, Matcher& matcher)
    : vocab_(vocab),
      trie_(trie),
      matcher_(matcher),
      n_words_((vocab.size() + 63) / 64),
      runs_(matcher.grammar()) {}

void TokenMasks::Forget() {
  masks_.clear();
  locals_.clear();
  run_of_.clear();
}

std::span<const uint64_t> TokenMasks::Of(SetId set) {
  if (const auto known = masks_.find(set); known != masks_.end()) return known->second;
  if (masks_.size() == kMaxMasks) masks_.clear();
  Mask mask(n_words_);
  Make(set, mask);
  return masks_[set] = std::move(mask);
}

// False for single characters, and for rules with two fixed first bytes, as in keys: few tokens
// begin with them.
bool TokenMasks::IsWorthAMask(RuleId rule) {
  const Grammar& grammar = matcher_.grammar();
  const auto is_certain = [&](StateId s) {
    return grammar.state(s).kind == State::Kind::kByte &&
           grammar.state(s).low == grammar.state(s).high;
  };
  const std::vector<Place>& first = grammar.rule(rule).first;
  if (first.size() == 1 && is_certain(first[0].at) && is_certain(grammar.state(first[0].at).next))
    return false;
  return !runs_.IsCharacter(rule);
}

void TokenMasks::Make(SetId set, Mask& mask) {
  if (matcher_.MayEnd(set)) {
    for (const TokenId id : vocab_.eog) Allow(id, mask);
  }
  // A group: items of rules called from one place. Calls are grouped by what they call.
  std::vector<Item> items;
  std::map<RuleId, std::vector<Item>> calls;
  const Grammar& grammar = matcher_.grammar();
  for (const Item& item : matcher_.Items(set)) {
    if (item.at == kAccept) continue;
    const State* const state = item.at < kEscape ? &grammar.state(item.at) : nullptr;
    if (state != nullptr && state->kind == State::Kind::kCall &&
        grammar.LoopOf(item.at) == nullptr && IsWorthAMask(state->other)) {
      calls[state->other].push_back({state->next, item.data, item.below});
    } else {
      items.push_back(item);
    }
  }
  std::ranges::stable_sort(items, {}, &Item::below);
  std::vector<std::span<const Item>> groups;
  for (size_t i = 0; i < items.size();) {
    size_t end = i;
    while (end < items.size() && items[end].below == items[i].below) ++end;
    groups.push_back(std::span(items).subspan(i, end - i));
    i = end;
  }
  if (groups.size() > kMaxGroups) return WalkAll(set, mask);
  if (!calls.empty()) MakeCalls(calls, mask);
  for (const std::span<const Item> group : groups) MakeGroup(group, mask);
}

// One walk for all rules. Each has a marker below it, which shows where this rule may end.
void TokenMasks::MakeCalls(std::map<RuleId, std::vector<Item>>& calls, Mask& mask) {
  std::vector<Item> start;
  for (const auto& [rule, callers] : calls) {
    std::vector<Item> mark = {{kEscape, rule, ItemSets::kNothing}};
    start.push_back({matcher_.grammar().rule(rule).start, 0, matcher_.Intern(mark)});
  }
  const Local& local = LocalOf(matcher_.Close(start));
  for (size_t i = 0; i < n_words_; ++i) mask[i] |= local.allowed[i];
  for (const auto& [node, set] : local.escapes) {
    std::vector<Item> after;
    for (const Item& item : matcher_.Items(set)) {
      if (item.at != kEscape) continue;
      const std::vector<Item>& callers = calls[item.data];
      after.insert(after.end(), callers.begin(), callers.end());
    }
    Walk(node + 1, trie_[node].end, matcher_.Close(after), mask);
  }
}

void TokenMasks::MakeGroup(std::span<const Item> group, Mask& mask) {
  // `first` has the items with the smallest counts that allow the same tokens of at most `equal`
  // bytes.
  uint32_t equal = TokenTrie::kMaxBytes;
  // A named token has two lengths, as text and as name: then each position is walked.
  const bool has_names = !matcher_.grammar().tokens().empty();
  std::vector<Item> alone, first;
  for (const Item& item : group) {
    alone.push_back({item.at, item.data, ItemSets::kUnknown});
    first.push_back(alone.back());
    const Loop* const loop = item.at < kEscape ? matcher_.grammar().LoopOf(item.at) : nullptr;
    if (loop == nullptr || has_names) continue;
    if (item.data < loop->min) {  // no token of at most `equal` bytes is enough
      first.back().data = 0;
      equal = std::min(equal, loop->min - 1 - item.data);
    } else {
      first.back().data = loop->min;
      if (loop->max != kNone)
        equal = std::min(equal, loop->max - std::min(item.data + 1, loop->max));
    }
  }
  if (equal < kFewBytes) {
    first = alone;
    equal = TokenTrie::kMaxBytes;
  }
  const Local& local = LocalOf(matcher_.Intern(first));
  Local nearer = {.allowed = {}, .escapes = local.escapes};
  if (equal >= trie_.longest()) {
    for (size_t i = 0; i < n_words_; ++i) mask[i] |= local.allowed[i];
  } else {
    const auto n_bytes = static_cast<uint8_t>(equal);
    Mask shorter = local.allowed;
    for (const TokenId id : trie_.LongerThan(n_bytes)) {
      const auto bit = static_cast<size_t>(id);
      shorter[bit / 64] &= ~(uint64_t{1} << (bit % 64));
    }
    for (size_t i = 0; i < n_words_; ++i) mask[i] |= shorter[i];
    std::erase_if(nearer.escapes, [&](const auto& at) { return trie_[at.first].depth > n_bytes; });
    WalkAll(matcher_.Intern(alone), mask, &nearer, n_bytes);
  }
  if (nearer.escapes.empty()) return;
  const SetId after = matcher_.Resolve(group[0].below);
  for (const auto& [node, set] : nearer.escapes) Walk(node + 1, trie_[node].end, after, mask);
}

const TokenMasks::Local& TokenMasks::LocalOf(SetId set) {
  if (const auto known = locals_.find(set); known != locals_.end()) return known->second;
  if (locals_.size() == kMaxMasks) locals_.clear();
  Local local = {.allowed = Mask(n_words_), .escapes = {}};
  WalkAll(set, local.allowed, &local);
  return locals_[set] = std::move(local);
}

const Run& TokenMasks::RunOf(SetId set) {
  if (run_of_.size() <= set) run_of_.resize(set + size_t{1} + set / 2);
  if (!run_of_[set]) run_of_[set] = runs_.Of(matcher_.Items(set));
  return *run_of_[set];
}

void TokenMasks::Enter(size_t depth, SetId set) {
  path_[depth] = {set, RunOf(set), &matcher_.NextOf(set)};
}

void TokenMasks::WalkAll(SetId from, Mask& mask, Local* local, uint8_t deeper_than) {
  const Run run = RunOf(from);
  for (const TokenTrie::Part& part : trie_.parts()) {
    if ((part.kinds & ~run.kinds) == 0 && part.longest <= run.length) {
      for (size_t i = 0; i < n_words_; ++i) mask[i] |= part.tokens[i];
    } else {
      Walk(part.begin, part.end, from, mask, local, deeper_than);
    }
  }
}

void TokenMasks::Walk(uint32_t begin, uint32_t end, SetId from, Mask& mask, Local* local,
                      uint8_t deeper_than) {
  if (begin < end) Enter(trie_[begin].depth - size_t{1}, from);
  for (uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = trie_[i];
    if (node.deepest <= deeper_than) {
      i = node.end;
      continue;
    }
    const Level& above = path_[node.depth - size_t{1}];
    if ((node.kinds & ~above.run.kinds) == 0 && above.run.length + node.depth > node.deepest) {
      for (const TokenId id : trie_.Branch(i)) Allow(id, mask);
      i = node.end;
      continue;
    }
    SetId set = (*above.next)[node.byte];
    if (set == Matcher::kNotYet) set = matcher_.Step(above.set, node.byte);
    if (set == ItemSets::kNothing) {
      i = node.end;
      continue;
    }
    for (const TokenId id : trie_.Tokens(i)) Allow(id, mask);
    if (i + 1 < node.end) {
      Enter(node.depth, set);
      if (local != nullptr && node.depth > deeper_than && matcher_.Escapes(set)) {
        local->escapes.emplace_back(i, set);
      }
    }
    ++i;
  }
}

}  // namespace grammar
