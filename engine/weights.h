// Weights: the tensors of a file by the role they play. Views into the mapping; nothing is copied.
#ifndef PRONK_ENGINE_WEIGHTS_H_
#define PRONK_ENGINE_WEIGHTS_H_

#include <vector>

#include "engine/config.h"
#include "gguf/file.h"
#include "kernels/matmul.h"

namespace engine {

// The members bear the tensors' names. A vector that the file lacks is null.
struct LayerWeights {
  const float* attn_norm = nullptr;    // [embedding_length]
  kernels::Matrix attn_q;              // [n_heads * key_length][embedding_length]
  kernels::Matrix attn_k;              // [n_kv_heads * key_length][embedding_length]
  kernels::Matrix attn_v;              // [n_kv_heads * value_length][embedding_length]
  const float* attn_q_bias = nullptr;  // as many as the matrix has rows; optional
  const float* attn_k_bias = nullptr;
  const float* attn_v_bias = nullptr;
  const float* attn_q_norm = nullptr;  // [key_length]; only where Config::qk_norm
  const float* attn_k_norm = nullptr;
  kernels::Matrix attn_output;  // [embedding_length][n_heads * value_length]
  const float* attn_output_bias = nullptr;

  const float* ffn_norm = nullptr;  // [embedding_length]
  kernels::Matrix ffn_gate;         // [ffn_length][embedding_length]
  kernels::Matrix ffn_up;           // [ffn_length][embedding_length]
  kernels::Matrix ffn_down;         // [embedding_length][ffn_length]
};

struct Weights {
  kernels::Matrix token_embd;          // [vocab_size][embedding_length]
  const float* rope_freqs = nullptr;   // [rope.n_dims / 2] divisors of the frequencies; optional
  std::vector<LayerWeights> layers;    // [n_layers]
  const float* output_norm = nullptr;  // [embedding_length]
  kernels::Matrix output;  // [vocab_size][embedding_length]; token_embd where the file has none

  // Checks type and shape of every tensor against the config, and that there is none besides.
  // Throws gguf::Error (file, tensor, expected, found).
  static Weights Bind(const gguf::File& file, const Config& config);
};

}  // namespace engine

#endif  // PRONK_ENGINE_WEIGHTS_H_
