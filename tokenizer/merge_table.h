// The merges of a byte-pair encoding: which two tokens may become one, and which merge goes first.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "tokenizer/hash.h"
#include "tokenizer/table_memory.h"
#include "tokenizer/token_index.h"
#include "tokenizer/vocabulary.h"

namespace tokenizer {

// A merge's index in the file's list; lower ranks merge first.
using Rank = uint32_t;
inline constexpr Rank kNoMerge = std::numeric_limits<Rank>::max();

struct Merge {
  TokenId left, right, result;
};

class MergeTable {
 public:
  // Sorted by rank; of repeated pairs the first counts.
  explicit MergeTable(std::span<const Merge> merges);
  // An empty table with room for `most` merges.
  explicit MergeTable(size_t most);
  // Adds the merge of the next rank.
  void Add(const Merge& merge);

  // kNoMerge if the two do not merge.
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
  TableOf<Slot> slots_;           // a power of two, at most two thirds full
  std::vector<TokenId> results_;  // [rank]
};

// A file's merges (tokenizer.ggml.merges) by rank: "A B", where A, B and AB are spellings in
// `tokens`, which `index` finds. Throws gguf::Error for another form, no merges, or too many.
std::vector<Merge> ReadMerges(const gguf::Metadata& metadata,
                              const std::vector<std::string_view>& tokens, const TokenIndex& index);

}  // namespace tokenizer
