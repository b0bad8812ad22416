// Weights: a file's tensors by role. They are views into the mapping; nothing is copied.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/model/config.h"
#include "gguf/file.h"
#include "kernels/experts/experts.h"
#include "kernels/matmul/matmul.h"

namespace engine {

class Binder;
class HadamardTransforms;
struct HadamardTransform;

// A matrix: a tensor, or some of its rows.
struct WeightView : kernels::Matrix {
  const gguf::TensorView* tensor = nullptr;  // null: the file has no such matrix
  const float* bias = nullptr;               // [rows]; optional
  // The Hadamard transform (hadamard_transforms.h) that the weights expect of a product's input;
  // null: none.
  const HadamardTransform* hadamard = nullptr;
  // The Hadamard transform that Pass::Embed() undoes in a row read as an embedding; null: none.
  const HadamardTransform* row_hadamard = nullptr;
};

// The matrices of one role of all experts in a layer, one after the other in a tensor.
struct ExpertsView : kernels::ExpertStack {
  const gguf::TensorView* tensor = nullptr;
};

// LayerNorm with an optional bias.
struct NormView {
  const float* weight = nullptr;
  const float* bias = nullptr;
};

// Members are named as in the file, norms as in NormRoles. A tensor that a layer lacks is null.
struct LayerWeights {
  // ---- Around every mixer: norms of its input, of its output, of the sum with the stream.
  const float* attn_norm = nullptr;       // [embedding_length]
  const float* attn_norm_bias = nullptr;  // the bias of LayerNorm; optional
  const float* attn_post_norm = nullptr;  // [embedding_length]
  NormView attn_sum_norm;                 // [embedding_length]

  // ---- Mixer::kAttention, in most families.
  WeightView attn_q;                   // [n_heads * key_length][embedding_length]
  WeightView attn_k;                   // [n_kv_heads * key_length][embedding_length]
  WeightView attn_v;                   // [n_kv_heads * value_length][embedding_length]
  const float* attn_q_norm = nullptr;  // [key_length], or all heads (Config::qk_norm)
  const float* attn_k_norm = nullptr;
  const float* attn_q_norm_bias = nullptr;  // the bias of LayerNorm; optional
  const float* attn_k_norm_bias = nullptr;
  bool qk_norm_weights_by_head = false;  // both norms are [heads][key_length]
  const float* attn_sinks = nullptr;     // [n_heads]
  WeightView attn_gate;                  // [n_heads or n_heads * value_length][embedding_length]
  const float* attn_sub_norm = nullptr;  // [n_heads * value_length]
  WeightView attn_output;                // [embedding_length][n_heads * value_length]

  // ---- Mixer::kLatentAttention (DeepSeek, Kimi, MiniCPM3), with attn_output. Queries come from
  // two matrices, or from attn_q alone.
  WeightView attn_q_a;  // [query_rank][embedding_length]
  const float* attn_q_a_norm = nullptr;
  WeightView attn_q_b;                    // [n_heads * head_key_length][query_rank]
  WeightView attn_kv_a_mqa;               // [latent_length + rope.n_dims][embedding_length]
  const float* attn_kv_a_norm = nullptr;  // [latent_length]
  ExpertsView attn_k_b;  // each head: [latent_length][head_key_length - rope.n_dims]
  ExpertsView attn_v_b;  // each head: [head_value_length][latent_length]
  WeightView attn_kv_b;  // older files: for each head its keys' rows, then its values'

  // ---- Mixers with a convolution (RecurrentPlan): all have conv, mixer_gate and mixer_out.
  WeightView conv_in;  // [channels][embedding_length] its input; or attn_q, attn_k and attn_v
  std::array<const float*, 3> conv = {};  // [channels][n_taps], now last; or of q, k and v each
  const float* conv_bias = nullptr;       // [channels]; optional
  WeightView mixer_gate;                  // [width][embedding_length]: the gate of its output
  WeightView mixer_out;                   // [embedding_length][width]
  // Mixer::kShortConv (LFM2):
  WeightView conv_gate;  // [channels][embedding_length] the gate of its input
  // Mixer::kDeltaNet (Qwen3-Next, Qwen3.5, Kimi Linear), kMamba and kMamba2; kLightning's conv_in
  // has for each head its query's rows, its key's and its value's, and its taps are ones:
  WeightView ssm_alpha;                // [n_alpha][embedding_length, or rank] the state's decay
  WeightView ssm_beta;                 // [n_beta][embedding_length]; Mamba's after conv [channels]
  WeightView ssm_ba;                   // beta and alpha in one, by key head (Qwen3-Next)
  WeightView ssm_in;                   // conv_in and mixer_gate in one, by key head (older files)
  WeightView alpha_in, gate_in;        // [rank][as ssm_beta]: inputs of ssm_alpha and mixer_gate
  const float* ssm_dt_bias = nullptr;  // [n_alpha]
  const float* ssm_a = nullptr;        // [n_value_heads]; Mamba [n_value_heads][key_length]
  // Delta nets [value_length], Mamba-2 and lightning attention [width]; optional in Mamba-2.
  const float* ssm_norm = nullptr;
  // kMamba and kMamba2:
  const float* ssm_d = nullptr;                // [n_value_heads]
  std::array<const float*, 3> ssm_norms = {};  // Mamba: of dt [rank], B, C [key_length]; optional

  // ---- Around every network: norms of its input, of its output, of the sum with the stream.
  const float* ffn_norm = nullptr;       // [embedding_length]
  const float* ffn_norm_bias = nullptr;  // the bias of LayerNorm; optional
  const float* ffn_post_norm = nullptr;  // [embedding_length]
  NormView ffn_sum_norm;                 // [embedding_length]

  // ---- A dense network, if LayerPlan::ffn_length > 0.
  WeightView ffn_gate;                  // [ffn_length][embedding_length]
  WeightView ffn_up;                    // [ffn_length][embedding_length]
  const float* ffn_sub_norm = nullptr;  // [ffn_length]
  WeightView ffn_down;                  // [embedding_length][ffn_length]

  // ---- Experts, if LayerPlan::n_experts > 0.
  WeightView ffn_gate_inp;                    // [n_experts][embedding_length] the router
  const float* ffn_gate_inp_scale = nullptr;  // [embedding_length] of its input; optional
  const float* exp_probs_b = nullptr;         // [n_experts] added to choose them; optional
  ExpertsView ffn_gate_exps;  // each [expert_length][embedding_length or expert_width]
  ExpertsView ffn_up_exps;
  ExpertsView ffn_down_exps;  // each [embedding_length or expert_width][expert_length]
  // If Config::expert_width > 0 (Nemotron 3):
  WeightView ffn_latent_down;  // [expert_width][embedding_length]
  WeightView ffn_latent_up;    // [embedding_length][expert_width]
  // The shared expert, if LayerPlan::shared_ffn_length > 0:
  WeightView ffn_gate_inp_shexp;  // [1][embedding_length] its weight; optional
  WeightView ffn_gate_shexp;      // [shared_ffn_length][embedding_length]
  WeightView ffn_up_shexp;
  WeightView ffn_down_shexp;  // [embedding_length][shared_ffn_length]
  // Layers that have a dense network beside experts (Gemma 4):
  const float* ffn_post_norm_1 = nullptr;  // [embedding_length] of the dense network's output
  const float* ffn_pre_norm_2 = nullptr;   // norm of the experts' input
  const float* ffn_post_norm_2 = nullptr;  // norm of the experts' output

  // ---- Several residual streams, if Config::n_residual_streams > 0 (Gemma 3n; pass/residual.h).
  WeightView laurel_l;  // [laurel_length][embedding_length]
  WeightView laurel_r;  // [embedding_length][laurel_length]
  const float* laurel_post_norm = nullptr;
  WeightView altup_router;                     // [n_residual_streams][embedding_length]
  WeightView altup_predict_coef;               // [n_residual_streams^2][n_residual_streams]
  WeightView altup_correct_coef;               // [n_residual_streams][n_residual_streams]
  const float* altup_router_norm = nullptr;    // [embedding_length]
  const float* altup_correct_scale = nullptr;  // [embedding_length]

  // ---- A token's per-layer input, if Config::per_layer_length > 0 (Gemma 3n and 4).
  WeightView inp_gate;                        // [per_layer_length][embedding_length]
  WeightView proj;                            // [embedding_length][per_layer_length]
  const float* post_norm = nullptr;           // [embedding_length]
  const float* layer_output_scale = nullptr;  // [1] of the stream after the layer; optional

  // The number of weights in all matrices except stacks of experts.
  uint64_t matrix_elements = 0;

  std::array<const ExpertsView*, 3> experts() const {
    return {&ffn_gate_exps, &ffn_up_exps, &ffn_down_exps};
  }

  // Checks type and shape of the layer's tensors. Throws gguf::Error.
  static LayerWeights Bind(const Binder& bind, const Config& config, size_t layer);
};

// The block that predicts further tokens, if Config::nextn has a plan (draft/nextn.h).
struct NextnWeights {
  LayerWeights layer;
  WeightView eh_proj;                       // [embedding_length][2 * embedding_length]
  const float* enorm = nullptr;             // [embedding_length]: the norm of the token's embedding
  const float* hnorm = nullptr;             // [embedding_length]: the norm of the last hidden state
  const float* shared_head_norm = nullptr;  // [embedding_length]; null: output_norm
  WeightView embed_tokens;                  // replaces token_embd; optional
  WeightView shared_head_head;              // replaces output; optional
};

// Applied after pooling (pass/pooling.h). A matrix that a model lacks is null.
struct PoolingWeights {
  WeightView dense_2;  // [dense_length][embedding_length]
  WeightView dense_3;  // [embedding_length][dense_length]
  // Pooling::kRank:
  WeightView cls;                   // [embedding_length][embedding_length]
  const float* cls_norm = nullptr;  // [embedding_length]
  WeightView cls_output;            // [n_labels][embedding_length]
};

struct Weights {
  WeightView token_embd;     // [vocab_size][embedding_length]
  WeightView position_embd;  // [context_length][embedding_length], if Config::learned_positions
  WeightView token_types;    // [n_token_types][embedding_length]; optional
  NormView token_embd_norm;  // [embedding_length]; optional
  // Divisors of RoPE's frequencies, [rope.n_dims / 2]; optional. Long: longer contexts than
  // trained.
  const float* rope_freqs = nullptr;
  const float* rope_factors_short = nullptr;
  const float* rope_factors_long = nullptr;
  // Per-layer inputs, if Config::per_layer_length > 0:
  WeightView per_layer_token_embd;             // [vocab_size][layers * per_layer_length]
  WeightView per_layer_model_proj;             // [layers * per_layer_length][embedding_length]
  const float* per_layer_proj_norm = nullptr;  // [per_layer_length]
  // If Config::n_residual_streams > 0: [embedding_length][embedding_length] for each stream but the
  // first.
  ExpertsView altup_proj;
  ExpertsView altup_unembd_proj;
  std::vector<LayerWeights> layers;    // one for each of Config::layers
  const float* output_norm = nullptr;  // [embedding_length]
  const float* output_norm_bias = nullptr;
  std::shared_ptr<const std::vector<float>> ones;  // norms' weights or taps that the file lacks
  WeightView output;  // [vocab_size][embedding_length]; token_embd where the file has none
  std::shared_ptr<const HadamardTransforms> hadamard_transforms;  // or null
  PoolingWeights pooling;
  NextnWeights nextn;  // eh_proj.tensor is null where the file has none
  // If Config::backbone_length > 0:
  WeightView pre_projection;   // [embedding_length][2 * backbone_length]
  WeightView post_projection;  // [backbone_length][embedding_length]
  uint64_t skipped_bytes = 0;  // bytes of tensors that generating text does not need
  uint64_t encoder_bytes = 0;  // the part of these that encoders of images and sound have

  // Checks type and shape of every tensor against the config. Throws gguf::Error (file, tensor,
  // expected, found), also for an unknown tensor. exact: products round nothing (kernels::Matrix).
  static Weights Bind(const gguf::File& file, const Config& config, bool exact);
  // The number of columns of the widest matrix whose products use the input's rounding residual; 0
  // if there is no such matrix. The output matrix is one, since the largest logits are refined.
  size_t ResidualCols() const;
};

}  // namespace engine
