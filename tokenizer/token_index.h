// From a token's spelling to its id: a hash table of ids, built once when a file is opened.
//
// An entry is an id and half of its hash; the spelling itself is looked up in the vocabulary. So
// 128,000 tokens cost two megabytes and a few milliseconds, half of what std::unordered_map takes.
#ifndef PRONK_TOKENIZER_TOKEN_INDEX_H_
#define PRONK_TOKENIZER_TOKEN_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/hash.h"

namespace tokenizer {

class TokenIndex {
 public:
  // `tokens` must outlive the index; at most INT32_MAX of them. Where several tokens are spelt the
  // same, the last one is found.
  explicit TokenIndex(const std::vector<std::string_view>& tokens);

  // The id of the token spelt exactly so, or -1.
  int32_t Find(std::string_view text) const;

 private:
  struct Slot {
    uint32_t tag = 0;  // the upper half of the hash: most mismatches are seen without the text
    int32_t id = -1;   // -1: free
  };
  // The slot with this text, or the free one where it would go.
  size_t Locate(std::string_view text, uint64_t hash) const;

  const std::vector<std::string_view>* tokens_;
  SeededHash hash_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds full
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_TOKEN_INDEX_H_
