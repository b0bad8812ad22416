// Config: what kind of transformer a file holds, as plain numbers and flags. Read from the metadata
// and checked once; everything behind it may divide by, index with and allocate for these numbers.
#ifndef PRONK_ENGINE_MODEL_CONFIG_H_
#define PRONK_ENGINE_MODEL_CONFIG_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "kernels/matmul/experts.h"
#include "kernels/ops/ops.h"

namespace engine {

// How positions beyond the trained context are squeezed into it.
enum class RopeScaling {
  kNone,
  kLinear,  // positions divided by the factor (Chen et al. 2023)
  kYarn,    // a mix of both ends by wavelength (Peng et al. 2023)
};

struct RopeConfig {
  kernels::RopePairs pairs = kernels::RopePairs::kAdjacent;
  size_t n_dims = 0;  // rotated dimensions of each head, even, <= key_length
  double base = 10000.0;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1.0;            // how many times longer than trained
  size_t original_context = 0;    // the context it was trained with before it was extended
  double attention_factor = 1.0;  // multiplies cos and sin, with any scaling
  double beta_fast = 32.0;        // yarn: dimensions turning more often than this are left alone,
  double beta_slow = 1.0;         // ... less often than this are interpolated
  double log_multiplier = 0.0;    // yarn: of what the paper makes cos and sin grow, this is taken
                                  // back (mistral3)
  bool divided = true;            // the file's tensor of divisors is meant for it
  // How many pairs belong to time, height, width of an image (Qwen2-VL); all 0: no such thing. Text
  // has one position for the three, and pairs beyond them are not turned.
  std::array<size_t, 4> sections = {};
};

// How the tokens of a layer gather from those before them.
enum class Mixer {
  kNone,             // they do not: the layer is a feed-forward network alone
  kAttention,        // Vaswani et al. 2017
  kLatentAttention,  // keys and values are made of one short vector (DeepSeek-V2, 2024)
  kShortConv,        // a gated convolution over the last few (LFM2, 2025)
  kDeltaNet,         // a matrix that is corrected by each (Yang et al. 2024)
  kMamba2,           // a matrix that each adds to (Dao and Gu 2024)
};

// The last three remember by a convolution's last inputs and, but for the first, by a matrix
// [key_length][value_length] for each value head, to which tokens write with keys and from which
// they read with queries. In Mamba-2's words: groups for key heads, B and C for keys and queries,
// state_size for key_length.
struct RecurrentPlan {
  size_t n_taps = 0;    // of the convolution, the current token included
  size_t channels = 0;  // numbers of a token that it runs over: queries, keys, values
  size_t n_key_heads = 0;
  size_t n_value_heads = 0;  // a multiple
  size_t key_length = 0;
  size_t value_length = 0;

  size_t history_floats() const { return n_taps > 0 ? (n_taps - 1) * channels : 0; }
  size_t state_floats() const { return n_value_heads * key_length * value_length; }
  size_t width() const { return n_value_heads * value_length; }
};

// One layer's shape.
struct LayerPlan {
  static constexpr size_t kNoRope = SIZE_MAX;
  static constexpr size_t kOwn = SIZE_MAX;

  Mixer mixer = Mixer::kAttention;
  // Attention; latent attention by latent vectors is that with one key-value head.
  size_t n_heads = 0;
  size_t n_kv_heads = 0;      // divides n_heads
  size_t key_length = 0;      // head_dim of queries and keys, even
  size_t value_length = 0;    // head_dim of values
  float attention_scale = 0;  // of q . k
  size_t rope = 0;            // index into Config::ropes, or kNoRope
  size_t rope_offset = 0;     // where in a head the turned numbers begin
  size_t window = 0;          // keys that a token sees, itself included; 0: all
  size_t kv_layer = kOwn;     // the earlier layer whose keys and values it sees, or kOwn
  // Latent attention:
  size_t latent_length = 0;      // of the vector that keys and values are made of
  size_t query_rank = 0;         // likewise of queries; 0: they are made of the stream
  size_t head_key_length = 0;    // of a head's own keys, the turned numbers behind the others
  size_t head_value_length = 0;  // of a head's own values
  bool values_in_keys = false;   // a value is the first value_length numbers of its key
  RecurrentPlan recurrent;

  size_t ffn_length = 0;   // width of the feed-forward network's hidden layer; 0: none
  float ffn_sparsity = 0;  // of the gate what is so many standard deviations above its mean; 0: all
  size_t n_experts = 0;    // 0: none
  size_t expert_length = 0;      // width of an expert's hidden layer
  size_t shared_ffn_length = 0;  // of the expert that every token passes; 0: none
};

// Names of the tensors that hold norms, by what the norms do; "": there is none.
struct NormRoles {
  std::string_view attn = "attn_norm";  // of what goes into a layer's mixer
  std::string_view attn_post = "";      // of what comes out, before it is added to the stream
  std::string_view ffn = "ffn_norm";    // likewise of the feed-forward network
  std::string_view ffn_post = "";
  std::string_view output = "output_norm";  // of the stream behind the last layer
};

// RMSNorm of queries and keys.
enum class QkNorm {
  kNone,
  kHeadBeforeRope,  // each head by itself; all heads share the weights
  kHeadAfterRope,
  kAllBeforeRope,  // all heads as one vector
};

enum class Presence { kNone, kOptional, kRequired };

// Where the output matrix is.
enum class OutputMatrix {
  kOwnOrEmbedding,  // output where the file has it, else token_embd
  kEmbedding,
  kOwn,
};

struct Config {
  std::string architecture;     // general.architecture
  size_t vocab_size = 0;        // rows of token_embd
  size_t context_length = 0;    // positions it was trained for
  size_t embedding_length = 0;  // width of the residual stream
  float norm_eps = 0;

  NormRoles norms;
  QkNorm qk_norm = QkNorm::kNone;
  bool sub_norms = false;    // norms of what goes into attn_output and into ffn_down
  bool sinks = false;        // each head has a score that no token stands for
  bool biases = false;       // of attention, router and experts: required, not merely used if there
  bool shared_gate = false;  // how much a shared expert counts depends on the token
  bool value_norm = false;   // RMSNorm of values, without weights
  bool keys_as_values = false;   // values without a matrix are keys as they come from theirs
  bool attention_gate = false;   // what a head has gathered counts as much as its token says
  bool tiled_key_heads = false;  // value head j of a delta net goes with key head j mod n_key_heads
  OutputMatrix output = OutputMatrix::kOwnOrEmbedding;
  kernels::Activation activation = kernels::Activation::kSilu;
  kernels::Router router;
  Presence router_bias = Presence::kNone;  // what counts only when experts are chosen
  size_t n_experts_used = 0;               // by a token, of a layer that has experts
  size_t expert_width = 0;                 // of what experts read and write; 0: embedding_length
  size_t n_streams = 0;         // of Gemma 3n's wide residual stream (residual.h); 0: it is one
  size_t laurel_length = 0;     // rank of the matrix beside each mixer; 0: none
  size_t per_layer_length = 0;  // numbers that a token has for each layer (Gemma 3n); 0: none

  float embedding_scale = 1;    // of a token's row of token_embd
  float residual_scale = 1;     // of what a block adds to the stream
  float attention_softcap = 0;  // c: scores become c * tanh(score / c); 0: they stay
  float logit_scale = 1;        // of the logits
  float logit_softcap = 0;      // as attention_softcap, after the scale
  // Queries at position p are multiplied by 1 + attention_temperature_scale * ln(1 + floor(p /
  // attention_temperature_span)).
  float attention_temperature_scale = 0;
  size_t attention_temperature_span = 1;

  std::vector<RopeConfig> ropes;  // at least one
  std::vector<LayerPlan> layers;  // at least one
  size_t n_skipped_layers = 0;    // behind them in the file: not run when text is generated
  // The one behind them, where it can guess tokens ahead (draft/nextn.h).
  std::optional<LayerPlan> nextn;
  bool joins_hidden = false;  // of such a block alone: its input is as wide as two streams

  // Throws gguf::Error (file, key, expected, found).
  static Config Read(const gguf::File& file);

  size_t n_layers() const { return layers.size(); }
  // With the block of `nextn` as the only layer.
  Config OfNextn() const;
  // The largest that `member` is in any layer.
  size_t Widest(size_t (*member)(const LayerPlan&)) const;
};

}  // namespace engine

#endif  // PRONK_ENGINE_MODEL_CONFIG_H_
