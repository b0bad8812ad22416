// The main chapter: a transformer (Vaswani et al. 2017) of the llama family (Touvron et al. 2023),
// from token ids to logits. What plain.cc does for one kind of model, for all of them, and fast.
// Every line is one operation for the whole batch: pass.h describes the operations, scratch.h the
// buffers, weights.h the weights. Shapes are rows first, [tokens][width]. Models differ by their
// layers' plans (config.h) and by which tensors are there, never by name.
#include "engine/pass/forward.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"
#include "engine/pass/pass.h"
#include "engine/pass/residual.h"
#include "engine/pass/traced_pass.h"

namespace engine {

void Forward(const Model& model, std::span<const tokenizer::TokenId> tokens,
             std::span<const TextPart> parts, Scratch& s, kernels::Team& team, Trace* trace) {
  float* const x = s.x;
  AnyPass any(trace, model.config, tokens.size(), s, team, parts);
  Pass& pass = any.get();

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
  Pass pass(model.config, n, s, team, {&part, 1});
  for (size_t i = 0; i < model.config.n_layers(); ++i) {
    const LayerPlan& plan = model.config.layers[i];
    if (plan.recurrent.channels == 0) continue;
    pass.Replay({plan, model.weights.layers[i], i});
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, kernels::Team& team,
            float* logits, Trace* trace) {
  const size_t width = model.config.embedding_length;
  AnyPass any(trace, model.config, n, s, team);
  Pass& pass = any.get();
  const float* const in = pass.Normed(s.x + first * width, model.weights.output_norm, width,
                                      s.normed, model.weights.output_norm_bias);
  pass.MatMul(in, {{model.weights.output, logits}});
  pass.FinishLogits(logits);
}

bool IsWorthLogitsOf(const Model& model, std::span<const uint64_t> ids) {
  // Rows far apart are read at half the speed, and each has its own call.
  constexpr size_t kMostRows = 1024, kLeastShare = 16;
  size_t n = 0;
  for (const uint64_t word : ids) n += static_cast<size_t>(std::popcount(word));
  return n > 0 && n <= std::min(kMostRows, model.config.vocab_size / kLeastShare) &&
         model.config.logit_softcap == 0;
}

void LogitsOf(const Model& model, size_t token, std::span<const uint64_t> ids, Scratch& s,
              kernels::Team& team, float* logits) {
  const size_t width = model.config.embedding_length;
  const WeightView& output = model.weights.output;
  std::vector<kernels::Product> rows;
  for (size_t word = 0; word < ids.size(); ++word) {
    for (uint64_t left = ids[word]; left != 0; left &= left - 1) {
      const size_t id = 64 * word + static_cast<size_t>(std::countr_zero(left));
      if (id >= output.rows) break;
      kernels::Matrix row = output;
      row.data = output.row(id);
      row.rows = 1;
      rows.push_back({row, logits + id, 1, output.bias != nullptr ? output.bias + id : nullptr});
    }
  }
  Pass pass(model.config, 1, s, team, nullptr);
  const float* const in = pass.Normed(s.x + token * width, model.weights.output_norm, width,
                                      s.normed, model.weights.output_norm_bias);
  s.input.Set(in, 1, output.cols);
  kernels::MatMul(team, rows, s.input);
  for (const kernels::Product& row : rows) {
    if (model.config.logit_scale != 1) kernels::Scale(row.out, model.config.logit_scale, 1);
  }
}

}  // namespace engine
