// Scratch: the buffers that hold a batch of tokens on its way through the layers. Sized at
// construction and reused by every pass, so that generating allocates nothing.
#ifndef PRONK_ENGINE_SCRATCH_H_
#define PRONK_ENGINE_SCRATCH_H_

#include <cstddef>
#include <memory>

#include "engine/config.h"
#include "kernels/matmul.h"

namespace engine {

// Floats without initial values: pages that no batch touches never become resident.
class Buffer {
 public:
  explicit Buffer(size_t n) : data_(std::make_unique_for_overwrite<float[]>(n)) {}
  float* get() { return data_.get(); }
  float* row(size_t i, size_t width) { return data_.get() + i * width; }

 private:
  std::unique_ptr<float[]> data_;
};

struct Scratch {
  Scratch(const Config& c, size_t max_tokens, size_t max_threads);

  // The size of the buffers that these make.
  static size_t BytesFor(const Config& c, size_t max_tokens, size_t max_threads);

  size_t max_tokens;
  Buffer x;                    // [tokens][embedding_length] the residual stream
  Buffer normed;               // [tokens][embedding_length] x after RMSNorm
  Buffer q;                    // [tokens][n_heads][key_length]
  Buffer k;                    // [tokens][n_kv_heads][key_length]
  Buffer v;                    // [tokens][n_kv_heads][value_length]
  Buffer attended;             // [tokens][n_heads][value_length]
  Buffer hidden;               // [tokens][ffn_length]
  Buffer delta;                // [tokens][embedding_length] what a block adds to x
  Buffer rope_cos;             // [tokens][rope.n_dims / 2]
  Buffer rope_sin;             // [tokens][rope.n_dims / 2]
  kernels::Activations input;  // of the next products
};

}  // namespace engine

#endif  // PRONK_ENGINE_SCRATCH_H_
