// The main chapter: a transformer (Vaswani et al. 2017) of the llama family (Touvron et al. 2023),
// one operation a line.
//
// Every line is one operation for the whole batch (pass.h). Shapes are [tokens][width]; the buffers
// are described in scratch.h and the weights in weights.h. Families differ by what their layers'
// plans say (config.h) and by which tensors are there, never by name.
#include "engine/forward.h"

#include "engine/pass.h"

namespace engine {
namespace {

// Every token gathers from those before it: `in` to s.delta.
void Attention(const LayerPlan& plan, const LayerWeights& w, const kernels::KvLayer& kv,
               const float* in, Scratch& s, Pass& pass) {
  pass.MatMul(in, {{w.attn_q, s.q.get()}, {w.attn_k, s.k.get()}, {w.attn_v, s.v.get()}});
  // A head's position is the angle by which it is turned.
  pass.NormAndRotate(plan, w.attn_q_norm, s.q.get(), plan.n_heads);
  pass.NormAndRotate(plan, w.attn_k_norm, s.k.get(), plan.n_kv_heads);
  pass.GrowQueries(plan, s.q.get());
  pass.Attend(plan, w.attn_sinks, kv, s.q.get(), s.k.get(), s.v.get(), s.attended.get());
  const float* const out = pass.Normed(s.attended.get(), w.attn_sub_norm,
                                       plan.n_heads * plan.value_length, s.attended.get());
  pass.MatMul(out, {{w.attn_output, s.delta.get()}});
}

// Every token by itself: `in` to s.delta.
void FeedForward(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s,
                 Pass& pass) {
  pass.GatedMatMul(in, w.ffn_gate, w.ffn_up, s.hidden.get());
  const float* const hidden =
      pass.Normed(s.hidden.get(), w.ffn_sub_norm, plan.ffn_length, s.hidden.get());
  pass.MatMul(hidden, {{w.ffn_down, s.delta.get()}});
}

// The same by the few of many networks that a router chooses for each token (Shazeer et al. 2017),
// and where there is one, by one that all tokens share.
void Experts(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s,
             Pass& pass) {
  pass.MatMul(in, {{w.ffn_gate_inp, s.router.get()}});
  pass.Route(plan, s.router.get(), s.chosen.get(), s.shares.get());
  pass.Experts(w, in, s.chosen.get(), s.shares.get(), s.delta.get());
  if (plan.shared_ffn_length == 0) return;
  pass.GatedMatMul(in, w.ffn_gate_shexp, w.ffn_up_shexp, s.hidden.get());
  pass.MatMul(s.hidden.get(), {{w.ffn_down_shexp, s.shared.get()}});
  if (w.ffn_gate_inp_shexp.tensor != nullptr) {
    pass.MatMul(in, {{w.ffn_gate_inp_shexp, s.shared_gate.get()}});
    pass.ScaleBySigmoid(s.shared_gate.get(), s.shared.get());
  }
  pass.Add(s.delta.get(), s.shared.get(), 1);
}

}  // namespace

void Forward(const Model& model, std::span<const RopeAngles> ropes,
             std::span<const tokenizer::TokenId> tokens, size_t first_position,
             SequenceState& state, Scratch& s, kernels::Team& team, Trace* trace) {
  const Config& c = model.config;
  const size_t width = c.embedding_length;
  float* const x = s.x.get();
  Pass pass(c, tokens.size(), first_position, s, team, trace);

  // A token begins as its row of the embedding.
  pass.Embed(model.weights.token_embd, tokens, x);
  pass.SetPositions(ropes);

  for (size_t i = 0; i < c.n_layers(); ++i) {
    const LayerPlan& plan = c.layers[i];
    const LayerWeights& w = model.weights.layers[i];

    const float* in = pass.Normed(x, w.attn_norm, width, s.normed.get());
    Attention(plan, w, state.layer(i), in, s, pass);
    const float* delta = pass.Normed(s.delta.get(), w.attn_post_norm, width, s.delta.get());
    pass.Add(x, delta, c.residual_scale);

    in = pass.Normed(x, w.ffn_norm, width, s.normed.get());
    plan.n_experts > 0 ? Experts(plan, w, in, s, pass) : FeedForward(plan, w, in, s, pass);
    delta = pass.Normed(s.delta.get(), w.ffn_post_norm, width, s.delta.get());
    pass.Add(x, delta, c.residual_scale);
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, kernels::Team& team,
            float* logits, Trace* trace) {
  const size_t width = model.config.embedding_length;
  Pass pass(model.config, n, 0, s, team, trace);
  const float* const in =
      pass.Normed(s.x.row(first, width), model.weights.output_norm, width, s.normed.get());
  pass.MatMul(in, {{model.weights.output, logits}});
  pass.FinishLogits(logits);
}

}  // namespace engine
