// A query tile, some queries that read the same keys: passed by attention.cc to key_tiles.cc.
// Internal to kernels/.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

constexpr size_t kTileQueries = 256;  // queries of a query tile, at most

// Some tokens, with some of the heads that share a key-value head.
struct QueryTile {
  KvHead kv;
  // q and out begin with the first head of the first token.
  const float* q;     // [n_heads][key_length] for each token
  float* out;         // [n_heads][value_length] for each token
  size_t q_stride;    // floats of q from token to token
  size_t out_stride;  // floats of out from token to token
  size_t n_tokens;
  size_t n_heads;
  size_t first_position;   // position of the first token
  size_t end;              // positions of the text so far
  AttentionParams params;  // sinks and slopes begin with the first head's
};

// The keys of positions [begin, end), and where the sums of the queries over these keys go.
struct KeySpan {
  size_t begin;  // a multiple of kTileKeys
  size_t end;
  // [n_heads] for each token, from the first head of the first token on; or null.
  float* max = nullptr;   // the query's largest score
  float* sum = nullptr;   // the sum over the span's keys of exp(score - largest)
  size_t sum_stride = 0;  // floats of max and of sum from token to token
};

// out gets the sum over the span's keys of exp(score - largest) * v, divided by the sum of
// exp(score - largest) if span.sum is null. A query that sees no key of the span gets a sum of
// zero. A sink counts in the first span that the query sees.
//
// `batch_invariant`: there are at most kMaxInvariantTokens tokens, and the results are
// batch-invariant (kernels/README.md).
void AttendQueryTile(const QueryTile& query_tile, const KeySpan& span, bool batch_invariant);

// A row of numbers for each token, `stride` floats apart. A call may own only the first numbers of
// each row.
template <class T>
struct TokenRows {
  T* data;
  size_t stride;
};

// Attend() by the algorithm for batches, for any number of tokens.
void AttendBatch(ThreadPool& pool, const KvLayer& cache, const TokenRows<const float>& q,
                 const TokenRows<float>& out, size_t n_heads, size_t n_tokens,
                 size_t first_position, const AttentionParams& params);

}  // namespace kernels
