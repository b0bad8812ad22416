// The main chapter: a transformer (Vaswani et al. 2017) of the llama family (Touvron et al. 2023),
// one operation a line.
//
// Every line is one operation for the whole batch (pass.h). Shapes are [tokens][width]; the buffers
// are described in scratch.h and the weights in weights.h. Families differ by what their layers'
// plans say (config.h) and by which tensors are there, never by name.
#include "engine/forward.h"

#include "engine/altup.h"
#include "engine/mixers.h"
#include "engine/pass.h"

namespace engine {
namespace {

// Every token gathers from those before it: `in` to s.delta.
void Attention(const Config& c, const LayerPlan& plan, const LayerWeights& w,
               const kernels::KvLayer& cache, const float* in, Scratch& s, Pass& pass) {
  const size_t n_heads = plan.n_heads, length = plan.key_length;
  float *const q = s.q.get(), *k = s.k.get(), *v = s.v.get();
  float* const queries = c.attention_gate ? s.joined.get() : q;
  pass.MatMul(in, {{w.attn_q, queries}, {w.attn_k, k}, {w.attn_v, v}});
  if (c.attention_gate) {  // a head's query, then its gate
    const Pass::Heads both = {queries, 2 * n_heads * length, 2 * length};
    pass.CopyHeads(both, {q, n_heads * length, length}, n_heads, length);
    pass.CopyHeads(both.from(length), {s.gate.get(), n_heads * length, length}, n_heads, length);
  }
  // A head's position is the angle by which it is turned.
  pass.NormAndRotate(plan, w.attn_q_norm, q, n_heads);
  pass.GrowQueries(plan, q);
  if (w.attn_k.tensor == nullptr) {
    k = v = nullptr;  // those of another layer are there already
  } else {
    const size_t kv = plan.n_kv_heads * length;
    if (w.attn_v.tensor == nullptr) pass.CopyHeads({k, kv, 0}, {v, kv, 0}, 1, kv);
    if (c.value_norm) pass.NormHeads(nullptr, plan.n_kv_heads, plan.value_length, v);
    pass.NormAndRotate(plan, w.attn_k_norm, k, plan.n_kv_heads);
  }
  pass.Attend(plan, w.attn_sinks, cache, q, k, v, s.attended.get());
  const size_t width = n_heads * plan.value_length;
  const float* out = pass.Normed(s.attended.get(), w.attn_sub_norm, width, s.attended.get());
  if (c.attention_gate) {
    pass.Gate(kernels::Activation::kSigmoid, s.gate.get(), out, width);
    out = s.gate.get();
  }
  pass.MatMul(out, {{w.attn_output, s.delta.get()}});
}

void Mix(const Model& model, size_t i, SequenceState& state, const float* in, Scratch& s,
         Pass& pass) {
  const LayerPlan& plan = model.config.layers[i];
  const LayerWeights& w = model.weights.layers[i];
  switch (plan.mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kAttention:
      return Attention(model.config, plan, w, state.layer(i), in, s, pass);
    case Mixer::kLatentAttention:
      return LatentAttention(plan, w, state.layer(i), in, s, pass);
    case Mixer::kShortConv:
      return ShortConv(plan, w, state.recurrent(i), in, s, pass);
    case Mixer::kDeltaNet:
      return DeltaNet(plan, w, state.recurrent(i), in, s, pass);
    case Mixer::kMamba2:
      return Mamba2(plan, w, state.recurrent(i), in, s, pass);
  }
}

// Every token by itself: `in` to s.delta.
void FeedForward(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s,
                 Pass& pass) {
  if (plan.ffn_sparsity > 0) {
    pass.MatMul(in, {{w.ffn_gate, s.hidden.get()}, {w.ffn_up, s.joined.get()}});
    pass.Sparsify(plan.ffn_sparsity, plan.ffn_length, s.hidden.get());
    pass.Gate(pass.activation(), s.hidden.get(), s.joined.get(), plan.ffn_length);
  } else {
    pass.GatedMatMul(in, w.ffn_gate, w.ffn_up, s.hidden.get());
  }
  const float* const hidden =
      pass.Normed(s.hidden.get(), w.ffn_sub_norm, plan.ffn_length, s.hidden.get());
  pass.MatMul(hidden, {{w.ffn_down, s.delta.get()}});
}

// The same by the few of many networks that a router chooses for each token (Shazeer et al. 2017),
// and where there is one, by one that all tokens share.
void Experts(const LayerPlan& plan, const LayerWeights& w, const float* in, Scratch& s,
             Pass& pass) {
  pass.MatMul(in, {{w.ffn_gate_inp, s.router.get()}});
  pass.Route(plan, w, s.router.get(), s.chosen.get(), s.shares.get());
  if (w.ffn_latent_down.tensor != nullptr) {  // experts of another width than the stream's
    pass.MatMul(in, {{w.ffn_latent_down, s.expert_in.get()}});
    pass.Experts(w, s.expert_in.get(), s.chosen.get(), s.shares.get(), s.expert_out.get());
    pass.MatMul(s.expert_out.get(), {{w.ffn_latent_up, s.delta.get()}});
  } else {
    pass.Experts(w, in, s.chosen.get(), s.shares.get(), s.delta.get());
  }
  if (plan.shared_ffn_length == 0) return;
  pass.GatedMatMul(in, w.ffn_gate_shexp, w.ffn_up_shexp, s.hidden.get());
  pass.MatMul(s.hidden.get(), {{w.ffn_down_shexp, s.shared.get()}});
  if (w.ffn_gate_inp_shexp.tensor != nullptr) {
    pass.MatMul(in, {{w.ffn_gate_inp_shexp, s.shared_gate.get()}});
    pass.ScaleBySigmoid(s.shared_gate.get(), s.shared.get());
  }
  pass.Add(s.delta.get(), s.shared.get(), 1);
}

// Both, each between norms of its own; the router and the experts see the stream itself (Gemma 4).
void FeedForwardAndExperts(const LayerPlan& plan, const LayerWeights& w, size_t width,
                           const float* x, const float* in, Scratch& s, Pass& pass) {
  FeedForward(plan, w, in, s, pass);
  pass.Normed(s.delta.get(), w.ffn_post_norm_1, width, s.shared.get());
  in = pass.Normed(x, w.ffn_gate_inp_scale, width, s.normed.get());
  pass.MatMul(in, {{w.ffn_gate_inp, s.router.get()}});
  pass.Route(plan, w, s.router.get(), s.chosen.get(), s.shares.get());
  in = pass.Normed(x, w.ffn_pre_norm_2, width, s.normed.get());
  pass.Experts(w, in, s.chosen.get(), s.shares.get(), s.delta.get());
  pass.Normed(s.delta.get(), w.ffn_post_norm_2, width, s.delta.get());
  pass.Add(s.delta.get(), s.shared.get(), 1);
}

// What a token has for this layer alone, let through as the stream says (Gemma 3n): to s.delta.
void PerLayer(const LayerWeights& w, size_t layer, size_t width, const float* x, Scratch& s,
              Pass& pass) {
  pass.MatMul(x, {{w.inp_gate, s.hidden.get()}});
  pass.GateByLayer(layer, s.per_layer.get(), s.hidden.get());
  pass.MatMul(s.hidden.get(), {{w.proj, s.delta.get()}});
  pass.Normed(s.delta.get(), w.post_norm, width, s.delta.get());
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
  if (c.n_streams > 0) BeginStreams(c, model.weights, s, pass);
  pass.PerLayerInputs(model.weights, tokens, x, s.per_layer.get());

  for (size_t i = 0; i < c.n_layers(); ++i) {
    const LayerPlan& plan = c.layers[i];
    const LayerWeights& w = model.weights.layers[i];

    if (c.n_streams > 0) PredictStreams(c, w, s, pass);
    if (plan.mixer != Mixer::kNone) {
      const float* const in = pass.Normed(x, w.attn_norm, width, s.normed.get());
      Mix(model, i, state, in, s, pass);
      pass.Normed(s.delta.get(), w.attn_post_norm, width, s.delta.get());
      pass.Add(x, s.delta.get(), c.residual_scale);
      if (c.n_streams > 0) Laurel(c, w, in, s, pass);
    }
    if (plan.ffn_length > 0 || plan.n_experts > 0) {
      const float* const in = pass.Normed(x, w.ffn_norm, width, s.normed.get());
      if (plan.n_experts == 0) {
        FeedForward(plan, w, in, s, pass);
      } else if (plan.ffn_length == 0) {
        Experts(plan, w, in, s, pass);
      } else {
        FeedForwardAndExperts(plan, w, width, x, in, s, pass);
      }
      pass.Normed(s.delta.get(), w.ffn_post_norm, width, s.delta.get());
      pass.Add(x, s.delta.get(), c.residual_scale);
    }
    if (c.n_streams > 0) {
      CorrectStreams(c, w, s, pass);
      PerLayer(w, i, width, ScaledFirstStream(c, w, s, pass), s, pass);
      AddToOtherStreams(c, s, pass);
    } else if (w.inp_gate.tensor != nullptr) {
      PerLayer(w, i, width, x, s, pass);
      pass.Add(x, s.delta.get(), 1);
    }
    if (w.layer_output_scale != nullptr) pass.Scale(x, *w.layer_output_scale);
  }
  if (c.n_streams > 0) EndStreams(c, model.weights, s, pass);
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
