// Attention as in the papers, one number at a time in double: the definition, and the tests'
// oracle.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

// Writes the attention weights of one query of `key_length` numbers, weights[p] = softmax_p(score),
// for the n keys that it sees, which are key_stride floats apart. With a sink (or null) the weights
// sum to less than 1; the rest belongs to the sink. `slope` and `sink` stand in for params.slopes
// and params.sinks: key p is n_before - p keys before the query, and its score is lowered by slope
// times that.
void AttentionWeights(const float* q, const float* keys, size_t n, size_t key_length,
                      size_t key_stride, const AttentionParams& params, const float* sink,
                      double* weights, double slope = 0, size_t n_before = 0);

// Writes the cached key of one head at one position to out[key_length].
void ReadCachedKey(const KvLayer& cache, size_t head, size_t position, float* out);

struct AttentionShape {
  size_t n_heads, n_kv_heads, key_length, value_length;
};

// The exact result of Attend() (attention.h), for keys [n_positions][n_kv_heads][key_length] and
// values [n_positions][n_kv_heads][value_length] in the order of positions; without v, values are
// the first numbers of keys.
void AttentionReference(const AttentionShape& shape, const float* q, const float* k, const float* v,
                        size_t n_tokens, size_t first_position, const AttentionParams& params,
                        double* out);

}  // namespace kernels
