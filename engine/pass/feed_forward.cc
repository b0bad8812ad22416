// The feed-forward half of a layer: a dense network, experts, or both.
#include "engine/pass/feed_forward.h"

namespace engine {
namespace {

// Reads `in`, writes scratch.delta, both [tokens][embedding_length]. A Llama takes the last branch.
void Dense(const LayerView& layer, const float* in, Pass& pass) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  if (plan.ffn_sparsity > 0) {
    pass.MatMul(in, {{w.ffn_gate, s.hidden}, {w.ffn_up, s.temp}});
    pass.StatisticalTopK(plan.ffn_sparsity, plan.ffn_length, s.hidden);
    pass.Gate(pass.config().activation, s.hidden, s.temp, plan.ffn_length);
  } else if (plan.xielu) {
    pass.MatMul(in, {{w.ffn_up, s.hidden}});
    pass.Xielu(*plan.xielu, plan.ffn_length, s.hidden);
  } else {
    pass.GatedMatMul(in, w.ffn_gate, w.ffn_up, plan.ffn_limit, s.hidden);
  }
  const float* const hidden = pass.Normed(s.hidden, w.ffn_sub_norm, plan.ffn_length, s.hidden);
  pass.MatMul(hidden, {{w.ffn_down, s.delta}});
}

// A router chooses a few of many networks for each token (Shazeer et al. 2017). Every token may
// also use a shared expert.
void SparseExperts(const LayerView& layer, const float* in, Pass& pass) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  pass.MatMul(in, {{w.ffn_gate_inp, s.router}});
  pass.Route(layer);
  if (w.ffn_latent_down.tensor != nullptr) {  // experts and stream differ in width
    pass.MatMul(in, {{w.ffn_latent_down, s.expert_in}});
    pass.Experts(layer, s.expert_in, s.expert_out);
    pass.MatMul(s.expert_out, {{w.ffn_latent_up, s.delta}});
  } else {
    pass.Experts(layer, in, s.delta);
  }
  if (plan.shared_ffn_length == 0) return;
  pass.GatedMatMul(in, w.ffn_gate_shexp, w.ffn_up_shexp, plan.ffn_limit, s.hidden);
  pass.MatMul(s.hidden, {{w.ffn_down_shexp, s.shared}});
  if (w.ffn_gate_inp_shexp.tensor != nullptr) {
    pass.MatMul(in, {{w.ffn_gate_inp_shexp, s.shared_gate}});
    pass.ScaleBySigmoid(s.shared_gate, s.shared);
  }
  pass.Add(s.delta, s.shared, 1);
  if (pass.config().halves_experts) pass.Scale(s.delta, 0.5f);
}

// The dense network and the experts have norms before and after; the router and the experts read
// the residual stream (Gemma 4).
void DenseAndExperts(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const size_t width = pass.config().embedding_length;
  Dense(layer, in, pass);
  pass.Normed(s.delta, w.ffn_post_norm_1, width, s.shared);
  in = pass.Normed(s.x, w.ffn_gate_inp_scale, width, s.normed);
  pass.MatMul(in, {{w.ffn_gate_inp, s.router}});
  pass.Route(layer);
  in = pass.Normed(s.x, w.ffn_pre_norm_2, width, s.normed);
  pass.Experts(layer, in, s.delta);
  pass.Normed(s.delta, w.ffn_post_norm_2, width, s.delta);
  pass.Add(s.delta, s.shared, 1);
}

}  // namespace

void FeedForward(const LayerView& layer, const float* in, Pass& pass) {
  if (layer.plan.n_experts == 0) return Dense(layer, in, pass);
  if (layer.plan.ffn_length == 0) return SparseExperts(layer, in, pass);
  DenseAndExperts(layer, in, pass);
}

}  // namespace engine
