// Attention over the key-value cache of one layer.
#ifndef PRONK_KERNELS_ATTENTION_H_
#define PRONK_KERNELS_ATTENTION_H_

#include <cstddef>

#include "kernels/team.h"

namespace kernels {

// How keys and values are kept: as they are, rounded to f16, or rounded to int8 with an f16 scale
// for each 32 (gguf's Q8_0), which takes half the memory of f16.
enum class KvType { kF32, kF16, kQ8_0 };

// Bytes of one cached key or value of `length` numbers.
size_t KvBytes(KvType type, size_t length);

// One layer's cache, a view. Head by head, so that a head's keys are read in one stream.
struct KvLayer {
  KvType type = KvType::kF16;
  std::byte* k = nullptr;  // [n_kv_heads][capacity][key_length]
  std::byte* v = nullptr;  // [n_kv_heads][capacity][value_length]
  size_t n_kv_heads = 0;
  size_t capacity = 0;  // positions
  size_t key_length = 0;
  size_t value_length = 0;
};

// Writes the keys ([n_tokens][n_kv_heads][key_length], rope applied) and values of n_tokens tokens
// to the cache at positions first_pos... (all < capacity).
void StoreKv(const KvLayer& cache, size_t first_pos, size_t n_tokens, const float* k,
             const float* v);

// out[t][h] = softmax_p(scale * q[t][h] . k[h'][p]) v[h'][p] over positions p <= first_pos + t,
// where query head h reads key-value head h' = h / (n_heads / n_kv_heads) (grouped-query attention,
// Ainslie et al. 2023). q is [n_tokens][n_heads][key_length], out
// [n_tokens][n_heads][value_length]. Computed over tiles of keys with a running maximum and sum
// (Dao et al. 2022), so no buffer grows with the context. The result does not depend on the number
// of threads. From 8 tokens on, x86 multiplies int16 where the cache is rounded, too, which costs
// some 2e-8 of the result's power (attention_int16-inl.h); a cache of floats stays in floats.
void Attention(Team& team, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
               size_t first_pos, float scale, float* out);

}  // namespace kernels

#endif  // PRONK_KERNELS_ATTENTION_H_
