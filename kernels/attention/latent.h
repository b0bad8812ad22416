// Latent attention for a batch, with keys and values of each head (DeepSeek-V2, 2024).
//
// The cache keeps one vector for all heads: [latent, rotated], and head h's key is [K latent,
// rotated], its value V latent. A single token is cheapest in the absorbed form: (K^T q) . latent
// takes the latent vector itself for key and value, so each pair of query and key costs 576 + 512
// multiplications, with DeepSeek's lengths, in place of 192 + 128. Many queries pay for making
// every key and value once, 512 * (128 + 128) multiplications each.
#pragma once

#include <cstddef>

#include "kernels/attention/attention.h"
#include "kernels/attention/head_products.h"
#include "kernels/buffer.h"

namespace kernels {

// The matrices of all heads of a layer. A head's key has the numbers of a row of k_t and the
// rotated numbers; its value has one number for each row of v.
struct LatentHeads {
  const ExpertStack& k_t;  // [latent][plain]: transposed, for the absorbed form; without a bias
  const ExpertStack& v;    // [value_length][latent]
};

// The multiplications that AttendToLatents saves over the absorbed form; negative if it takes more.
double SavedByHeads(const KvLayer& cache, const LatentHeads& heads, size_t n_tokens,
                    size_t first_position, const AttentionParams& params);

// Memory for as many heads as fit into bytes_per_thread for each thread, but at least for one head,
// whose keys and values take fewer bytes than a layer's cache. It grows on first use.
struct LatentScratch {
  static constexpr size_t kBytesPerThread = size_t{16} << 20;
  explicit LatentScratch(size_t n_threads, size_t bytes_per_thread = kBytesPerThread)
      : max_threads(n_threads), limit(n_threads * bytes_per_thread) {}

  size_t max_threads, limit;
  size_t size = 0;
  Buffer<std::byte> bytes;
};

// Attend() over a cache of latent vectors, with keys and values made by `heads`: q is
// [n_tokens][n_heads][key's length], out [n_tokens][n_heads][value's length]. The result does not
// depend on the number of threads. Keys and values are rounded like the cache's numbers, to f16 at
// most, and K as a whole to Q8_0 if it is quantized. rotation: cached vectors are multiplied by
// Hadamard matrices of this many rows; 0: they are not multiplied.
void AttendToLatents(ThreadPool& pool, const KvLayer& cache, const LatentHeads& heads,
                     const float* q, size_t n_tokens, size_t first_position,
                     const AttentionParams& params, LatentScratch& scratch, HeadScratch& products,
                     float* out, size_t rotation = 0);

}  // namespace kernels
