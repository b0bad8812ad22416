// Mixtures of experts: layers with many small feed-forward networks, of which a router chooses a
// few for each token. Shazeer et al. 2017; as in Mixtral (Jiang et al. 2024), no expert has a
// capacity: every token gets the experts that are chosen for it.
//
// Few tokens mostly use different experts, so the time goes into reading weights, as in products
// with single vectors. Many tokens are sorted by expert, and each expert is multiplied with a batch
// of its own tokens (experts.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/buffer.h"
#include "kernels/matmul/matmul.h"
#include "kernels/ops/ops.h"
#include "kernels/ops/rounding.h"
#include "kernels/threads/thread_pool.h"

namespace kernels {

// The experts' matrices, one after the other, with the shape and type of the first matrix.
struct ExpertStack {
  Matrix first;
  size_t n_experts = 0;
  const float* scales = nullptr;  // [n_experts], in place of first.scale
  const float* bias = nullptr;    // [n_experts][first.rows]
  size_t stride = 0;              // rows from one expert's first to the next's; 0: first.rows

  Matrix expert(size_t e) const;
  const float* expert_bias(size_t e) const;  // [first.rows] or null
};

// gate and up: [n_ff][n_embd]; down: [n_embd][n_ff]. n_embd is the experts' width, which need not
// be the model's. Without a gate (gate.n_experts == 0) the activation applies to up alone.
struct ExpertLayer {
  ExpertStack gate, up, down;
  Activation activation = Activation::kSilu;
  float limit = std::numeric_limits<float>::infinity();  // kLimitedSilu's limit

  bool has_gate() const { return gate.n_experts != 0; }
};

// How a router's logits determine the chosen experts and their weights.
struct Router {
  enum class Gate {
    kSoftmax,  // p = softmax over the logits of all experts
    kSigmoid,  // p = 1 / (1 + exp(-logit))
    // Experts are chosen one after the other. An expert's weight is a softmax over the remaining
    // experts with logits near the largest: (largest - logit) / max(|logit|, largest) <= 0.02
    // (SparseMixer, Liu et al. 2023; Phi-3.5-MoE). It excludes bias, groups and normed weights.
    kSparseMixer,
  };
  Gate gate = Gate::kSoftmax;
  bool normed = true;  // weights are divided by max(their sum, 6.103515625e-5), else they are p
  float scale = 1;     // final factor of the weights
  // The experts are divided into n_groups groups of neighbours, of which the best n_groups_used
  // take part. A group's score is the sum of its two largest p + bias, or its only one
  // (DeepSeek-V3, 2024).
  size_t n_groups = 1, n_groups_used = 1;
};
constexpr size_t kMaxExpertGroups = 256;

// Chooses for one token the n_used experts with the largest p + bias, largest first; of experts
// with equal sums, the lower index comes first. Their weights ([n_used]) come from p without the
// bias. Without bias and groups it compares logits, which have more different values than p. logits
// ([n_experts], of the router) may be overwritten; bias ([n_experts], GGUF's exp_probs_b) may be
// null. A NaN is less than any number. 1 <= n_used <= n_experts; weights are NaN if the groups that
// take part have fewer experts.
void Route(const Router& router, float* logits, size_t n_experts, const float* bias, size_t n_used,
           uint32_t* experts, float* weights);

// Scratch of Experts(). Buffers are sized at construction.
class ExpertScratch {
 public:
  ExpertScratch(size_t max_tokens, size_t n_experts, size_t n_used, size_t n_embd, size_t n_ff,
                size_t max_threads);
  // The total size of the buffers. That is 61 MB for 512 tokens and 8 of 128 experts, 2048 and 768
  // numbers wide (Qwen3 30B A3B), of which quantized weights touch about 35 MB; 0.1 MB for single
  // tokens.
  static size_t BytesFor(size_t max_tokens, size_t n_experts, size_t n_used, size_t n_embd,
                         size_t n_ff, size_t max_threads);

 private:
  friend class ExpertPass;  // experts.cc

  // A slot is one token with one of its experts. Slots are ordered by expert.
  Buffer<uint32_t> slot_tokens_;  // [slots]
  Buffer<float> slot_weights_;    // [slots]
  Buffer<uint32_t> first_slots_;  // [n_experts + 1]
  Buffer<uint32_t> first_tiles_;  // [n_experts + 1], of the experts that use panels
  Buffer<uint32_t> active_;       // [n_experts]: the experts with slots
  RoundedRows input_;             // [max_tokens][n_embd]
  Buffer<float> hidden_;          // [slots][n_ff]
  RoundedRows rounded_;           // hidden_ in int8
  Buffer<float> results_;         // [slots of at most kMaxInvariantTokens tokens][n_embd], of down
  Buffer<std::byte> tiles_;       // tiles of the input, then of hidden_
  size_t thread_bytes_;
  Buffer<std::byte> threads_;  // [max_threads][thread_bytes_], scratch of products
};

// out[t] = the sum over token t's experts e of weight * (down_e(act(gate_e x[t], up_e x[t])) +
// down's bias), where gate, up and down have their scales and gate and up their biases. x and out
// are [n_tokens][n_embd], experts (each below n_experts) and weights [n_tokens][n_used]. The result
// does not depend on the number of threads.
void Experts(ThreadPool& pool, const ExpertLayer& layer, const float* x, size_t n_tokens,
             const uint32_t* experts, const float* weights, size_t n_used, ExpertScratch& scratch,
             float* out);

}  // namespace kernels
