// Attention over the key-value cache of one layer.
#pragma once

#include <cstddef>

#include "kernels/attention/kv_cache.h"
#include "kernels/threads/thread_pool.h"

namespace kernels {

// A layer's parameters besides its shapes.
struct AttentionParams {
  float scale = 1;  // multiplies q . k
  size_t window =
      0;  // a token at position p sees the keys p - window + 1 .. p; 0: every key up to p
  size_t ahead = 0;   // keys after p that the token also sees; SIZE_MAX: every key
  float softcap = 0;  // c: scores become c * tanh(score / c) (Gemma 2); 0: no cap
  // [n_heads] or null: the softmax of each query head has one more score, unscaled and without a
  // value (gpt-oss).
  const float* sinks = nullptr;
  // [n_heads] or null: the score of a key d positions before the query is lowered by d times this,
  // after the cap (ALiBi, Press et al. 2021).
  const float* slopes = nullptr;

  // The parameters of the heads from `head` on.
  AttentionParams From(size_t head) const {
    AttentionParams params = *this;
    if (sinks != nullptr) params.sinks += head;
    if (slopes != nullptr) params.slopes += head;
    return params;
  }
};

// The first position that a token at `pos` sees.
constexpr size_t FirstVisible(size_t pos, size_t window) {
  return window == 0 || pos < window ? 0 : pos + 1 - window;
}
// The last position that a token at `pos` sees in a text of `end` tokens so far.
constexpr size_t LastVisible(size_t pos, size_t ahead, size_t end) {
  return ahead < end - pos ? pos + ahead : end - 1;
}

// out[t][h] = softmax_p(score[t][h][p]) v[h'][p] over the positions p that token t, at position
// first_position + t, sees (window, ahead), where score[t][h][p] = scale * q[t][h] . k[h'][p], and
// query head h reads key-value head h' = h / (n_heads / n_kv_heads) (grouped-query attention,
// Ainslie et al. 2023). q is [n_tokens][n_heads][key_length], out
// [n_tokens][n_heads][value_length].
//
// The whole batch and the keys that its first token sees are in the cache already: either capacity
// >= first_position + n_tokens; or window > 0, capacity >= window + n_tokens - 1 and a multiple of
// kTileKeys.
//
// Tiles of keys share a running maximum and sum (Dao et al. 2022), so no buffer grows with the
// context, and keys before a window cost nothing. The result does not depend on the number of
// threads or the capacity. On x86, with keys and values in Q8_0 or Q4_0, queries are rounded to
// int8 (int8_operands-inl.h); with f16 and more than kMaxInvariantTokens tokens (matmul.h),
// products are in int16, with a relative squared error of about 2e-8 (int16_operands-inl.h).
void Attend(ThreadPool& pool, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
            size_t first_position, const AttentionParams& params, float* out);

}  // namespace kernels
