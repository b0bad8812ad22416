// Attention over the key-value cache of one layer.
#pragma once

#include <cstddef>

#include "kernels/threads/thread_pool.h"

namespace kernels {

// Numbers are kept as floats, rounded to f16, or rounded to integers of 8 or 4 bits with an f16
// scale for each 32 (gguf's Q8_0 and Q4_0): 0.53 or 0.28 of f16's memory.
enum class KvType { kF32, kF16, kQ8_0, kQ4_0 };

constexpr bool IsBlocks(KvType type) { return type >= KvType::kQ8_0; }

// The types of a cache's keys and of its values.
struct KvTypes {
  KvType k, v;
  constexpr KvTypes(KvType both = KvType::kF16) : k(both), v(both) {}
  constexpr KvTypes(KvType keys, KvType values) : k(keys), v(values) {}
  bool operator==(const KvTypes&) const = default;
};

// Bytes of one cached key or value of `length` numbers.
size_t KvBytes(KvType type, size_t length);

// The positions of a tile of keys; tiles are aligned to multiples of it.
constexpr size_t kTileKeys = 128;

// The cache of one key-value head, read-only.
struct KvHead {
  KvTypes type = {};
  const std::byte* k;  // [capacity][key_length]
  const std::byte* v;  // [capacity][value_stride]
  size_t capacity;     // positions
  size_t key_length;
  size_t value_length;
  size_t value_stride;  // a value is the first value_length of these numbers
};

// A view of one layer's cache. Heads are stored one after the other, so that a head's keys are read
// in one stream. Each head is a ring buffer: position p has cache index p % capacity. If the
// capacity is smaller than the text, it is a multiple of kTileKeys, so that a tile of keys never
// wraps.
//
// Without v, a value is the first value_length numbers of its key (latent attention, DeepSeek-V2
// 2024), in the key's type: its last block may also hold later numbers of the key, under the same
// scale.
struct KvLayer {
  KvTypes type = {};
  std::byte* k = nullptr;  // [n_kv_heads][capacity][key_length]
  std::byte* v = nullptr;  // [n_kv_heads][capacity][value_length], or null
  size_t n_kv_heads = 0;
  size_t capacity = 0;  // positions
  size_t key_length = 0;
  size_t value_length = 0;
  size_t skipped = 0;  // positions before k and v that belong to another text

  KvHead head(size_t i) const;
  // A cache from cache index `first` on, for another text; it does not wrap.
  KvLayer From(size_t first) const;
};

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

// Writes the keys ([n_tokens][n_kv_heads][key_length], rope applied) and values of n_tokens tokens,
// at most capacity, from position first_pos on. v is not read if the cache has no values.
void StoreKv(ThreadPool& pool, const KvLayer& cache, size_t first_pos, size_t n_tokens,
             const float* k, const float* v);

// out[t][h] = softmax_p(score[t][h][p]) v[h'][p] over the positions p that token t, at position
// first_pos + t, sees (window, ahead), where score[t][h][p] = scale * q[t][h] . k[h'][p], and query
// head h reads key-value head h' = h / (n_heads / n_kv_heads) (grouped-query attention, Ainslie et
// al. 2023). q is [n_tokens][n_heads][key_length], out [n_tokens][n_heads][value_length].
//
// The whole batch and the keys that its first token sees are in the cache already: either capacity
// >= first_pos + n_tokens; or window > 0, capacity >= window + n_tokens - 1 and a multiple of
// kTileKeys.
//
// Tiles of keys share a running maximum and sum (Dao et al. 2022), so no buffer grows with the
// context, and keys before a window cost nothing. The result does not depend on the number of
// threads or the capacity. On x86, with keys and values in Q8_0 or Q4_0, queries are rounded to
// int8 (int8_operands-inl.h); with f16 and more than kMaxInvariantTokens tokens (matmul.h),
// products are in int16, with a relative squared error of about 2e-8 (int16_operands-inl.h).
void Attend(ThreadPool& pool, const KvLayer& cache, const float* q, size_t n_heads, size_t n_tokens,
            size_t first_pos, const AttentionParams& params, float* out);

}  // namespace kernels
