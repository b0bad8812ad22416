// Pass: the operations that the forward pass is made of, for a batch of tokens.
//
// Each takes [tokens][width] rows, splits them (or the weights' rows) among the team's threads, and
// notes its time where a trace is wanted. What they compute is in kernels/. An operation that a
// model does not have (no norm, no rope, a factor of 1) does nothing.
#ifndef PRONK_ENGINE_PASS_PASS_H_
#define PRONK_ENGINE_PASS_PASS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "engine/pass/trace.h"
#include "engine/stopwatch.h"
#include "kernels/attention/attention.h"
#include "kernels/machine/team.h"
#include "kernels/matmul/matmul.h"
#include "tokenizer/tokenizer.h"

namespace engine {

class Pass {
 public:
  // The batch's first token stands at first_position. trace may be null.
  Pass(const Config& config, size_t n_tokens, size_t first_position, Scratch& scratch,
       kernels::Team& team, Trace* trace)
      : config_(config),
        n_tokens_(n_tokens),
        first_position_(first_position),
        scratch_(scratch),
        team_(team),
        trace_(trace) {}

  size_t n_tokens() const { return n_tokens_; }
  kernels::Activation activation() const { return config_.activation; }

  // Calls work(t) for each token, on any thread.
  template <class Work>
  void EachToken(std::string_view kind, Work work) {
    Step(kind, 0, {}, [&] { ForRows(n_tokens_, work); });
  }
  // out[t] = the embedding's row of tokens[t], times the model's embedding_scale.
  void Embed(const WeightView& token_embd, std::span<const tokenizer::TokenId> tokens, float* out);
  // The angles of the batch's positions, for NormAndRotate().
  void SetPositions(std::span<const RopeAngles> ropes);
  // out = rmsnorm(in) * weight for rows [n_tokens][width]; returns it. Without weights, returns in.
  const float* Normed(const float* in, const float* weight, size_t width, float* out);
  // Norms heads [n_tokens][n_heads][key_length] as Config::qk_norm says, and turns each by the
  // layer's rope to its token's position; in place.
  void NormAndRotate(const LayerPlan& plan, const float* weight, float* heads, size_t n_heads);
  // The same two by themselves; weights may be null (all ones).
  void NormHeads(const float* weight, size_t n_heads, size_t length, float* heads);
  void Rotate(const LayerPlan& plan, float* heads, size_t n_heads);
  // RMSNorm of each of n rows of `length` numbers that begin `stride` apart, all with the same
  // weights; in place.
  void NormRows(const float* weight, size_t n, size_t length, size_t stride, float* rows);
  // RMSNorm of each token's n_groups parts of `length` numbers, each with its own weights
  // ([n_groups][length]); in place.
  void NormGroups(const float* weight, size_t n_groups, size_t length, float* rows);
  // Numbers by token and head, in floats from one to the next.
  struct Heads {
    float* data;
    size_t token_stride;
    size_t head_stride;

    Heads from(size_t i) const { return {data + i, token_stride, head_stride}; }
  };
  // For each token and head, the first `length` numbers. A head_stride of 0 in `from` gives all
  // heads the same.
  void CopyHeads(const Heads& from, const Heads& to, size_t n_heads, size_t length);
  // out[t][h] = matrix h . in[t][h]
  void HeadProducts(const ExpertsView& weights, const Heads& in, const Heads& out);
  // Multiplies queries by Config::attention_temperature_scale's factor.
  void GrowQueries(const LayerPlan& plan, float* q);
  // out[t] = weights . in[t] + bias for each product; in is [n_tokens][weights.cols].
  struct Output {
    const WeightView& weights;
    float* out;  // [n_tokens][weights.rows]
  };
  void MatMul(const float* in, std::initializer_list<Output> outputs);
  // out = activation(gate . in) * (up . in)
  void GatedMatMul(const float* in, const WeightView& gate, const WeightView& up, float* out);
  // Adds k and v at the batch's positions to the cache, unless they are null (another layer did
  // it), then lets each q attend to those that the layer lets it see. sinks: [n_heads] or null.
  void Attend(const LayerPlan& plan, const float* sinks, const kernels::KvLayer& cache,
              const float* q, const float* k, const float* v, float* out);
  // The n_experts_used experts with the largest of a token's router logits, and their shares.
  void Route(const LayerPlan& plan, const LayerWeights& w, float* router, uint32_t* chosen,
             float* shares);
  // out[t] = sum of shares[t][i] * expert chosen[t][i] of in[t]; rows [n_tokens][embedding_length].
  void Experts(const LayerWeights& w, const float* in, const uint32_t* chosen, const float* shares,
               float* out);
  // gate = activation(gate) * x; x *= y; rows [n_tokens][width].
  void Gate(kernels::Activation activation, float* gate, const float* x, size_t width);
  void Multiply(float* x, const float* y, size_t width);
  // The layer's convolution over `in`, rows [n_tokens][channels]; see
  // kernels/recurrence/recurrence.h.
  void Convolve(const LayerPlan& plan, const LayerWeights& w, float* history, const float* in,
                float* out);
  // The layer's recurrence. qkv and ubc are [n_tokens][channels], alpha, beta and dt
  // [n_tokens][n_value_heads], out [n_tokens][width]. Only ubc is as before behind it.
  void DeltaNet(const LayerPlan& plan, const LayerWeights& w, float* matrices, float* qkv,
                float* alpha, float* beta, float* out);
  void Mamba2(const LayerPlan& plan, const LayerWeights& w, float* matrices, const float* ubc,
              float* dt, float* out);
  // Puts aside the state of a recurrent layer and what it is about to read, scratch.conv_in, alpha
  // and beta; and takes what was read from there.
  void KeepForUndo(const LayerPlan& plan, const SequenceState::Recurrent& state);
  void TakeKept(const LayerPlan& plan, const SequenceState::Recurrent& state);
  // What the tokens, whose rows of the embedding are x, have for each layer:
  // out is [n_tokens][layers][per_layer_length].
  void PerLayerInputs(const Weights& w, std::span<const tokenizer::TokenId> tokens, const float* x,
                      float* out);
  // gate = activation(gate) * what the token has for the layer; gate is
  // [n_tokens][per_layer_length].
  void GateByLayer(size_t layer, const float* per_layer, float* gate);
  // x[t] *= 1 / (1 + exp(-gate[t])); rows [n_tokens][embedding_length].
  void ScaleBySigmoid(const float* gate, float* x);
  // Takes from each of a gate's rows ([n_tokens][width]) their mean and `deviations` standard
  // deviations, and leaves what is positive.
  void Sparsify(float deviations, size_t width, float* gate);
  // x *= factor; rows [n_tokens][embedding_length].
  void Scale(float* x, float factor);
  // x += factor * y; rows [n_tokens][embedding_length].
  void Add(float* x, const float* y, float factor);
  // To be told behind each layer, for a trace.
  void EndLayer(const float* x);
  // The model's logit_scale and logit_softcap; rows [n_tokens][vocab_size].
  void FinishLogits(float* logits);

 private:
  template <class Work>
  void Step(std::string_view kind, uint64_t bytes, std::span<const TraceWeights> weights,
            Work work);
  // Calls work(t) for each of n rows.
  template <class Work>
  void ForRows(size_t n, Work work);
  void TraceAttention(const LayerPlan& plan, const kernels::KvLayer& cache,
                      const kernels::AttentionParams& params, const float* q);
  // Who sees what matrices are multiplied with, or null.
  InputSquares* inputs() const { return trace_ != nullptr ? trace_->inputs : nullptr; }
  uint64_t ChosenBytes(const LayerWeights& w, const uint32_t* chosen) const;

  const Config& config_;
  size_t n_tokens_;
  size_t first_position_;
  Scratch& scratch_;
  kernels::Team& team_;
  Trace* trace_;
};

template <class Work>
void Pass::Step(std::string_view kind, uint64_t bytes, std::span<const TraceWeights> weights,
                Work work) {
  if (trace_ == nullptr) return work();
  const Stopwatch watch;
  work();
  const double seconds = watch.Seconds();
  double operations = 0;
  for (const TraceWeights& w : weights) operations += 2.0 * static_cast<double>(w.rows * w.cols);
  operations *= static_cast<double>(n_tokens_);
  trace_->steps.push_back({kind, {weights.begin(), weights.end()}, bytes, operations, seconds});
}

template <class Work>
void Pass::ForRows(size_t n, Work work) {
  team_.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) work(t);
  });
}

}  // namespace engine

#endif  // PRONK_ENGINE_PASS_PASS_H_
