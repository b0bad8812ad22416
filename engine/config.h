// Config: what kind of transformer a file holds, as plain numbers and flags. Read from the metadata
// and checked once; everything behind it may divide by, index with and allocate for these numbers.
#ifndef PRONK_ENGINE_CONFIG_H_
#define PRONK_ENGINE_CONFIG_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/file.h"
#include "kernels/experts.h"
#include "kernels/ops.h"

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
};

// One layer's shape.
struct LayerPlan {
  static constexpr size_t kNoRope = SIZE_MAX;

  size_t n_heads = 0;
  size_t n_kv_heads = 0;      // divides n_heads
  size_t key_length = 0;      // head_dim of queries and keys, even
  size_t value_length = 0;    // head_dim of values
  float attention_scale = 0;  // of q . k
  size_t rope = 0;            // index into Config::ropes, or kNoRope
  size_t window = 0;          // keys that a token sees, itself included; 0: all
  size_t ffn_length = 0;      // width of the feed-forward network's hidden layer, or of an expert's
  size_t n_experts = 0;       // 0: one feed-forward network for all tokens
  size_t shared_ffn_length = 0;  // hidden width of the expert that every token passes; 0: none
};

// Names of the tensors that hold a layer's norms, by what the norms do; "": there is none.
struct NormRoles {
  std::string_view attn = "attn_norm";  // of what goes into attention
  std::string_view attn_post = "";      // of what comes out, before it is added to the stream
  std::string_view ffn = "ffn_norm";    // likewise of the feed-forward network
  std::string_view ffn_post = "";
};

// RMSNorm of queries and keys.
enum class QkNorm {
  kNone,
  kHeadBeforeRope,  // each head by itself; all heads share the weights
  kHeadAfterRope,
  kAllBeforeRope,  // all heads as one vector
};

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
  OutputMatrix output = OutputMatrix::kOwnOrEmbedding;
  kernels::Activation activation = kernels::Activation::kSilu;
  kernels::Router router;
  size_t n_experts_used = 0;  // by a token, of a layer that has experts

  float embedding_scale = 1;    // of a token's row of token_embd
  float residual_scale = 1;     // of what a block adds to the stream
  float attention_softcap = 0;  // c: scores become c * tanh(score / c); 0: they stay
  float logit_scale = 1;        // of the logits
  float logit_softcap = 0;      // as attention_softcap, after the scale
  // Queries at position p are multiplied by 1 + query_growth * ln(1 + floor(p /
  // query_growth_span)).
  float query_growth = 0;
  size_t query_growth_span = 1;

  std::vector<RopeConfig> ropes;  // at least one
  std::vector<LayerPlan> layers;  // at least one
  size_t n_skipped_layers = 0;    // behind them in the file: not run when text is generated

  // Throws gguf::Error (file, key, expected, found).
  static Config Read(const gguf::File& file);

  size_t n_layers() const { return layers.size(); }
  // The largest that `member` is in any layer.
  size_t Widest(size_t (*member)(const LayerPlan&)) const;
};

}  // namespace engine

#endif  // PRONK_ENGINE_CONFIG_H_
