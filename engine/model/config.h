// Config: the kind of transformer in a file, as plain numbers and flags. Config::Read() checks the
// metadata, so later code may divide by, index with and allocate for these numbers.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "kernels/experts/experts.h"
#include "kernels/ops/ops.h"

namespace engine {

// How positions beyond the trained context are mapped into it.
enum class RopeScaling {
  kNone,
  kLinear,  // positions divided by the factor (Chen et al. 2023)
  kYarn,    // interpolated by wavelength (Peng et al. 2023)
};

struct RopeConfig {
  kernels::RopePairs pairs = kernels::RopePairs::kAdjacent;
  size_t n_dims = 0;  // rotated dimensions of each head, even, <= key_length
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // the context divided by the trained context
  size_t original_context = 0;    // the trained context before the extension
  double attention_factor = 1.0;  // multiplies cos and sin, with any scaling
  // YaRN: dimensions that rotate more often than beta_fast in the context keep their frequency;
  // dimensions that rotate less often than beta_slow are interpolated.
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  double log_multiplier = 0.0;  // YaRN: undoes this part of the paper's growth of cos and sin
  double ext_factor = 1.0;      // YaRN: the share of a dimension's own frequency; 0: kLinear
  bool rounds_ramp = true;      // YaRN: the dimensions of beta_fast and beta_slow become whole ones
  bool uses_divisors = true;    // the file's tensor of divisors applies
  // M-RoPE (Wang et al. 2024): the numbers of pairs that rotate by the time, the height and the
  // width of an image, then of pairs that do not rotate. All 0: every pair rotates. In text the
  // three positions are equal.
  std::array<size_t, 4> sections = {};
  // Pairs go to time, height and width in turn (Qwen3-VL), not in three runs.
  bool sections_in_turn = true;
};

// How the tokens of a layer read earlier ones.
enum class Mixer {
  kNone,             // the layer is a feed-forward network alone
  kAttention,        // Vaswani et al. 2017
  kLatentAttention,  // keys and values come from one short vector (DeepSeek-V2, 2024)
  kShortConv,        // a gated convolution over the last few tokens (LFM2, 2025)
  kDeltaNet,         // a matrix that each token corrects (Yang et al. 2024)
  kMamba,            // a vector for each channel, to which each token adds (Gu and Dao 2023)
  kMamba2,           // a matrix that each token adds to (Dao and Gu 2024)
  kLightning,        // kMamba2's matrix, but it fades at a fixed rate (Qin et al. 2024)
};

// The state of kShortConv and the mixers after it: the last inputs of a convolution and, except in
// kShortConv, a matrix [key_length][value_length] for each value head. A token writes it with its
// key and reads it with its query. Mamba-2's paper calls key heads groups, keys B, queries C and
// key_length state_size. Mamba has a value head for each channel, with values of length 1.
struct RecurrentPlan {
  size_t n_taps = 0;    // tokens that the convolution covers, including the current one
  size_t channels = 0;  // a token's numbers that it covers: queries, keys and values
  size_t n_key_heads = 0;
  size_t n_value_heads = 0;  // a multiple of n_key_heads
  size_t key_length = 0;
  size_t value_length = 0;
  size_t n_alpha = 0;  // a token's numbers that set the state's decay
  size_t n_beta = 0;   // a delta net's strengths of corrections; in Mamba the key and the query
  size_t rank = 0;     // alpha comes from two matrices, this wide in between; 0: from one
  bool decay_by_channel = false;  // delta nets: each row of the state has its own decay
  float lowest_decay = 0;         // delta nets: the smallest logarithm of a decay; 0: no limit
  bool normed = false;            // Mamba: alpha (as `rank` numbers), key and query are normed
  float norm_eps = 0;             // the epsilon of these norms or of lightning attention's norm
  std::vector<float> rates;       // lightning attention: each value head's rate of decay, below 0

  size_t history_floats() const { return n_taps > 0 ? (n_taps - 1) * channels : 0; }
  size_t state_floats() const { return n_value_heads * key_length * value_length; }
  size_t width() const { return n_value_heads * value_length; }
};

// One layer's shape.
struct LayerPlan {
  static constexpr size_t kNoRope = SIZE_MAX;
  static constexpr size_t kOwnCache = SIZE_MAX;

  Mixer mixer = Mixer::kAttention;
  Mixer second_mixer = Mixer::kNone;  // a recurrence on the same input; its output is added, too
  // Attention. Latent attention on latent vectors has one key-value head.
  size_t n_heads = 0;
  size_t n_kv_heads = 0;        // divides n_heads
  size_t key_length = 0;        // head_dim of queries and keys, even
  size_t value_length = 0;      // head_dim of values
  float score_scale = 0;        // multiplies q . k
  size_t rope = 0;              // index into Config::ropes, or kNoRope
  size_t rope_offset = 0;       // index in a head of the first rotated number
  size_t window = 0;            // how many keys, up to its own, a token sees; 0: every key
  size_t n_keys_ahead = 0;      // how many keys after its own a token sees; SIZE_MAX: every key
  size_t kv_layer = kOwnCache;  // the earlier layer whose keys and values it uses, or kOwnCache
  // Latent attention:
  size_t latent_length = 0;      // length of the vector that keys and values are made from
  size_t query_rank = 0;         // the same for queries; 0: they are made from the stream
  size_t head_key_length = 0;    // length of a head's expanded keys, the rotated numbers last
  size_t head_value_length = 0;  // length of a head's expanded values
  bool values_in_keys = false;   // a value is the first value_length numbers of its key
  RecurrentPlan recurrent;       // the state of second_mixer if there is one, otherwise of mixer
  Mixer recurrence() const { return second_mixer != Mixer::kNone ? second_mixer : mixer; }

  size_t ffn_length = 0;  // width of the feed-forward network's hidden layer; 0: none
  // Gates count only above their mean plus this many standard deviations; 0: all gates count.
  float ffn_sparsity = 0;
  float ffn_limit = INFINITY;     // kLimitedSilu's limit in the dense network and shared expert
  float expert_limit = INFINITY;  // kLimitedSilu's limit in the other experts
  std::optional<kernels::Xielu> xielu;  // replaces Config::activation, without a gate
  size_t n_experts = 0;                 // 0: the network is dense
  size_t expert_length = 0;             // width of an expert's hidden layer
  size_t shared_ffn_length = 0;         // width of the shared expert; 0: there is none
};

// The names of the norms' tensors by role. "": the model has no such norm.
struct NormRoles {
  std::string_view attn = "attn_norm";  // norms the mixer's input
  std::string_view attn_post = "";      // norms its output, before it is added to the stream
  std::string_view attn_sum = "";       // norms the stream after this sum
  std::string_view ffn = "ffn_norm";    // ffn...: likewise for the feed-forward network
  std::string_view ffn_post = "";
  std::string_view ffn_sum = "";
  std::string_view output = "output_norm";  // norms the stream after the last layer
  std::string_view embedding = "";          // norms the stream before the first layer
};

// RMSNorm of queries and keys.
enum class QkNorm {
  kNone,
  kHeadBeforeRope,  // each head by itself; all heads share the weights
  kHeadAfterRope,
  kAllBeforeRope,  // all heads as one vector
};

enum class Presence { kNone, kOptional, kRequired };

// A gate of attention's output, computed from the layer's input.
enum class AttentionGate {
  kNone,
  kInQueries,       // attn_q has for each head its query's rows, then its gate's
  kSeparateMatrix,  // attn_gate: a number for each head, or for each of its values
  kSeparateMatrixIfPresent,
};

// The tensor that is the output matrix.
enum class OutputMatrix {
  kOutputTensorOrEmbedding,  // the tensor `output` if the file has it, otherwise token_embd
  kEmbedding,
  kOutputTensor,
};

// How the vectors of a text's positions become one (the values of pooling_type).
enum class Pooling { kNone, kMean, kFirst, kLast, kRank };

// A reranker turns a position's vector, or their mean, into scores.
struct RankTraits {
  Pooling from = Pooling::kFirst;
  bool uses_gelu = false;     // the activation after the first matrix is GELU, otherwise tanh
  bool exact_gelu = false;    // GELU itself, not its approximation with tanh
  bool uses_softmax = false;  // scores become probabilities
};

// Properties of an architecture that neither keys nor tensors tell (family.h). The defaults are
// llama's.
struct Traits {
  NormRoles norms = {};
  bool layer_norm = false;         // norms of the stream subtract its mean (Ba et al. 2016)
  bool norms_have_weights = true;  // false: all their weights are ones
  bool has_first_norm = true;  // false: the first layer's mixer reads x without a norm (ModernBERT)
  // The norm's output replaces the stream, so the mixer's or network's output is added to it
  // (MiniMax-01).
  bool norms_stream = false;
  // Mixer and feed-forward network read the same normed stream (GPT-J, Wang and Komatsuzaki 2021).
  // If the network has another norm, that also reads the stream before the mixer (GPT-NeoX).
  bool parallel_residual = false;
  QkNorm qk_norm = QkNorm::kNone;
  bool qk_norm_optional = false;
  bool qk_layer_norm = false;  // qk_norm subtracts the mean; each head may have its own weights
  kernels::Activation activation = kernels::Activation::kSilu;
  bool learned_positions = false;    // each of context_length positions has a vector
  bool has_sub_norms = false;        // norms of the inputs of attn_output and ffn_down
  Presence sinks = Presence::kNone;  // each head has an extra score without a token
  bool requires_biases = false;      // attention, router and experts must have biases
  bool shared_gate = false;          // the shared expert's weight depends on the token
  bool halves_experts = false;       // experts and a shared one are averaged, not added
  bool value_norm = false;           // RMSNorm of values, without weights
  AttentionGate attention_gate = AttentionGate::kNone;
  kernels::Activation gate_activation = kernels::Activation::kSigmoid;  // attention_gate's
  // Mamba-2's norm of its output, or Mamba's norms of dt, B and C.
  Presence ssm_norms = Presence::kRequired;
  bool tiled_key_heads = false;  // value head j of a delta net uses key head j mod n_key_heads
  OutputMatrix output = OutputMatrix::kOutputTensorOrEmbedding;
  RankTraits rank = {};
  // The block that predicts further tokens reads the stream before the last norm, not after it.
  bool nextn_before_norm = false;
};

struct Config : Traits {
  std::string architecture;     // general.architecture
  size_t vocab_size = 0;        // rows of token_embd
  size_t context_length = 0;    // positions in training
  size_t embedding_length = 0;  // width of the residual stream
  float norm_eps = 0;

  bool keys_as_values = false;  // without attn_v, values are keys before norm and RoPE
  kernels::Router router;
  Presence router_bias = Presence::kNone;  // added to scores only to choose experts
  size_t n_experts_used = 0;               // experts per token, in a layer that has experts
  size_t expert_width = 0;        // length of experts' inputs and outputs; 0: embedding_length
  size_t n_residual_streams = 0;  // parallel streams (AltUp, pass/residual.h); 0: one
  size_t laurel_length = 0;       // rank of the path parallel to each mixer (LAuReL); 0: none
  size_t per_layer_length = 0;    // numbers that a token has for each layer; 0: none

  float embedding_scale = 1;         // multiplies a token's row of token_embd
  float attention_output_scale = 1;  // multiplies attention's output
  float residual_scale = 1;          // multiplies a mixer's or network's output
  float stream_scale = 1;            // multiplies the stream that the output is added to
  // Limits queries, keys and values to [-clamp_qkv, clamp_qkv]; 0: no limit.
  float clamp_qkv = 0;
  std::vector<float> slopes;    // per head, how fast scores fall with distance (ALiBi), or empty
  float attention_softcap = 0;  // c: scores become c * tanh(score / c); 0: no cap
  float logit_scale = 1;
  float logit_softcap = 0;  // limits logits, after the scale, as attention_softcap
  // Attention temperature (Llama 4) multiplies queries at p by 1 + scale * ln(1 + floor(p / span)).
  float attention_temperature_scale = 0;
  size_t attention_temperature_span = 1;

  std::vector<RopeConfig> ropes;  // at least one
  size_t n_rope_freqs = 0;        // the file's divisors of frequencies; ropes may have fewer pairs
  std::vector<LayerPlan> layers;  // at least one
  // How many times the file's layers run, each time with their own keys and values.
  size_t n_runs = 1;
  bool norm_between_runs = false;  // output_norm is applied between runs
  // Layers after `layers` in the file that text generation does not use.
  size_t n_skipped_layers = 0;
  // The first skipped layer, if it can predict further tokens (draft/nextn.h).
  std::optional<LayerPlan> nextn;
  size_t n_token_types = 0;          // a text's tokens are all of the first type; 0: no types
  Pooling pooling = Pooling::kNone;  // how a file turns texts into vectors
  size_t n_labels = 0;               // how many scores Pooling::kRank gives
  bool normalizes_vectors = true;    // a text's vector is divided by its length
  // The most tokens in a text that becomes a vector; 0: as many as the context allows.
  size_t max_text_tokens = 0;
  size_t dense_length = 0;  // width between the two matrices after pooling; 0: no such matrices
  // A model that only drafts for another model (draft/assistant.h): the other model's width;
  // otherwise 0. kv_layer names one of its own layers, which reads the keys of the other model's
  // layer of the same kind.
  size_t backbone_length = 0;
  bool joins_hidden = false;   // OfNextn(): the input is two streams wide
  bool uses_hadamard = false;  // some products' inputs are transformed (hadamard_transforms.h)
  size_t residual_cols = 0;    // Weights::ResidualCols()
  bool has_encoders = false;   // the file has keys of image or sound encoders, which are not run

  // Throws gguf::Error (file, key, expected, found).
  static Config Read(const gguf::File& file);

  size_t n_layers() const { return layers.size(); }
  // The index in the file (blk.N) of a layer's weights, which several runs share.
  size_t file_layer(size_t layer) const { return layer % (layers.size() / n_runs); }
  // Whether some layer attends to later tokens, so that a text must be read as a whole.
  bool SeesAhead() const;
  // Whether the model can continue a text; false if it makes vectors or scores, or only drafts.
  bool WritesText() const {
    return pooling != Pooling::kRank && !SeesAhead() && backbone_length == 0;
  }
  // A copy with the block of `nextn` as its only layer.
  Config OfNextn() const;
  // The largest value of `member` in any layer.
  size_t Widest(size_t (*member)(const LayerPlan&)) const;
};

}  // namespace engine
