#include "tokenizer/word_merger.h"

namespace tokenizer {

void WordMerger::Merge(const std::vector<TokenId>& ids, std::vector<TokenId>& out) {
  symbols_.clear();
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto at = static_cast<int32_t>(i);
    symbols_.push_back(
        {ids[i], at - 1, at + 1 < static_cast<int32_t>(ids.size()) ? at + 1 : -1, kNoMerge});
  }
  for (size_t i = 0; i + 1 < symbols_.size(); ++i) QueuePair(static_cast<int32_t>(i));
  while (!queue_.empty()) {
    const uint64_t pair = queue_.top();
    queue_.pop();
    const auto rank = static_cast<Rank>(pair >> 32);
    const auto left = static_cast<int32_t>(pair & UINT32_MAX);
    if (at(left).rank == rank) MergePair(left, rank);
  }
  for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) out.push_back(at(i).id);
}

// Looks up the pair of `left` and the symbol after it.
void WordMerger::QueuePair(int32_t left) {
  Symbol& symbol = at(left);
  symbol.rank = symbol.next < 0 ? kNoMerge : merges_.Find(symbol.id, at(symbol.next).id);
  if (symbol.rank != kNoMerge) {
    queue_.push(uint64_t{symbol.rank} << 32 | static_cast<uint32_t>(left));
  }
}

void WordMerger::MergePair(int32_t left, Rank rank) {
  Symbol& symbol = at(left);
  Symbol& gone = at(symbol.next);
  symbol.id = merges_.Result(rank);
  symbol.next = gone.next;
  gone.rank = kNoMerge;
  if (symbol.next >= 0) at(symbol.next).previous = left;
  QueuePair(left);
  if (symbol.previous >= 0) QueuePair(symbol.previous);
}

}  // namespace tokenizer
