// Products of heads: each head's vector times the head's own matrix. Latent attention (DeepSeek-V2,
// 2024) maps the queries of each head into the space of the compressed keys, and the results of
// attention out of it.
#pragma once

#include <cstddef>

#include "kernels/buffer.h"
#include "kernels/experts/experts.h"
#include "kernels/ops/rounding.h"
#include "kernels/threads/thread_pool.h"

namespace kernels {

// Vectors of each head of each token: head h of token t is at
// data + t * token_stride + h * head_stride.
template <class T>
struct HeadVectors {
  T* data;
  size_t head_stride, token_stride;

  T* at(size_t token, size_t head) const {
    return data + token * token_stride + head * head_stride;
  }
};

// Scratch of HeadProducts(), sized at construction: cols is the largest weights.first.cols.
class HeadScratch {
 public:
  HeadScratch(size_t max_tokens, size_t cols, size_t max_threads);
  // The total size of the buffers.
  static size_t BytesFor(size_t max_tokens, size_t cols, size_t max_threads);
  size_t max_tokens() const { return max_tokens_; }

 private:
  friend struct HeadPass;  // head_products.cc

  size_t max_tokens_;
  RoundedRows rounded_;  // [max_threads][kMaxRowTokens], for small batches
  size_t tiles_bytes_, thread_bytes_;
  Buffer<std::byte> tiles_;    // [max_threads][tiles_bytes_]: a head's packed inputs
  Buffer<std::byte> threads_;  // [max_threads][thread_bytes_], scratch of products
};

// out(t, h)[r] = weights.scale * (row r of head h's matrix . x(t, h)), plus the bias if the stack
// has one, for n_tokens tokens and all heads; `weights` has a matrix for each head. x(t, h) is
// [weights.first.cols], out(t, h) [weights.first.rows]; they do not overlap. The result does not
// depend on the number of threads; up to 16 tokens are batch-invariant (kernels/README.md).
void HeadProducts(ThreadPool& pool, const ExpertStack& weights, const HeadVectors<const float>& x,
                  size_t n_tokens, const HeadVectors<float>& out, HeadScratch& scratch);

}  // namespace kernels
