#include "engine/scratch.h"

#include <algorithm>

namespace engine {

Scratch::Scratch(const Config& c, size_t n, size_t max_threads)
    : max_tokens(n),
      x(n * c.embedding_length),
      normed(n * c.embedding_length),
      q(n * c.n_heads * c.key_length),
      k(n * c.n_kv_heads * c.key_length),
      v(n * c.n_kv_heads * c.value_length),
      attended(n * c.n_heads * c.value_length),
      hidden(n * c.ffn_length),
      delta(n * c.embedding_length),
      rope_cos(n * c.rope.n_dims / 2),
      rope_sin(n * c.rope.n_dims / 2),
      input(n, std::max({c.embedding_length, c.ffn_length, c.n_heads * c.value_length}),
            max_threads) {}

size_t Scratch::BytesFor(const Config& c, size_t n, size_t max_threads) {
  const size_t floats = 3 * c.embedding_length + c.n_heads * (c.key_length + c.value_length) +
                        c.n_kv_heads * (c.key_length + c.value_length) + c.ffn_length +
                        c.rope.n_dims;
  const size_t widest = std::max({c.embedding_length, c.ffn_length, c.n_heads * c.value_length});
  return n * floats * sizeof(float) + kernels::Activations::BytesFor(n, widest, max_threads);
}

}  // namespace engine
