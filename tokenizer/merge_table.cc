#include "tokenizer/merge_table.h"

#include <bit>

namespace tokenizer {

MergeTable::MergeTable(std::span<const Merge> merges)
    : slots_(std::bit_ceil(merges.size() + merges.size() / 2 + 1)) {
  constexpr size_t kAhead = 16;  // entries are asked for from memory so long before their turn
  results_.reserve(merges.size());
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i + kAhead < merges.size()) {
      const Merge& later = merges[i + kAhead];
      __builtin_prefetch(&slots_[Home(later.left, later.right)]);
    }
    Slot& slot = slots_[Locate(merges[i].left, merges[i].right)];
    if (slot.left < 0) slot = {merges[i].left, merges[i].right, static_cast<Rank>(i)};
    results_.push_back(merges[i].result);
  }
}

size_t MergeTable::Home(TokenId left, TokenId right) const {
  const uint64_t pair = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  return hash_(pair) & (slots_.size() - 1);
}

size_t MergeTable::Locate(TokenId left, TokenId right) const {
  size_t at = Home(left, right);
  while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) {
    at = (at + 1) & (slots_.size() - 1);
  }
  return at;
}

Rank MergeTable::Find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[Locate(left, right)];
  return slot.left < 0 ? kNoMerge : slot.rank;
}

}  // namespace tokenizer
