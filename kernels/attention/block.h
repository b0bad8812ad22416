// A block of queries, passed by attention.cc to few.cc and tiles.cc. Internal to kernels/.
#ifndef PRONK_KERNELS_ATTENTION_BLOCK_H_
#define PRONK_KERNELS_ATTENTION_BLOCK_H_

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

// The most queries of a block in few.cc and in tiles.cc.
constexpr size_t kBlockQueries = 64;
constexpr size_t kTileQueries = 256;

// Some tokens, with some of the heads that share a key-value head.
struct QueryBlock {
  KvHead kv;
  const float* q;   // the first head of the first token; [n_heads][key_length] for each token
  float* out;       // likewise, [n_heads][value_length]
  size_t q_stride;  // floats from token to token
  size_t out_stride;
  size_t n_tokens;
  size_t n_heads;
  size_t first_pos;        // of the first token
  size_t end;              // positions of the text so far
  AttentionParams params;  // sinks: those of the block's heads
};

// Positions [begin, end) of keys, and where the sums of the queries over these keys go.
struct KeyPart {
  size_t begin;  // a multiple of kKvTile
  size_t end;
  // For each query its largest score, and the sum over its keys of exp(score - largest).
  float* max;         // the first head of the first token; [n_heads] for each token
  float* sum;         // likewise
  size_t sum_stride;  // floats from token to token
};

// One token or a few (few.cc). out gets the sum over the part's keys of exp(score - largest) * v,
// not yet divided by the sum. A query that sees none of the keys gets a sum of zero. A sink counts
// in the first part that the query sees.
void AttendPart(const QueryBlock& block, const KeyPart& part);

// A batch (tiles.cc), against all keys.
void AttendTile(const QueryBlock& tile);

}  // namespace kernels

#endif  // PRONK_KERNELS_ATTENTION_BLOCK_H_
