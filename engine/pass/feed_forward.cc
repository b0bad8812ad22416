#include "engine/pass/feed_forward.h"

#include <cmath>

namespace engine {
namespace {

// From `in` to s.delta, both [tokens][embedding_length].
void Dense(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s, Pass& pass) {
  if (plan.ffn_sparsity > 0) {
    pass.MatMul(in, {{w.ffn_gate, s.hidden.get()}, {w.ffn_up, s.joined.get()}});
    pass.StatisticalTopK(plan.ffn_sparsity, plan.ffn_length, s.hidden.get());
    pass.Gate(pass.activation(), s.hidden.get(), s.joined.get(), plan.ffn_length);
  } else if (plan.xielu) {
    pass.MatMul(in, {{w.ffn_up, s.hidden.get()}});
    pass.Xielu(*plan.xielu, plan.ffn_length, s.hidden.get());
  } else {
    pass.GatedMatMul(in, w.ffn_gate, w.ffn_up, plan.ffn_limit, s.hidden.get());
  }
  const float* const hidden =
      pass.Normed(s.hidden.get(), w.ffn_sub_norm, plan.ffn_length, s.hidden.get());
  pass.MatMul(hidden, {{w.ffn_down, s.delta.get()}});
}

// A router chooses a few of many networks for each token (Shazeer et al. 2017); one may be shared.
void Experts(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s,
             Pass& pass) {
  pass.MatMul(in, {{w.ffn_gate_inp, s.router.get()}});
  pass.Route(plan, w, s.router.get(), s.chosen.get(), s.shares.get());
  if (w.ffn_latent_down.tensor != nullptr) {  // experts of another width than the stream
    pass.MatMul(in, {{w.ffn_latent_down, s.expert_in.get()}});
    pass.Experts(plan, w, s.expert_in.get(), s.chosen.get(), s.shares.get(), s.expert_out.get());
    pass.MatMul(s.expert_out.get(), {{w.ffn_latent_up, s.delta.get()}});
  } else {
    pass.Experts(plan, w, in, s.chosen.get(), s.shares.get(), s.delta.get());
  }
  if (plan.shared_ffn_length == 0) return;
  pass.GatedMatMul(in, w.ffn_gate_shexp, w.ffn_up_shexp, plan.ffn_limit, s.hidden.get());
  pass.MatMul(s.hidden.get(), {{w.ffn_down_shexp, s.shared.get()}});
  if (w.ffn_gate_inp_shexp.tensor != nullptr) {
    pass.MatMul(in, {{w.ffn_gate_inp_shexp, s.shared_gate.get()}});
    pass.ScaleBySigmoid(s.shared_gate.get(), s.shared.get());
  }
  pass.Add(s.delta.get(), s.shared.get(), 1);
}

// Dense network and experts have sandwich norms; router and experts read the residual stream.
void DenseAndExperts(const LayerPlan& plan, const LayerWeights& w, size_t width, const float* x,
                     const float* in, Scratch& s, Pass& pass) {
  Dense(plan, w, in, s, pass);
  pass.Normed(s.delta.get(), w.ffn_post_norm_1, width, s.shared.get());
  in = pass.Normed(x, w.ffn_gate_inp_scale, width, s.normed.get());
  pass.MatMul(in, {{w.ffn_gate_inp, s.router.get()}});
  pass.Route(plan, w, s.router.get(), s.chosen.get(), s.shares.get());
  in = pass.Normed(x, w.ffn_pre_norm_2, width, s.normed.get());
  pass.Experts(plan, w, in, s.chosen.get(), s.shares.get(), s.delta.get());
  pass.Normed(s.delta.get(), w.ffn_post_norm_2, width, s.delta.get());
  pass.Add(s.delta.get(), s.shared.get(), 1);
}

}  // namespace

void FeedForward(const Config& c, const LayerPlan& plan, const LayerWeights& w, const float* x,
                 const float* in, Scratch& s, Pass& pass) {
  if (plan.n_experts == 0) {
    Dense(plan, w, in, s, pass);
  } else if (plan.ffn_length == 0) {
    Experts(plan, w, in, s, pass);
  } else {
    DenseAndExperts(plan, w, c.embedding_length, x, in, s, pass);
  }
}

void AugmentResidual(const LayerWeights& w, const float* in, Scratch& s, Pass& pass) {
  if (w.laurel_l.tensor == nullptr) return;
  pass.MatMul(in, {{w.laurel_l, s.hidden.get()}});
  pass.MatMul(s.hidden.get(), {{w.laurel_r, s.delta.get()}});
  pass.Normed(s.delta.get(), w.laurel_post_norm, w.laurel_r.rows, s.delta.get());
  pass.Add(s.x.get(), s.delta.get(), 1);
  pass.Add(s.x.get(), in, 1);
  pass.Scale(s.x.get(), std::sqrt(0.5f));
}

void AddPerLayerEmbedding(const LayerWeights& w, size_t layer, size_t width,
                          ResidualStream& residual, Scratch& s, Pass& pass) {
  if (w.inp_gate.tensor == nullptr) return;
  pass.MatMul(residual.PerLayerGate(w), {{w.inp_gate, s.hidden.get()}});
  pass.GateByLayer(layer, s.per_layer.get(), s.hidden.get());
  pass.MatMul(s.hidden.get(), {{w.proj, s.delta.get()}});
  pass.Normed(s.delta.get(), w.post_norm, width, s.delta.get());
  residual.AddPerLayer();
}

}  // namespace engine
