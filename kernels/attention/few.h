// Attention for one token or a few, see few.cc. Internal to kernels/.
#ifndef PRONK_KERNELS_ATTENTION_FEW_H_
#define PRONK_KERNELS_ATTENTION_FEW_H_

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

// Queries of a block, at most: tokens times some of the heads that share a key-value head.
constexpr size_t kBlockQueries = 64;

// A block of queries and the positions [begin, end) of keys, as far as the queries see them.
struct AttentionBlock {
  KvType type;
  const std::byte* k;  // [capacity][key_length] of one key-value head
  const std::byte* v;  // [capacity][value_stride]
  size_t capacity;
  size_t key_length;
  size_t value_length;
  size_t value_stride;  // a value is the first value_length of so many numbers
  const float* q;       // the first head of the first token; [n_heads][key_length] for each token
  size_t q_stride;      // floats from token to token
  size_t n_tokens;      // n_tokens * n_heads <= kBlockQueries
  size_t n_heads;
  size_t first_pos;  // of the first token
  size_t begin;      // a multiple of kKvTile
  size_t end;
  AttentionParams params;  // sinks: those of the block's heads; taken where a query sees no key
                           // before `begin`
  // For each query its largest score, the sum over its keys of exp(score - largest), and that of
  // exp(score - largest) * v, not yet divided by the sum. A query that sees none of the keys gets a
  // sum of zero.
  float* max;         // the first head of the first token; [n_heads] for each token
  float* sum;         // likewise
  size_t sum_stride;  // floats from token to token
  float* out;         // likewise, [n_heads][value_length]
  size_t out_stride;
};

void AttendBlock(const AttentionBlock& block);

}  // namespace kernels

#endif  // PRONK_KERNELS_ATTENTION_FEW_H_
