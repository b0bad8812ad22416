// The algorithm of byte-pair encoding: merges the symbols of a word into tokens.
#ifndef PRONK_TOKENIZER_WORD_MERGER_H_
#define PRONK_TOKENIZER_WORD_MERGER_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "tokenizer/merge_table.h"

namespace tokenizer {

// Longer words (of no language) are split, to limit memory: some 40 bytes per byte of the word.
inline constexpr size_t kMaxWord = size_t{1} << 20;

// A word is a linked list of symbols. The pair of neighbours with the lowest rank merges first; of
// equal ranks the leftmost. All pairs that may merge are in a priority queue; a pair that has
// changed since it was queued is skipped. n symbols take O(n log n).
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& merges) : merges_(merges) {}

  // Replaces symbols by merged ones until nothing merges, and appends the rest to `out`. A symbol
  // of -1 (one without a token) merges with nothing. At most kMaxWord symbols.
  void Merge(const std::vector<TokenId>& ids, std::vector<TokenId>& out) {
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

 private:
  struct Symbol {
    TokenId id;
    int32_t previous, next;  // -1: none
    Rank rank;               // of the pair of this and the next symbol; kNoMerge also if removed
  };
  Symbol& at(int32_t i) { return symbols_[static_cast<size_t>(i)]; }

  // Looks up the pair of `left` and the symbol after it.
  void QueuePair(int32_t left) {
    Symbol& symbol = at(left);
    symbol.rank = symbol.next < 0 ? kNoMerge : merges_.Find(symbol.id, at(symbol.next).id);
    if (symbol.rank != kNoMerge) {
      queue_.push(uint64_t{symbol.rank} << 32 | static_cast<uint32_t>(left));
    }
  }

  void MergePair(int32_t left, Rank rank) {
    Symbol& symbol = at(left);
    Symbol& gone = at(symbol.next);
    symbol.id = merges_.Result(rank);
    symbol.next = gone.next;
    gone.rank = kNoMerge;
    if (symbol.next >= 0) at(symbol.next).previous = left;
    QueuePair(left);
    if (symbol.previous >= 0) QueuePair(symbol.previous);
  }

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  // rank << 32 | position of the left symbol, lowest first
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_WORD_MERGER_H_
