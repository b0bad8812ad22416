// Scratch: the buffers that hold a batch of tokens on its way through the layers. Sized at
// construction for the widest layer and reused by every pass, so that generating allocates nothing.
#ifndef PRONK_ENGINE_SCRATCH_H_
#define PRONK_ENGINE_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/config.h"
#include "kernels/experts.h"
#include "kernels/matmul.h"

namespace engine {

// Numbers without initial values: pages that no batch touches never become resident.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : data_(std::make_unique_for_overwrite<T[]>(n)) {}
  T* get() { return data_.get(); }
  T* row(size_t i, size_t width) { return data_.get() + i * width; }

 private:
  std::unique_ptr<T[]> data_;
};

struct Scratch {
  Scratch(const Config& c, size_t max_tokens, size_t max_threads);

  // The size of the buffers that these make.
  static size_t BytesFor(const Config& c, size_t max_tokens, size_t max_threads);

  size_t max_tokens;
  Buffer<float> x;         // [tokens][embedding_length] the residual stream
  Buffer<float> normed;    // [tokens][embedding_length] x after RMSNorm
  Buffer<float> q;         // [tokens][n_heads][key_length]
  Buffer<float> k;         // [tokens][n_kv_heads][key_length]
  Buffer<float> v;         // [tokens][n_kv_heads][value_length]
  Buffer<float> attended;  // [tokens][n_heads][value_length]
  Buffer<float> hidden;    // [tokens][ffn_length]
  Buffer<float> delta;     // [tokens][embedding_length] what a block adds to x
  Buffer<float> rope_cos;  // [ropes][tokens][n_dims / 2]
  Buffer<float> rope_sin;
  // Where layers have experts:
  Buffer<float> router;       // [tokens][n_experts]
  Buffer<uint32_t> chosen;    // [tokens][n_experts_used]
  Buffer<float> shares;       // [tokens][n_experts_used] of the chosen experts
  Buffer<float> shared;       // [tokens][embedding_length] what the shared expert gives
  Buffer<float> shared_gate;  // [tokens]
  kernels::ExpertScratch experts;
  kernels::Activations input;  // of the next products
};

}  // namespace engine

#endif  // PRONK_ENGINE_SCRATCH_H_
