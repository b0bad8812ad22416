#include "tokenizer/merge_table.h"

#include <bit>

namespace tokenizer {

MergeTable::MergeTable(size_t max_merges) : slots_(std::bit_ceil(max_merges + max_merges / 2 + 1)) {
  results_.reserve(max_merges);
}

size_t MergeTable::Locate(TokenId left, TokenId right) const {
  const size_t mask = slots_.size() - 1;
  const uint64_t pair = uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  size_t at = hash_(pair) & mask;
  while (slots_[at].left >= 0 && (slots_[at].left != left || slots_[at].right != right)) {
    at = (at + 1) & mask;
  }
  return at;
}

void MergeTable::Add(TokenId left, TokenId right, TokenId result) {
  Slot& slot = slots_[Locate(left, right)];
  if (slot.left < 0) slot = {left, right, static_cast<Rank>(results_.size())};
  results_.push_back(result);
}

Rank MergeTable::Find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[Locate(left, right)];
  return slot.left < 0 ? kNoMerge : slot.rank;
}

}  // namespace tokenizer
