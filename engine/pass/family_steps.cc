// What single families add to the six steps of a layer; each line names families that have it.
#include "engine/pass/family_steps.h"

#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"

namespace engine {

void BeginLayer(const LayerView& layer, const Weights& weights, ResidualStream& residual,
                Pass& pass) {
  const Config& c = pass.config();
  float* const x = pass.scratch().x;
  if (layer.i > 0 && c.block(layer.i) == 0 && c.norm_between_runs)  // Nanbeige runs layers twice
    pass.Normed(x, weights.output_norm, c.embedding_length, x, weights.output_norm_bias);
  residual.BeginLayer(layer.w);  // Gemma 3n
}

void FinishMixer(const LayerView& layer, Pass& pass) {
  const LayerWeights& w = layer.w;
  const Scratch& s = pass.scratch();
  const size_t width = pass.config().embedding_length;
  if (pass.config().parallel)  // Falcon, GPT-J, Command R: mixer and network have one input, x
    pass.Normed(s.x, w.ffn_norm, width, s.normed, w.ffn_norm_bias);
  pass.Normed(s.delta, w.attn_post_norm, width, s.delta);  // Gemma, GLM-4, OLMo 2
}

void AddBesideMixer(const LayerView& layer, const float* in, ResidualStream& residual, Pass& pass) {
  if (layer.plan.beside != Mixer::kNone) {  // Falcon-H1
    MixTokens(layer, layer.plan.beside, in, pass);
    residual.Add({});
  }
  AugmentResidual(layer.w, in, pass);  // Gemma 3n
}

const float* NetworkInput(const LayerView& layer, Pass& pass) {
  const LayerWeights& w = layer.w;
  const Config& c = pass.config();
  const Scratch& s = pass.scratch();
  if (c.parallel) return s.normed;                     // by FinishMixer()
  float* const out = c.norms_stream ? s.x : s.normed;  // MiniMax-01
  return pass.Normed(s.x, w.ffn_norm, c.embedding_length, out, w.ffn_norm_bias);
}

void FinishNetwork(const LayerView& layer, Pass& pass) {  // Gemma, GLM-4, OLMo 2
  float* const delta = pass.scratch().delta;
  pass.Normed(delta, layer.w.ffn_post_norm, pass.config().embedding_length, delta);
}

void FinishLayer(const LayerView& layer, ResidualStream& residual, Pass& pass) {
  const float* const scale = layer.w.layer_output_scale;
  float* const x = pass.scratch().x;
  residual.EndLayer(layer.w);                   // Gemma 3n
  AddPerLayerEmbedding(layer, residual, pass);  // Gemma 3n and 4
  if (scale != nullptr) pass.Scale(x, *scale);  // Gemma 4
  pass.EndLayer(layer.i, x);
}

}  // namespace engine
