// The key-value cache of one layer: types, layout in memory, and how it is written.
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

// Writes the keys ([n_tokens][n_kv_heads][key_length], rope applied) and values of n_tokens tokens,
// at most capacity, from position first_position on. v is not read if the cache has no values.
void StoreKv(ThreadPool& pool, const KvLayer& cache, size_t first_position, size_t n_tokens,
             const float* k, const float* v);

}  // namespace kernels
