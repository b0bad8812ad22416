// Steps of a layer that only some families have. Comments name families that have the step.
#include "engine/pass/family_steps.h"

#include <cmath>

#include "engine/pass/mixers.h"

namespace engine {
namespace {

// A low-rank path beside the mixer ("learned augmented residual layer", LAuReL; Menghani et al.
// 2024): x = (x + in + norm(laurel_r laurel_l in)) / sqrt(2), where `in` is the mixer's input. Does
// nothing without the matrices.
void AugmentResidual(const LayerWeights& w, const float* in, Pass& pass) {
  if (w.laurel_l.tensor == nullptr) return;
  Scratch& s = pass.scratch();
  pass.MatMul(in, {{w.laurel_l, s.hidden}});
  pass.MatMul(s.hidden, {{w.laurel_r, s.delta}});
  pass.Normed(s.delta, w.laurel_post_norm, w.laurel_r.rows, s.delta);
  pass.Add(s.x, s.delta, 1);
  pass.Add(s.x, in, 1);
  pass.Scale(s.x, std::sqrt(0.5f));
}

// Adds the token's embedding for this layer (Pass::PerLayerEmbeddings), gated by the residual
// stream, projected to its width and normed. Does nothing without the matrices.
void AddPerLayerEmbedding(const LayerView& layer, ResidualStream& residual, Pass& pass) {
  const LayerWeights& w = layer.w;
  if (w.inp_gate.tensor == nullptr) return;
  Scratch& s = pass.scratch();
  pass.MatMul(residual.PerLayerGate(w), {{w.inp_gate, s.hidden}});
  pass.GateByLayer(layer.index, s.hidden);
  pass.MatMul(s.hidden, {{w.proj, s.delta}});
  pass.Normed(s.delta, w.post_norm, w.proj.rows, s.delta);
  residual.AddPerLayer();
}

}  // namespace

void BeginLayer(const LayerView& layer, const Weights& weights, ResidualStream& residual,
                Pass& pass) {
  const Config& c = pass.config();
  float* const x = pass.scratch().x;
  // Nanbeige runs its layers twice.
  if (layer.index > 0 && c.file_layer(layer.index) == 0 && c.norm_between_runs)
    pass.Normed(x, weights.output_norm, c.embedding_length, x, weights.output_norm_bias);
  residual.BeginLayer(layer.w);  // Gemma 3n
}

void MakeParallelInput(const LayerView& layer, Pass& pass) {
  if (!pass.config().parallel_residual) return;  // Falcon, GPT-J, Command R
  const LayerWeights& w = layer.w;
  const Scratch& s = pass.scratch();
  pass.Normed(s.x, w.ffn_norm, pass.config().embedding_length, s.normed, w.ffn_norm_bias);
}

void FinishMixer(const LayerView& layer, Pass& pass) {  // Gemma, GLM-4, OLMo 2
  float* const delta = pass.scratch().delta;
  pass.Normed(delta, layer.w.attn_post_norm, pass.config().embedding_length, delta);
}

void AddBesideMixer(const LayerView& layer, const float* in, ResidualStream& residual, Pass& pass) {
  if (layer.plan.second_mixer != Mixer::kNone) {  // Falcon-H1
    MixTokens(layer, layer.plan.second_mixer, in, pass);
    residual.AddDelta({});
  }
  AugmentResidual(layer.w, in, pass);  // Gemma 3n
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
}

}  // namespace engine
