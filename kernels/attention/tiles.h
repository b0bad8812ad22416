// Attention for a batch: a tile of queries against the keys before them. Internal to kernels/.
#ifndef PRONK_KERNELS_ATTENTION_TILES_H_
#define PRONK_KERNELS_ATTENTION_TILES_H_

#include <cstddef>

#include "kernels/attention/attention.h"

namespace kernels {

// Queries of a tile, at most: tokens times the heads that share a key-value head.
constexpr size_t kTileQueries = 256;

struct AttentionTile {
  KvType type;
  const std::byte* k;  // [capacity][key_length] of one key-value head
  const std::byte* v;  // [capacity][value_stride]
  size_t capacity;
  size_t key_length;
  size_t value_length;
  size_t value_stride;  // a value is the first value_length of so many numbers
  const float* q;       // the first head of the first token; [n_heads][key_length] for each token
  float* out;           // likewise [n_heads][value_length]
  size_t q_stride;      // floats from token to token
  size_t out_stride;
  size_t n_tokens;  // n_tokens * n_heads <= kTileQueries
  size_t n_heads;
  size_t first_pos;        // of the first token
  AttentionParams params;  // sinks: those of the tile's heads
};

void AttendTile(const AttentionTile& tile);

}  // namespace kernels

#endif  // PRONK_KERNELS_ATTENTION_TILES_H_
