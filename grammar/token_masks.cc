#include "grammar/token_masks.h"

#include <algorithm>
#include <utility>

namespace grammar {
namespace {

using tokenizer::TokenId;

// A mask takes 16 KB for a vocabulary of 128 thousand tokens.
constexpr size_t kMaxMasks = 512;
// A set with more groups than this is walked as a whole.
constexpr size_t kMaxGroups = 4;

void Allow(TokenId id, TokenMasks::Mask& mask) {
  const auto bit = static_cast<size_t>(id);
  mask[bit / 64] |= uint64_t{1} << (bit % 64);
}

}  // namespace

TokenMasks::TokenMasks(const tokenizer::Vocabulary& vocab, const TokenTrie& trie, Matcher& matcher)
    : vocab_(vocab), trie_(trie), matcher_(matcher), n_words_((vocab.size() + 63) / 64) {}

void TokenMasks::Forget() {
  masks_.clear();
  locals_.clear();
}

std::span<const uint64_t> TokenMasks::Of(SetId set) {
  if (const auto known = masks_.find(set); known != masks_.end()) return known->second;
  if (masks_.size() == kMaxMasks) masks_.clear();
  Mask mask(n_words_);
  Make(set, mask);
  return masks_[set] = std::move(mask);
}

void TokenMasks::Make(SetId set, Mask& mask) {
  if (matcher_.MayEnd(set)) {
    for (const TokenId id : vocab_.eog) Allow(id, mask);
  }
  // A group: items of one rule, called from one place.
  std::vector<Item> items(matcher_.Items(set).begin(), matcher_.Items(set).end());
  std::erase_if(items, [](const Item& item) { return item.at == kAccept; });
  std::ranges::stable_sort(items, {}, &Item::below);
  std::vector<std::span<const Item>> groups;
  for (size_t i = 0; i < items.size();) {
    size_t end = i;
    while (end < items.size() && items[end].below == items[i].below) ++end;
    groups.push_back(std::span(items).subspan(i, end - i));
    i = end;
  }
  if (groups.size() > kMaxGroups) {
    return Walk(0, static_cast<uint32_t>(trie_.size()), set, mask, nullptr);
  }
  for (const std::span<const Item> group : groups) MakeGroup(group, mask);
}

void TokenMasks::MakeGroup(std::span<const Item> group, Mask& mask) {
  // The rows' first positions replace the items: equal for tokens of at most `equal` bytes.
  uint32_t equal = TokenTrie::kMaxBytes;
  // A named token has two lengths, as text and by its name: then each position is walked.
  const bool has_names = !matcher_.grammar().tokens().empty();
  std::vector<Item> alone, first;
  for (const Item& item : group) {
    alone.push_back({item.at, ItemSets::kUnknown});
    first.push_back(alone.back());
    const Repetition* const row = matcher_.grammar().FindRepetition(item.at);
    if (row == nullptr || row->first == row->call || has_names) continue;
    first.back().at = row->first;
    equal = std::min(equal, row->left - 1);
  }
  const Local& local = LocalOf(matcher_.Intern(first));
  std::vector<uint32_t> escapes = local.escapes;
  if (equal >= trie_.longest()) {
    for (size_t i = 0; i < n_words_; ++i) mask[i] |= local.allowed[i];
  } else {
    const auto n_bytes = static_cast<uint8_t>(equal);
    const Mask& shorter = UpTo(n_bytes);
    for (size_t i = 0; i < n_words_; ++i) mask[i] |= local.allowed[i] & shorter[i];
    std::erase_if(escapes, [&](uint32_t node) { return trie_[node].depth > n_bytes; });
    Walk(0, static_cast<uint32_t>(trie_.size()), matcher_.Intern(alone), mask, &escapes, n_bytes);
  }
  if (escapes.empty()) return;
  const SetId after = matcher_.Resolve(group[0].below);
  for (const uint32_t node : escapes) Walk(node + 1, trie_[node].end, after, mask, nullptr);
}

const TokenMasks::Mask& TokenMasks::UpTo(uint8_t n_bytes) {
  const auto [known, is_new] = up_to_.try_emplace(n_bytes);
  if (!is_new) return known->second;
  known->second.resize(n_words_);
  for (size_t i = 0; i < trie_.size(); ++i) {
    if (trie_[i].depth > n_bytes) continue;
    for (const TokenId id : trie_.Tokens(i)) Allow(id, known->second);
  }
  return known->second;
}

const TokenMasks::Local& TokenMasks::LocalOf(SetId set) {
  if (const auto known = locals_.find(set); known != locals_.end()) return known->second;
  if (locals_.size() == kMaxMasks) locals_.clear();
  Local local = {.allowed = Mask(n_words_), .escapes = {}};
  Walk(0, static_cast<uint32_t>(trie_.size()), set, local.allowed, &local.escapes);
  return locals_[set] = std::move(local);
}

void TokenMasks::Walk(uint32_t begin, uint32_t end, SetId from, Mask& mask,
                      std::vector<uint32_t>* escapes, uint8_t deeper_than) {
  path_[begin < end ? trie_[begin].depth - 1 : 0] = from;
  for (uint32_t i = begin; i < end;) {
    const TokenTrie::Node& node = trie_[i];
    const SetId set = node.deepest > deeper_than
                          ? matcher_.Step(path_[node.depth - size_t{1}], node.byte)
                          : ItemSets::kNothing;
    if (set == ItemSets::kNothing) {
      i = node.end;
      continue;
    }
    path_[node.depth] = set;
    for (const TokenId id : trie_.Tokens(i)) Allow(id, mask);
    if (escapes != nullptr && node.depth > deeper_than && i + 1 < node.end &&
        matcher_.Escapes(set)) {
      escapes->push_back(i);
    }
    ++i;
  }
}

}  // namespace grammar
