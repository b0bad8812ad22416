// Weights: the tensors of a file by the role they play. Views into the mapping; nothing is copied.
#ifndef PRONK_ENGINE_WEIGHTS_H_
#define PRONK_ENGINE_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "engine/config.h"
#include "gguf/file.h"
#include "kernels/experts.h"
#include "kernels/matmul.h"

namespace engine {

// A matrix and the tensor it lies in, of which it may be only some rows.
struct WeightView : kernels::Matrix {
  const gguf::TensorView* tensor = nullptr;  // null: the file has no such matrix
  const float* bias = nullptr;               // [rows]; optional
};

// The matrices of one role of all experts of a layer, one behind the other in a tensor.
struct ExpertsView : kernels::ExpertStack {
  const gguf::TensorView* tensor = nullptr;
};

// The members bear the tensors' names; norms those of NormRoles. What a layer does not have is
// null.
struct LayerWeights {
  const float* attn_norm = nullptr;    // [embedding_length]
  WeightView attn_q;                   // [n_heads * key_length][embedding_length]
  WeightView attn_k;                   // [n_kv_heads * key_length][embedding_length]
  WeightView attn_v;                   // [n_kv_heads * value_length][embedding_length]
  const float* attn_q_norm = nullptr;  // [key_length], or all heads (Config::qk_norm)
  const float* attn_k_norm = nullptr;
  const float* attn_sinks = nullptr;      // [n_heads]
  const float* attn_sub_norm = nullptr;   // [n_heads * value_length]
  WeightView attn_output;                 // [embedding_length][n_heads * value_length]
  const float* attn_post_norm = nullptr;  // [embedding_length]

  const float* ffn_norm = nullptr;       // [embedding_length]
  WeightView ffn_gate;                   // [ffn_length][embedding_length]
  WeightView ffn_up;                     // [ffn_length][embedding_length]
  const float* ffn_sub_norm = nullptr;   // [ffn_length]
  WeightView ffn_down;                   // [embedding_length][ffn_length]
  const float* ffn_post_norm = nullptr;  // [embedding_length]

  // In place of ffn_gate, ffn_up, ffn_down where LayerPlan::n_experts > 0:
  WeightView ffn_gate_inp;    // [n_experts][embedding_length] the router
  ExpertsView ffn_gate_exps;  // each [ffn_length][embedding_length]
  ExpertsView ffn_up_exps;
  ExpertsView ffn_down_exps;  // each [embedding_length][ffn_length]
  // The expert that every token passes, where LayerPlan::shared_ffn_length > 0:
  WeightView ffn_gate_inp_shexp;  // [1][embedding_length] how much it counts; optional
  WeightView ffn_gate_shexp;      // [shared_ffn_length][embedding_length]
  WeightView ffn_up_shexp;
  WeightView ffn_down_shexp;  // [embedding_length][shared_ffn_length]

  // Those that every token passes: not the experts'.
  std::vector<const WeightView*> Matrices() const;
};

struct Weights {
  WeightView token_embd;  // [vocab_size][embedding_length]
  // Divisors of rope's frequencies, [rope.n_dims / 2]; optional. Where there are two kinds, the
  // long ones are for contexts longer than what the model was trained with.
  const float* rope_freqs = nullptr;
  const float* rope_factors_short = nullptr;
  const float* rope_factors_long = nullptr;
  std::vector<LayerWeights> layers;    // one for each of Config::layers
  const float* output_norm = nullptr;  // [embedding_length]
  WeightView output;           // [vocab_size][embedding_length]; token_embd where the file has none
  uint64_t skipped_bytes = 0;  // of tensors that generating text does not need

  // Checks type and shape of every tensor against the config, and that there is none besides.
  // Throws gguf::Error (file, tensor, expected, found).
  static Weights Bind(const gguf::File& file, const Config& config);
};

}  // namespace engine

#endif  // PRONK_ENGINE_WEIGHTS_H_
