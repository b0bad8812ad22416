// The merges of a byte-pair encoding: which two tokens may become one, and which merge goes first.
#ifndef PRONK_TOKENIZER_MERGE_TABLE_H_
#define PRONK_TOKENIZER_MERGE_TABLE_H_

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "tokenizer/hash.h"
#include "tokenizer/vocabulary.h"

namespace tokenizer {

// A merge's place in the file's list; lower ones go first.
using Rank = uint32_t;
inline constexpr Rank kNoMerge = std::numeric_limits<Rank>::max();

struct Merge {
  TokenId left, right, result;
};

class MergeTable {
 public:
  // In the order of their ranks; of a pair that is there twice the first counts.
  explicit MergeTable(std::span<const Merge> merges);

  // kNoMerge where the two do not merge.
  Rank Find(TokenId left, TokenId right) const;
  TokenId Result(Rank rank) const { return results_[rank]; }

 private:
  struct Slot {
    TokenId left = -1;  // -1: free
    TokenId right = -1;
    Rank rank = 0;
  };
  size_t Home(TokenId left, TokenId right) const;  // where the search for a pair begins
  size_t Locate(TokenId left, TokenId right) const;

  SeededHash hash_;
  std::vector<Slot> slots_;       // a power of two, at most two thirds full
  std::vector<TokenId> results_;  // by rank
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_MERGE_TABLE_H_
