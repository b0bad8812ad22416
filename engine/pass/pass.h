// Pass: the operations of the forward pass, for a batch of tokens.
//
// Each reads and writes rows, one per token, and splits them (or the weights' rows) among the
// pool's threads. The arithmetic is in kernels/. An operation that a model lacks (no norm, no rope,
// a factor of 1) does nothing. Rows are [n_tokens][embedding_length] unless stated otherwise.
// TracedPass (traced_pass.h) records the operations. It overrides the virtual functions, for which
// it records more than the time.
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

// A layer: its plan, its weights, and the place of its part of the state.
struct LayerView {
  const LayerPlan& plan;
  const LayerWeights& w;
  size_t i;
};

// A recurrence's input in scratch, and where the state keeps it: rows of `width` floats.
struct KeptInput {
  float* scratch;
  float* kept;
  size_t width;
};

class Pass {
 public:
  // texts: as in Forward(); none for operations that do not depend on positions.
  Pass(const Config& config, size_t n_tokens, Scratch& scratch, kernels::ThreadPool& pool,
       std::span<const TextSpan> texts = {})
      : config_(config), n_tokens_(n_tokens), scratch_(scratch), pool_(pool), texts_(texts) {}
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
  // Adds the vectors of positions and of the first kind of token, and norms the sum.
  void EmbedPositions(const Weights& w, float* x);
  // Writes the cosines and sines of the angles of the batch's positions, for Rope().
  void FillRopeAngles();
  // scratch.per_layer: the tokens' embeddings for each layer ("per-layer embeddings"), half from x,
  // their embeddings, half from a table.
  void PerLayerEmbeddings(const Weights& w, std::span<const tokenizer::TokenId> tokens,
                          const float* x);
  // gate = activation(gate) * the layer's part of scratch.per_layer; [n_tokens][per_layer_length].
  void GateByLayer(size_t layer, float* gate);
  // Called after each layer: for the trace, for progress reports, and for the pager, which reads
  // the weights of the next layers.
  virtual void EndLayer(size_t layer, const float* x);
  // Multiplies the rows of the likeliest tokens more exactly, after their product.
  void RefineLogits(const WeightView& output, float* logits);
  // The model's logit_scale and logit_softcap; rows [n_tokens][vocab_size].
  void FinishLogits(float* logits);

  // --- Norms ---
  // out = norm(in) * weight + bias for rows [n_tokens][width]; returns it. Without weights, returns
  // in; the bias may be null.
  const float* Normed(const float* in, const float* weight, size_t width, float* out,
                      const float* bias = nullptr);
  // x = norm(x) * weight + bias; without weights x is unchanged.
  void NormStream(const NormView& norm, float* x);
  // RMSNorm of n rows of `length` numbers, `stride` apart, in place; weights [n_groups][length] in
  // turn, or null: all ones; eps 0: the model's.
  void NormRows(const float* weight, size_t n, size_t length, size_t stride, float* rows,
                size_t n_groups = 1, float eps = 0);
  // The norm of queries or keys: weights [length], or [n_heads][length] (weights_by_head); the
  // bias may be null.
  struct HeadNorm {
    const float* weight;
    const float* bias = nullptr;
    bool weights_by_head = false;
  };
  // The norm of [n_tokens][n_heads][length], by head or by token as Config::qk_norm says; in place.
  void NormHeads(const HeadNorm& norm, size_t n_heads, size_t length, float* heads);
  // x[i] = max(-limit, min(x[i], limit)) for rows [n_tokens][width]; a limit of 0: unchanged.
  void Clamp(float limit, size_t width, float* x);

  // --- Attention ---
  // RoPE, by the layer's rope and each token's position: heads [n_tokens][n_heads][key_length].
  void Rope(const LayerPlan& plan, float* heads, size_t n_heads);
  // NormHeads() and Rope(), in the order that Config::qk_norm says.
  void NormAndRope(const LayerPlan& plan, const HeadNorm& norm, float* heads, size_t n_heads);
  // Attention temperature scaling: multiplies queries by a factor that grows with the logarithm of
  // their position (Config::attention_temperature_scale).
  void ScaleQueries(const LayerPlan& plan, float* q);
  // Stores k and v at the tokens' positions in the layer's cache of their text, unless they are
  // null (plan.kv_layer did it), then lets each q attend to the keys that the layer lets it see. q
  // is [n_tokens][n_heads][key_length], the output, scratch.attended,
  // [n_tokens][n_heads][value_length]. expands_latents: keys and values of heads are made from the
  // layer's latent vectors, which are in k; then n_kv_heads is 1, and key_length and value_length
  // are a head's.
  virtual void Attend(const LayerView& layer, float* q, float* k, float* v,
                      bool expands_latents = false);
  // Whether Attend() with expands_latents takes fewer operations than attention to the latent
  // vectors themselves.
  virtual bool IsWorthExpanding(const LayerView& layer) const;
  // Numbers by token and head; strides are in floats, from one to the next.
  struct Heads {
    float* data;
    size_t token_stride;
    size_t head_stride;

    Heads from(size_t i) const { return {data + i, token_stride, head_stride}; }
  };
  // Copies the first `length` numbers of each head; from.head_stride 0 gives all heads the same.
  void CopyHeads(const Heads& from, const Heads& to, size_t n_heads, size_t length);
  // out[t][h][i] = in[t][h] for each i below `length`
  void Repeat(const float* in, size_t n_heads, size_t length, float* out);
  // out[t][h] = matrix h . in[t][h]
  virtual void HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out);

  // --- Recurrences ---
  // What tokens do to the layer's state of their text: Convolve() reads scratch.conv_in
  // [n_tokens][channels] and writes conv_out, or attended in a layer that has nothing else; Recur()
  // reads conv_out, alpha [n_tokens][n_alpha] and beta [n_tokens][n_beta] and writes attended.
  // Everything else in such a layer is per token. If the batch may be undone, both keep their input
  // and the state before it.
  void Convolve(const LayerView& layer);
  void Recur(const LayerView& layer);
  // Convolves and recurs again over the first tokens of an undone batch, from the kept input.
  void Replay(const LayerView& layer);

  // --- Products ---
  // out[t] = weights . in[t] + bias for each output; in is [n_tokens][weights.cols]. An output
  // whose matrix the file lacks is skipped: `out` keeps what it has.
  struct Output {
    const WeightView& weights;
    float* out;         // [n_tokens][weights.rows]
    size_t stride = 0;  // floats from token to token; 0: weights.rows
  };
  void MatMul(const float* in, std::initializer_list<Output> outputs);
  // out = activation(gate . in) * (up . in); limit: of Activation::kLimitedSilu
  void GatedMatMul(const float* in, const WeightView& gate, const WeightView& up, float limit,
                   float* out);
  // From scratch.router to scratch.chosen and shares: the n_experts_used experts with a token's
  // largest logits, and their weights.
  virtual void Route(const LayerView& layer);
  // out[t] = sum of shares[t][i] * expert chosen[t][i] of in[t]
  virtual void Experts(const LayerView& layer, const float* in, float* out);

  // --- Elementwise ---
  // gate = activation(gate) * x; x *= y; rows [n_tokens][width].
  void Gate(kernels::Activation activation, float* gate, const float* x, size_t width);
  void Multiply(float* x, const float* y, size_t width);
  void Xielu(const kernels::Xielu& xielu, size_t width, float* x);
  // Subtracts from each row of gate [n_tokens][width] its mean plus `deviations` standard
  // deviations, and keeps what is positive: about a fixed share of the largest, without sorting
  // ("statistical top-k", You et al. 2025).
  void StatisticalTopK(float deviations, size_t width, float* gate);
  // x[t] *= 1 / (1 + exp(-gate[t]))
  void ScaleBySigmoid(const float* gate, float* x);
  void Scale(float* x, float factor);                // x *= factor
  void Add(float* x, const float* y, float factor);  // x += factor * y

 protected:
  // Called before and after each operation, for the trace. `bytes` counts what the operation reads
  // of tables and states; the weights of products are counted by TracedPass.
  virtual void BeginStep(std::string_view /*kind*/, uint64_t /*bytes*/) {}
  virtual void EndStep() {}
  // MatMul() and GatedMatMul() after Transformed(): quantize the input and call the kernels.
  virtual void RunMatMul(const float* in, std::span<const Output> outputs);
  virtual void RunGatedMatMul(const float* in, const WeightView& gate, const WeightView& up,
                              float limit, float* out);

  std::span<const TextSpan> texts() const { return texts_; }
  kernels::ThreadPool& pool() const { return pool_; }
  // The layer whose cache this layer reads.
  static size_t CacheOf(const LayerView& layer);
  kernels::AttentionParams ParamsOf(const LayerView& layer) const;
  kernels::ExpertLayer ExpertsOf(const LayerView& layer) const;

 private:
  // The input of a product times the Hadamard matrices that its weights expect
  // (hadamard_transforms.h), in scratch.transformed; `in` itself if they expect none.
  const float* Transformed(const float* in, const WeightView& weights);
  // The bias that is added to every key of a text, times the mean of RoPE's rotations,
  // [n_kv_heads][key_length]. Empty if there is none, or if attention changes without it.
  std::vector<float> CommonKeys(const LayerView& layer, const TextSpan& text) const;
  // Multiplies n numbers by Hadamard matrices, each of `rows` numbers, in place.
  static void HadamardHeads(float* heads, size_t n, size_t rows);
  // What Attend() does before and after attention if a cache has blocks (Q8_0, Q4_0). A null q is
  // skipped.
  struct CacheLayout;
  void HadamardForCache(const LayerView& layer, const CacheLayout& caches, float* q, float* k,
                        float* v);
  void HadamardMeans(const LayerView& layer, const CacheLayout& caches);
  template <class Work>
  void Step(std::string_view kind, uint64_t bytes, Work work) {
    BeginStep(kind, bytes);
    work();
    EndStep();
  }
  // Calls work(i) for each of n rows; they read `bytes` of weights in all.
  template <class Work>
  void EachRow(std::string_view kind, size_t n, uint64_t bytes, Work work) {
    Step(kind, bytes, [&] { ForRows(n, work); });
  }
  template <class Work>
  void ForRows(size_t n, Work work) {
    pool_.For(n, 1, [&](size_t begin, size_t end, size_t) {
      for (size_t i = begin; i < end; ++i) work(i);
    });
  }
  // Calls work(text, first, n) for each text: its first token in the batch, and their number.
  template <class Work>
  void EachText(Work work) const {
    size_t first = 0;
    for (const TextSpan& text : texts_) {
      work(text, first, text.batch_end - first);
      first = text.batch_end;
    }
  }
  size_t TextOf(size_t t) const;  // its index
  size_t PositionOf(size_t t) const;
  // Copies n floats of a state, and a recurrence's inputs, to where they are kept for Undo().
  void Keep(const float* state, size_t n, float* before, std::span<const KeptInput> inputs);
  const Config& config_;
  size_t n_tokens_;
  Scratch& scratch_;
  kernels::ThreadPool& pool_;
  std::span<const TextSpan> texts_;
};

}  // namespace engine
