// A block of queries, passed by attention.cc to tiles.cc. Internal to kernels/.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

constexpr size_t kBlockQueries = 256;  // the most queries of a block

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
  AttentionParams params;  // sinks and slopes: those of the block's heads
};

// Positions [begin, end) of keys, and where the sums of the queries over these keys go.
struct KeyPart {
  size_t begin;  // a multiple of kKvTile
  size_t end;
  // For each query its largest score, and the sum over its keys of exp(score - largest); or null.
  float* max = nullptr;   // the first head of the first token; [n_heads] for each token
  float* sum = nullptr;   // likewise
  size_t sum_stride = 0;  // floats from token to token
};

// out gets the sum over the part's keys of exp(score - largest) * v; divided by the sum if part.sum
// is null. A query that sees none of the keys gets a sum of zero. A sink counts in the first part
// that the query sees.
//
// With up to kFewTokens tokens (`few`), each token's result has the same bits as alone.
void AttendQueries(const QueryBlock& block, const KeyPart& part, bool few);

// Rows of tokens, of which a call may own only a part; `stride` floats apart.
template <class T>
struct TokenRows {
  T* data;
  size_t stride;
};

// Attention() for any number of tokens, by tiles as in a batch.
void AttendBatch(Team& team, const KvLayer& cache, const TokenRows<const float>& q,
                 const TokenRows<float>& out, size_t n_heads, size_t n_tokens, size_t first_pos,
                 const AttentionParams& params);

}  // namespace kernels
