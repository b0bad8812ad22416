// The algorithm of byte-pair encoding: merges the symbols of a word into tokens, the pair with the
// lowest rank first. That is the pair's place in the file's list of merges; SPM ranks by scores.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "tokenizer/merge_table.h"

namespace tokenizer {

// No language has longer words. They are cut, since a word takes about 40 bytes of memory per byte.
inline constexpr size_t kMaxMergedBytes = size_t{1} << 20;

// A symbol of a word: a token, or a character without one.
struct Symbol {
  TokenId id;              // -1: none
  int32_t begin, end;      // bytes of the word; unused where pairs are found by their ids
  int32_t previous, next;  // -1: none
  Rank rank;               // rank of this and the next symbol's pair; kNoMerge also if removed
  TokenId joined = -1;     // the pair's token, where Pairs looks it up by its text
};

// The pairs of a list of merges.
class ListedPairs {
 public:
  explicit ListedPairs(const MergeTable& merges) : merges_(merges) {}
  Rank Find(const Symbol& left, const Symbol& right) const {
    return merges_.Find(left.id, right.id);
  }
  TokenId Result(const Symbol& left, const Symbol&) const { return merges_.Result(left.rank); }

 private:
  const MergeTable& merges_;
};

// A word is a linked list of symbols. The pair of neighbours with the lowest rank merges first; of
// equal ranks the leftmost. All pairs that may merge are in a priority queue; a pair that has
// changed since it was queued is skipped. n symbols take O(n log n). Pairs says which two may
// merge: Find() gives the rank of a pair, or kNoMerge, and Result() the token of a pair found.
template <class Pairs = ListedPairs>
class WordMerger {
 public:
  explicit WordMerger(Pairs pairs) : pairs_(std::move(pairs)) {}

  Pairs& pairs() { return pairs_; }
  void Clear() { symbols_.clear(); }
  // Adds a symbol to the word, which has at most kMaxMergedBytes of them.
  void Add(TokenId id, size_t begin = 0, size_t end = 0) {
    const auto i = static_cast<int32_t>(symbols_.size());
    if (i > 0) symbols_.back().next = i;
    symbols_.push_back(
        {id, static_cast<int32_t>(begin), static_cast<int32_t>(end), i - 1, -1, kNoMerge});
  }

  // Merges the symbols until nothing merges, and calls `use` for each that remains.
  template <class Use>
  void Merge(const Use& use) {
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) QueuePair(static_cast<int32_t>(i));
    while (!queue_.empty()) {
      const uint64_t pair = queue_.top();
      queue_.pop();
      const auto rank = static_cast<Rank>(pair >> 32);
      const auto left = static_cast<int32_t>(pair & UINT32_MAX);
      if (at(left).rank == rank) MergePair(left);
    }
    for (int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = at(i).next) use(at(i));
  }

  // Merges the tokens `ids` and appends the result to `out`. An id of -1 merges with nothing if
  // pairs are found by their ids.
  void Merge(const std::vector<TokenId>& ids, std::vector<TokenId>& out) {
    Clear();
    for (const TokenId id : ids) Add(id);
    Merge([&](const Symbol& symbol) { out.push_back(symbol.id); });
  }

 private:
  Symbol& at(int32_t i) { return symbols_[static_cast<size_t>(i)]; }

  // Looks up the pair of `left` and the symbol after it.
  void QueuePair(int32_t left) {
    Symbol& symbol = at(left);
    symbol.rank = symbol.next < 0 ? kNoMerge : pairs_.Find(symbol, at(symbol.next));
    if (symbol.rank != kNoMerge) {
      queue_.push(uint64_t{symbol.rank} << 32 | static_cast<uint32_t>(left));
    }
  }

  void MergePair(int32_t left) {
    Symbol& symbol = at(left);
    Symbol& gone = at(symbol.next);
    symbol.id = pairs_.Result(symbol, gone);
    symbol.end = gone.end;
    symbol.next = gone.next;
    gone.rank = kNoMerge;
    if (symbol.next >= 0) at(symbol.next).previous = left;
    QueuePair(left);
    if (symbol.previous >= 0) QueuePair(symbol.previous);
  }

  Pairs pairs_;
  std::vector<Symbol> symbols_;
  // rank << 32 | position of the left symbol, lowest first
  std::priority_queue<uint64_t, std::vector<uint64_t>, std::greater<>> queue_;
};

}  // namespace tokenizer
