// Pass: the operations of the forward pass, for a batch of tokens.
//
// An operation reads and writes rows, one per token, and splits them (or the weights' rows) among
// the pool's threads. The arithmetic is in kernels/. An operation that a model lacks (no norm, no
// rope, a factor of 1) does nothing. Rows are [n_tokens][embedding_length] unless stated otherwise.
// TracedPass (traced_pass.h) records the operations. It overrides the virtual functions to record
// more than their time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "engine/model/weights.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "kernels/attention/attention.h"
#include "kernels/experts/experts.h"
#include "kernels/matmul/matmul.h"
#include "kernels/threads/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// A layer: its plan, its weights, and its index in SequenceState.
struct LayerView {
  const LayerPlan& plan;
  const LayerWeights& w;
  size_t index;
};

// A recurrence's input in scratch, and where the state keeps it: rows of `width` floats.
struct KeptInput {
  float* scratch;
  float* kept;
  size_t width;
};

class Pass {
 public:
  // sequences: as for Forward(); empty for operations that do not depend on positions.
  Pass(const Config& config, size_t n_tokens, Scratch& scratch, kernels::ThreadPool& pool,
       std::span<const SequenceSlice> sequences = {})
      : config_(config),
        n_tokens_(n_tokens),
        scratch_(scratch),
        pool_(pool),
        sequences_(sequences) {}
  virtual ~Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  const Config& config() const { return config_; }
  size_t n_tokens() const { return n_tokens_; }
  Scratch& scratch() const { return scratch_; }

  // Calls work(t) for each token, on any thread.
  template <class Work>
  void EachToken(std::string_view kind, Work work) {
    EachRow(kind, n_tokens_, 0, work);
  }

  // --- Input and output ---
  // out[t] = the embedding's row of tokens[t], times the model's embedding_scale.
  void Embed(const WeightView& token_embd, std::span<const tokenizer::TokenId> tokens, float* out);
  // Adds to x the vectors of the tokens' positions and of the first token type, and norms the sum.
  void EmbedPositions(const Weights& w, float* x);
  // Writes the cosines and sines of the batch's angles, for Rope().
  void FillRopeAngles();
  // Fills scratch.per_layer, [n_tokens][n_layers][per_layer_length], with "per-layer embeddings":
  // the scaled sum of a projection of x (the tokens' embeddings) and a row of per_layer_token_embd.
  void PerLayerEmbeddings(const Weights& w, std::span<const tokenizer::TokenId> tokens,
                          const float* x);
  // gate = activation(gate) * the layer's part of scratch.per_layer. gate is
  // [n_tokens][per_layer_length].
  void GateByLayer(size_t layer, float* gate);
  // Called after each layer, for the trace, for progress reports, and for the pager, which reads
  // the next layers' weights.
  virtual void EndLayer(size_t layer, const float* x);
  // After their product, computes the logits of the likeliest tokens again, more exactly.
  void RefineLogits(const WeightView& output, float* logits);
  // Applies the model's logit_scale and logit_softcap to rows [n_tokens][vocab_size].
  void FinishLogits(float* logits);

  // --- Norms ---
  // out = norm(in) * weight + bias for rows [n_tokens][width]; returns out. If weight is null, it
  // does nothing and returns in. The bias may be null.
  const float* Normed(const float* in, const float* weight, size_t width, float* out,
                      const float* bias = nullptr);
  // x = norm(x) * weight + bias. If the weight is null, x is unchanged.
  void NormStream(const NormView& norm, float* x);
  // RMSNorm, in place, of n rows of `length` numbers that begin `stride` apart. Row i uses row
  // i % n_groups of the weights [n_groups][length]; null stands for ones. An eps of 0 stands for
  // the model's.
  void NormRows(const float* weight, size_t n, size_t length, size_t stride, float* rows,
                size_t n_groups = 1, float eps = 0);
  // The norm of queries or keys. Weights are [length], or [n_heads][length] if weights_by_head. The
  // bias may be null.
  struct HeadNorm {
    const float* weight;
    const float* bias = nullptr;
    bool weights_by_head = false;
  };
  // Norms heads [n_tokens][n_heads][length] in place, by head or by token as Config::qk_norm says.
  void NormHeads(const HeadNorm& norm, size_t n_heads, size_t length, float* heads);
  // x[i] = max(-limit, min(x[i], limit)) for rows [n_tokens][width]; a limit of 0: unchanged.
  void Clamp(float limit, size_t width, float* x);

  // --- Attention ---
  // Rotates heads [n_tokens][n_heads][key_length] by the layer's rope and each token's position.
  void Rope(const LayerPlan& plan, float* heads, size_t n_heads);
  // NormHeads() and Rope(), in the order that Config::qk_norm says.
  void NormAndRope(const LayerPlan& plan, const HeadNorm& norm, float* heads, size_t n_heads);
  // Attention temperature scaling: multiplies queries by a factor that grows with the logarithm of
  // their position (Config::attention_temperature_scale).
  void ScaleQueries(const LayerPlan& plan, float* q);
  // Stores k and v at the tokens' positions in the layer's cache of their sequence, unless they are
  // null because layer plan.kv_layer stored them. Then each q attends to the keys that the layer
  // lets it see. q is [n_tokens][n_heads][key_length]. The output is scratch.attended,
  // [n_tokens][n_heads][value_length]. With expands_latents, k has the layer's latent vectors, from
  // which keys and values of each head are made; then n_kv_heads is 1, and key_length and
  // value_length are a head's.
  virtual void Attend(const LayerView& layer, float* q, float* k, float* v,
                      bool expands_latents = false);
  // Whether Attend() with expands_latents needs fewer operations than attention to the latent
  // vectors themselves.
  virtual bool IsWorthExpanding(const LayerView& layer) const;
  // Numbers by token and head. The strides, in floats, lead from one token or head to the next.
  struct Heads {
    float* data;
    size_t token_stride;
    size_t head_stride;

    Heads from(size_t i) const { return {data + i, token_stride, head_stride}; }
  };
  // Copies the first `length` numbers of each head. If from.head_stride is 0, all heads get the
  // same numbers.
  void CopyHeads(const Heads& from, const Heads& to, size_t n_heads, size_t length);
  // out[t][h][i] = in[t][h] for each i below `length`
  void Repeat(const float* in, size_t n_heads, size_t length, float* out);
  // out[t][h] = matrix h . in[t][h]
  virtual void HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out);

  // --- Recurrences ---
  // Convolve() and Recur() update the recurrent state of each token's sequence. Convolve() reads
  // scratch.conv_in, [n_tokens][channels], and writes conv_out, or attended if the layer has no
  // other recurrence. Recur() reads conv_out, alpha [n_tokens][n_alpha] and beta
  // [n_tokens][n_beta], and writes attended. If the batch may be undone, both keep their input and
  // the earlier state.
  void Convolve(const LayerView& layer);
  void Recur(const LayerView& layer);
  // Repeats Convolve() and Recur() for the first tokens of an undone batch, from the kept input.
  void Replay(const LayerView& layer);

  // --- Products ---
  // out[t] = weights . in[t] + bias for each output; in is [n_tokens][weights.cols]. An output
  // whose matrix the file lacks is skipped, and its `out` is unchanged.
  struct Output {
    const WeightView& weights;
    float* out;         // [n_tokens][weights.rows]
    size_t stride = 0;  // floats from token to token; 0: weights.rows
  };
  void MatMul(const float* in, std::initializer_list<Output> outputs);
  // out = activation(gate . in) * (up . in). `limit` is the limit of Activation::kLimitedSilu.
  void GatedMatMul(const float* in, const WeightView& gate, const WeightView& up, float limit,
                   float* out);
  // Chooses each token's n_experts_used experts by its logits, scratch.router. Writes them to
  // scratch.chosen and their weights to scratch.expert_weights.
  virtual void Route(const LayerView& layer);
  // out[t] = the sum over i of expert_weights[t][i] * (expert chosen[t][i] applied to in[t])
  virtual void Experts(const LayerView& layer, const float* in, float* out);

  // --- Elementwise ---
  // Gate(): gate = activation(gate) * x. Multiply(): x *= y. Rows are [n_tokens][width].
  void Gate(kernels::Activation activation, float* gate, const float* x, size_t width);
  void Multiply(float* x, const float* y, size_t width);
  void Xielu(const kernels::Xielu& xielu, size_t width, float* x);
  // Subtracts from each row of gate [n_tokens][width] its mean plus `deviations` standard
  // deviations, and sets negative results to 0. About a fixed fraction of the numbers, the largest,
  // stays, without sorting ("statistical top-k", You et al. 2025).
  void StatisticalTopK(float deviations, size_t width, float* gate);
  // x[t] *= 1 / (1 + exp(-gate[t]))
  void ScaleBySigmoid(const float* gate, float* x);
  void Scale(float* x, float factor);                // x *= factor
  void Add(float* x, const float* y, float factor);  // x += factor * y

 protected:
  // Called before and after each operation, for the trace. `bytes` is the number of bytes of tables
  // and states that the operation reads; TracedPass counts the weights of products.
  virtual void BeginOperation(std::string_view /*kind*/, uint64_t /*bytes*/) {}
  virtual void EndOperation() {}
  // These two are MatMul() and GatedMatMul() after Transformed(): they quantize the input and call
  // the kernels.
  virtual void RunMatMul(const float* in, std::span<const Output> outputs);
  virtual void RunGatedMatMul(const float* in, const WeightView& gate, const WeightView& up,
                              float limit, float* out);

  std::span<const SequenceSlice> sequences() const { return sequences_; }
  kernels::ThreadPool& pool() const { return pool_; }
  // The index of the layer whose cache this layer reads.
  static size_t CacheOf(const LayerView& layer);
  kernels::AttentionParams ParamsOf(const LayerView& layer) const;
  kernels::ExpertLayer ExpertsOf(const LayerView& layer) const;

 private:
  // The input of a product times the Hadamard matrices that its weights expect
  // (hadamard_transforms.h), in scratch.transformed; `in` itself if they expect none.
  const float* Transformed(const float* in, const WeightView& weights);
  // The bias that is added to every key of a sequence, times the mean of RoPE's rotations,
  // [n_kv_heads][key_length]. Empty if keys have no bias, or if attention changes without it.
  std::vector<float> CommonKeys(const LayerView& layer, const SequenceSlice& sequence) const;
  // Multiplies n numbers by Hadamard matrices, each of `rows` numbers, in place.
  static void TransformHeads(float* heads, size_t n, size_t rows);
  // If a cache has blocks (Q8_0, Q4_0), Attend() calls TransformForCache() before attention and
  // TransformMeansBack() after it. A null q or k is skipped.
  struct CacheLayout;
  void TransformForCache(const LayerView& layer, const CacheLayout& caches, float* q, float* k,
                         float* v);
  void TransformMeansBack(const LayerView& layer, const CacheLayout& caches);
  template <class Work>
  void RunOperation(std::string_view kind, uint64_t bytes, Work work) {
    BeginOperation(kind, bytes);
    work();
    EndOperation();
  }
  // Calls work(i) for each of n rows, which together read `bytes` of weights.
  template <class Work>
  void EachRow(std::string_view kind, size_t n, uint64_t bytes, Work work) {
    RunOperation(kind, bytes, [&] { ForRows(n, work); });
  }
  template <class Work>
  void ForRows(size_t n, Work work) {
    pool_.For(n, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) work(i);
    });
  }
  // Calls work(sequence, first, n) for each sequence: `first` is the index in the batch of its
  // first token, and n the number of its tokens.
  template <class Work>
  void ForEachSequence(Work work) const {
    size_t first = 0;
    for (const SequenceSlice& sequence : sequences_) {
      work(sequence, first, sequence.batch_end - first);
      first = sequence.batch_end;
    }
  }
  // The index in sequences_ of token t's sequence, and the token's position in it.
  size_t SequenceIndexOf(size_t t) const;
  size_t PositionOf(size_t t) const;
  // Copies n floats of a state to `before`, and the inputs of a recurrence to where they are kept
  // for Undo().
  void Keep(const float* state, size_t n, float* before, std::span<const KeptInput> inputs);
  const Config& config_;
  size_t n_tokens_;
  Scratch& scratch_;
  kernels::ThreadPool& pool_;
  std::span<const SequenceSlice> sequences_;
};

}  // namespace engine
