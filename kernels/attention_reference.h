// Attention as it is written in the papers, one number at a time in double: the definition, and the
// oracle of the tests.
#ifndef PRONK_KERNELS_ATTENTION_REFERENCE_H_
#define PRONK_KERNELS_ATTENTION_REFERENCE_H_

#include <cstddef>

#include "kernels/attention.h"

namespace kernels {

struct AttentionShape {
  size_t n_heads, n_kv_heads, key_length, value_length;
};

// What Attention() approximates (attention.h), for keys [n_positions][n_kv_heads][key_length] and
// values [n_positions][n_kv_heads][value_length] that lie in the order of positions; without v,
// values are the first numbers of keys.
void AttentionReference(const AttentionShape& shape, const float* q, const float* k, const float* v,
                        size_t n_tokens, size_t first_pos, const AttentionParams& params,
                        double* out);

}  // namespace kernels

#endif  // PRONK_KERNELS_ATTENTION_REFERENCE_H_
