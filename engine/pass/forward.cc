// The main chapter: a transformer (Vaswani et al. 2017) of the llama family (Touvron et al. 2023),
// from token ids to logits. What plain.cc does for one kind of model, for all of them, and fast.
// Every line is one operation for the whole batch: pass.h describes the operations, scratch.h the
// buffers, weights.h the weights. Shapes are rows first, [tokens][width]. Models differ by their
// layers' plans (config.h) and by which tensors are there, never by name.
#include "engine/pass/forward.h"

#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"

namespace engine {

void Forward(const Model& model, std::span<const tokenizer::TokenId> tokens,
             std::span<const TextPart> parts, Scratch& s, kernels::Team& team, Trace* trace) {
  float* const x = s.x;
  Pass pass(model.config, tokens.size(), s, team, trace, parts);

  // A token starts as its row of the embedding matrix.
  pass.Embed(model.weights.token_embd, tokens, x);
  pass.EmbedPositions(model.weights, x);
  pass.SetPositions();
  pass.PerLayerEmbeddings(model.weights, tokens, x);
  Layers(model.weights, pass);
}

void Layers(const Weights& weights, Pass& pass) {
  const Config& c = pass.config();
  const Scratch& s = pass.scratch();
  const size_t width = c.embedding_length;
  float* const x = s.x;
  ResidualStream residual(pass);
  residual.Begin(weights);
  for (size_t i = 0; i < c.n_layers(); ++i) {
    const LayerView layer = {c.layers[i], weights.layers[i], i};
    const LayerPlan& plan = layer.plan;
    const LayerWeights& w = layer.w;
    if (i > 0 && c.block(i) == 0 && c.norm_between_runs)
      pass.Normed(x, weights.output_norm, width, x, weights.output_norm_bias);
    residual.BeginLayer(w);
    if (plan.mixer != Mixer::kNone) {
      const float* const in = pass.Normed(x, w.attn_norm, width, s.normed, w.attn_norm_bias);
      MixTokens(layer, plan.mixer, in, pass);  // attention, or a recurrence
      if (c.parallel) pass.Normed(x, w.ffn_norm, width, s.normed, w.ffn_norm_bias);
      pass.Normed(s.delta, w.attn_post_norm, width, s.delta);
      residual.Add(w.attn_sum_norm);
      if (plan.beside != Mixer::kNone) {
        MixTokens(layer, plan.beside, in, pass);
        residual.Add({});
      }
      AugmentResidual(w, in, pass);
    }
    if (plan.ffn_length > 0 || plan.n_experts > 0) {
      const float* const in =
          c.parallel ? s.normed : pass.Normed(x, w.ffn_norm, width, s.normed, w.ffn_norm_bias);
      FeedForward(layer, in, pass);  // dense, or experts
      pass.Normed(s.delta, w.ffn_post_norm, width, s.delta);
      residual.Add(w.ffn_sum_norm);
    }
    residual.EndLayer(w);
    AddPerLayerEmbedding(layer, residual, pass);
    if (w.layer_output_scale != nullptr) pass.Scale(x, *w.layer_output_scale);
    pass.EndLayer(i, x);
  }
  residual.End(weights);
}

void Replay(const Model& model, size_t n, SequenceState& state, Scratch& s, kernels::Team& team) {
  const TextPart part = {.ropes = {}, .state = state, .position = 0, .end = n};
  Pass pass(model.config, n, s, team, nullptr, {&part, 1});
  for (size_t i = 0; i < model.config.n_layers(); ++i) {
    const LayerPlan& plan = model.config.layers[i];
    if (plan.recurrent.channels == 0) continue;
    pass.Replay({plan, model.weights.layers[i], i});
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, kernels::Team& team,
            float* logits, Trace* trace) {
  const size_t width = model.config.embedding_length;
  Pass pass(model.config, n, s, team, trace);
  const float* const in = pass.Normed(s.x + first * width, model.weights.output_norm, width,
                                      s.normed, model.weights.output_norm_bias);
  pass.MatMul(in, {{model.weights.output, logits}});
  pass.FinishLogits(logits);
}

}  // namespace engine
