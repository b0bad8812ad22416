// The main chapter: a transformer (Vaswani et al. 2017) of the llama family (Touvron et al. 2023),
// from token ids to logits. It does what plain.cc does, but fast and for all models. Every line is
// one operation for the whole batch: pass.h describes the operations, scratch.h the buffers,
// weights.h the weights. Shapes are rows first, [tokens][width]. Models differ in their layers'
// plans (config.h) and in which tensors exist; this code never asks for a model's name.
// family_steps.cc has the steps that a Llama lacks, which do nothing for one.
#include "engine/pass/forward.h"

#include "engine/pass/family_steps.h"
#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"
#include "engine/pass/traced_pass.h"

namespace engine {

void Forward(const Model& model, std::span<const tokenizer::TokenId> tokens,
             std::span<const SequenceSlice> sequences, Scratch& s, kernels::ThreadPool& pool,
             Trace* trace) {
  float* const x = s.x;
  PassWithOptionalTrace any(trace, model.config, tokens.size(), s, pool, sequences);
  Pass& pass = any.get();

  // A token starts as its row of the embedding matrix.
  pass.Embed(model.weights.token_embd, tokens, x);
  pass.EmbedPositions(model.weights, x);  // GPT-2, BERT
  pass.FillRopeAngles();
  pass.PerLayerEmbeddings(model.weights, tokens, x);  // Gemma 3n and 4
  Layers(model.weights, pass);
}

void Layers(const Weights& weights, Pass& pass) {
  const Scratch& s = pass.scratch();
  const size_t width = pass.config().embedding_length;
  float* const x = s.x;
  float* const normed = pass.config().norms_stream ? x : s.normed;  // MiniMax-01
  ResidualStream residual(pass);
  residual.Begin(weights);  // Gemma 3n
  for (size_t i = 0; i < pass.config().n_layers(); ++i) {
    const LayerView layer = {pass.config().layers[i], weights.layers[i], i};
    const LayerWeights& w = layer.w;
    BeginLayer(layer, weights, residual, pass);

    // A token takes in earlier ones: attention, or a recurrence.
    if (layer.plan.mixer != Mixer::kNone) {
      const float* const in = pass.Normed(x, w.attn_norm, width, normed, w.attn_norm_bias);
      MixTokens(layer, layer.plan.mixer, in, pass);
      MakeParallelInput(layer, pass);  // Falcon, GPT-J: before x changes
      FinishMixer(layer, pass);
      // x += s.delta, which MixTokens() wrote; then BERT's norm.
      residual.AddDelta(w.attn_sum_norm);
      AddBesideMixer(layer, in, residual, pass);
    }
    // A network for each token by itself: a dense one, or experts.
    if (layer.plan.ffn_length > 0 || layer.plan.n_experts > 0) {
      // MakeParallelInput() has made the input of a parallel network.
      const float* const in = pass.config().parallel_residual
                                  ? s.normed
                                  : pass.Normed(x, w.ffn_norm, width, normed, w.ffn_norm_bias);
      FeedForward(layer, in, pass);
      FinishNetwork(layer, pass);
      residual.AddDelta(w.ffn_sum_norm);
    }
    FinishLayer(layer, residual, pass);
    pass.EndLayer(i, x);  // reports progress, prefetches weights
  }
  residual.End(weights);  // Gemma 3n
}

void Replay(const Model& model, size_t n, SequenceState& state, Scratch& s,
            kernels::ThreadPool& pool) {
  const SequenceSlice sequence = {.ropes = {}, .state = state, .first_position = 0, .batch_end = n};
  Pass pass(model.config, n, s, pool, {&sequence, 1});
  for (size_t i = 0; i < model.config.n_layers(); ++i) {
    const LayerPlan& plan = model.config.layers[i];
    if (plan.recurrent.channels == 0) continue;
    pass.Replay({plan, model.weights.layers[i], i});
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, kernels::ThreadPool& pool,
            float* logits, Trace* trace) {
  const size_t width = model.config.embedding_length;
  PassWithOptionalTrace any(trace, model.config, n, s, pool);
  Pass& pass = any.get();
  const float* const in = pass.Normed(s.x + first * width, model.weights.output_norm, width,
                                      s.normed, model.weights.output_norm_bias);
  pass.MatMul(in, {{model.weights.output, logits}});
  pass.RefineLogits(model.weights.output, logits);
  pass.FinishLogits(logits);
}

}  // namespace engine
