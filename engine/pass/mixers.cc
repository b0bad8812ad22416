// The mixer half of a layer: attention, latent attention, convolutions, recurrences. A Llama's
// mixer is Attention(), the first function; the rest is for other families.
#include "engine/pass/mixers.h"

#include <utility>

namespace engine {
namespace {

using Heads = Pass::Heads;

// Attention (Vaswani et al. 2017), with the variants that the plan and the tensors require. For a
// Llama: the products, RoPE in NormAndRope(), Attend() and attn_output; the rest does nothing.
void Attention(const LayerView& layer, const float* in, Pass& pass) {
  const Config& c = pass.config();
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const size_t n_heads = plan.n_heads, length = plan.key_length;
  float *const q = s.q, *k = s.k, *v = s.v;
  const bool in_queries = c.attention_gate == AttentionGate::kInQueries;
  const bool gate_by_head = w.attn_gate.rows == n_heads;
  float* const queries = in_queries ? s.temp : q;
  float* const gate = gate_by_head ? s.temp : s.gate;
  pass.MatMul(in, {{w.attn_q, queries}, {w.attn_k, k}, {w.attn_v, v}, {w.attn_gate, gate}});
  if (in_queries) {  // [tokens][n_heads][query, gate]
    const Heads both = {queries, 2 * n_heads * length, 2 * length};
    pass.CopyHeads(both, {q, n_heads * length, length}, n_heads, length);
    pass.CopyHeads(both.from(length), {s.gate, n_heads * length, length}, n_heads, length);
  }
  pass.Clamp(c.clamp_qkv, n_heads * length, q);
  pass.NormAndRope(plan, {w.attn_q_norm, w.attn_q_norm_bias, w.qk_norm_weights_by_head}, q,
                   n_heads);
  pass.ScaleQueries(plan, q);
  if (w.attn_k.tensor == nullptr) {
    k = v = nullptr;  // an earlier layer has cached them
  } else {
    const size_t kv = plan.n_kv_heads * length;
    if (w.attn_v.tensor == nullptr) pass.CopyHeads({k, kv, 0}, {v, kv, 0}, 1, kv);  // v = k
    pass.Clamp(c.clamp_qkv, kv, k);
    pass.Clamp(c.clamp_qkv, plan.n_kv_heads * plan.value_length, v);
    if (c.value_norm) pass.NormHeads({nullptr}, plan.n_kv_heads, plan.value_length, v);
    const Pass::HeadNorm norm = {w.attn_k_norm, w.attn_k_norm_bias, w.qk_norm_weights_by_head};
    pass.NormAndRope(plan, norm, k, plan.n_kv_heads);
  }
  pass.Attend(layer, q, k, v);
  const size_t width = n_heads * plan.value_length;
  const float* out = pass.Normed(s.attended, w.attn_sub_norm, width, s.attended);
  if (in_queries || w.attn_gate.tensor != nullptr) {
    if (gate_by_head) pass.Repeat(gate, n_heads, plan.value_length, s.gate);
    pass.Gate(c.gate_activation, s.gate, out, width);
    out = s.gate;
  }
  pass.MatMul(out, {{w.attn_output, s.delta}});
  pass.Scale(s.delta, c.attention_output_scale);
}

// Lengths and buffers of latent attention. A head's key has n_unrotated numbers, then n_rope
// rotated numbers, which all heads share.
struct LatentBuffers {
  size_t n_unrotated, n_rope;
  float* low;   // [tokens][query_rank]
  float* wide;  // [tokens][n_heads][head_key_length + head_value_length]
  float* rest;  // the remaining part of scratch.temp
};

// Queries [tokens][n_heads][head_key_length] go to `out`, through `low` [tokens][query_rank] or
// not.
void LatentQueries(const LayerView& layer, const float* in, float* low, float* out, Pass& pass) {
  const LayerWeights& w = layer.w;
  if (w.attn_q.tensor != nullptr) {
    pass.MatMul(in, {{w.attn_q, out}});
    return;
  }
  pass.MatMul(in, {{w.attn_q_a, low}});
  pass.MatMul(pass.Normed(low, w.attn_q_a_norm, layer.plan.query_rank, low), {{w.attn_q_b, out}});
}

// A head's key is attn_k_b times the latent vector. Instead of expanding keys, queries are
// multiplied by the matrix: q . (K c) = (K^T q) . c. So all heads share one cached key, [latent
// vector, n_rope], and the latent vector is also their value. Returns the heads' outputs.
const float* LatentCacheAttention(const LayerView& layer, const float* in,
                                  const LatentBuffers& buffers, Pass& pass) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  const auto& [n_unrotated, n_rope, low, wide, rest] = buffers;
  Scratch& s = pass.scratch();
  const size_t n_heads = plan.n_heads, latent = plan.latent_length;
  const size_t head_key = plan.head_key_length, head_value = plan.head_value_length;
  float* const key = s.k;
  pass.MatMul(in, {{w.attn_kv_a_mqa, key}});
  pass.NormRows(w.attn_kv_a_norm, pass.n_tokens(), latent, latent + n_rope, key);
  pass.Rope(plan, key, 1);
  LatentQueries(layer, in, low, wide, pass);
  if (pass.IsWorthExpanding(layer)) {
    LayerPlan own = plan;  // each expanded head has its own keys and values
    own.key_length = head_key;
    own.value_length = head_value;
    own.rope_offset = n_unrotated;
    pass.Rope(own, wide, n_heads);
    pass.ScaleQueries(own, wide);
    pass.Attend({own, w, layer.index}, wide, key, key, /*expands_latents=*/true);
    return s.attended;
  }
  const Heads head_q = {wide, n_heads * head_key, head_key};
  const Heads q = {s.q, n_heads * (latent + n_rope), latent + n_rope};
  pass.HeadProducts(w.attn_k_b, head_q, q);
  pass.CopyHeads(head_q.from(n_unrotated), q.from(latent), n_heads, n_rope);
  pass.Rope(plan, s.q, n_heads);
  pass.ScaleQueries(plan, s.q);
  pass.Attend(layer, s.q, key, key);
  pass.HeadProducts(w.attn_v_b, {s.attended, n_heads * latent, latent},
                    {wide, n_heads * head_value, head_value});
  return wide;
}

// Older files have one matrix for keys and values, so these are expanded and cached. Returns the
// heads' outputs.
const float* ExpandedCacheAttention(const LayerView& layer, const float* in,
                                    const LatentBuffers& buffers, Pass& pass) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  const auto& [n_unrotated, n_rope, low, wide, rest] = buffers;
  Scratch& s = pass.scratch();
  const size_t n_heads = plan.n_heads, latent = plan.latent_length;
  const size_t head_key = plan.head_key_length, head_value = plan.head_value_length;
  const Heads down = {rest, latent + n_rope, 0};
  const Heads latents = {rest + pass.n_tokens() * (latent + n_rope), latent, 0};
  const Heads k = {s.k, n_heads * head_key, head_key};
  const Heads k_and_v = {wide, n_heads * (n_unrotated + head_value), n_unrotated + head_value};
  pass.MatMul(in, {{w.attn_kv_a_mqa, down.data}});
  pass.CopyHeads(down.from(latent), k.from(n_unrotated), n_heads, n_rope);
  pass.CopyHeads(down, latents, 1, latent);
  pass.NormRows(w.attn_kv_a_norm, pass.n_tokens(), latent, latent, latents.data);
  pass.MatMul(latents.data, {{w.attn_kv_b, wide}});
  pass.CopyHeads(k_and_v, k, n_heads, n_unrotated);
  pass.CopyHeads(k_and_v.from(n_unrotated), {s.v, n_heads * head_value, head_value}, n_heads,
                 head_value);
  LatentQueries(layer, in, low, s.q, pass);
  pass.Rope(plan, s.q, n_heads);
  pass.ScaleQueries(plan, s.q);
  pass.Rope(plan, s.k, n_heads);
  pass.Attend(layer, s.q, s.k, s.v);
  return s.attended;
}

// Multi-head latent attention (Liu et al. 2024): the keys and values of all heads are made from one
// short vector, and only that is cached.
void LatentAttention(const LayerView& layer, const float* in, Pass& pass) {
  const LayerPlan& plan = layer.plan;
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const size_t n_heads = plan.n_heads, width = n_heads * plan.head_value_length;
  float* next = s.temp;
  const auto rows_of = [&](size_t n) { return std::exchange(next, next + pass.n_tokens() * n); };
  LatentBuffers buffers = {};
  buffers.n_rope = plan.key_length - plan.rope_offset;
  buffers.n_unrotated = plan.head_key_length - buffers.n_rope;
  buffers.low = rows_of(plan.query_rank);
  buffers.wide = rows_of(n_heads * plan.head_key_length + width);
  float* const gate = rows_of(n_heads);
  buffers.rest = next;
  const float* attended = w.attn_k_b.tensor != nullptr
                              ? LatentCacheAttention(layer, in, buffers, pass)
                              : ExpandedCacheAttention(layer, in, buffers, pass);
  if (w.attn_gate.tensor != nullptr) {  // a gate of each head (Ling 3, 2026)
    pass.MatMul(in, {{w.attn_gate, gate}});
    pass.Repeat(gate, n_heads, plan.head_value_length, s.gate);
    pass.Gate(pass.config().gate_activation, s.gate, attended, width);
    attended = s.gate;
  }
  pass.MatMul(attended, {{w.attn_output, s.delta}});
}

// A short convolution between two gates (Liquid AI 2025, LFM2).
void ShortConv(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const size_t width = layer.plan.recurrent.channels;
  float *const before = s.temp, *const after = s.gate;  // gates of the convolution
  pass.MatMul(in, {{w.conv_gate, before}, {w.mixer_gate, after}, {w.conv_in, s.conv_in}});
  pass.Multiply(s.conv_in, before, width);
  pass.Convolve(layer);
  pass.Multiply(after, s.attended, width);
  pass.MatMul(after, {{w.mixer_out, s.delta}});
}

// Runs a delta net on its inputs in the scratch buffers, and writes scratch.delta.
void FinishDeltaNet(const LayerView& layer, kernels::Activation gate, Pass& pass) {
  Scratch& s = pass.scratch();
  const RecurrentPlan& r = layer.plan.recurrent;
  pass.Convolve(layer);
  pass.Recur(layer);
  pass.NormRows(layer.w.ssm_norm, pass.n_tokens() * r.n_value_heads, r.value_length, r.value_length,
                s.attended);
  pass.Gate(gate, s.gate, s.attended, r.width());
  pass.MatMul(s.gate, {{layer.w.mixer_out, s.delta}});
}

// Decay and gate are as wide as all keys. One matrix (Ling 3) or two (Kimi Linear, 2025) make each.
void DeltaNetByChannel(const LayerView& layer, const float* in, Pass& pass) {
  Scratch& s = pass.scratch();
  const LayerWeights& w = layer.w;
  const RecurrentPlan& r = layer.plan.recurrent;
  float *const q = s.conv_in, *const k = q + r.width(), *const v = k + r.width();
  float *const decay = s.temp, *const gate = decay + pass.n_tokens() * r.rank;
  const bool by_two = r.rank > 0;
  pass.MatMul(in, {{w.attn_q, q, r.channels},
                   {w.attn_k, k, r.channels},
                   {w.attn_v, v, r.channels},
                   {by_two ? w.alpha_in : w.ssm_alpha, by_two ? decay : s.alpha},
                   {by_two ? w.gate_in : w.mixer_gate, by_two ? gate : s.gate},
                   {w.ssm_beta, s.beta}});
  if (by_two) {
    pass.MatMul(decay, {{w.ssm_alpha, s.alpha}});
    pass.MatMul(gate, {{w.mixer_gate, s.gate}});
  }
  FinishDeltaNet(layer, kernels::Activation::kSigmoid, pass);
}

// Gated delta net (Yang, Kautz, Hatamizadeh 2024).
void DeltaNet(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const RecurrentPlan& r = layer.plan.recurrent;
  const size_t n_key = r.n_key_heads, n_each = r.n_value_heads / n_key, length = r.key_length;
  if (r.decay_by_channel) return DeltaNetByChannel(layer, in, pass);
  pass.MatMul(in, {{w.conv_in, s.conv_in},
                   {w.mixer_gate, s.gate},
                   {w.ssm_alpha, s.alpha},
                   {w.ssm_beta, s.beta}});
  if (w.ssm_in.tensor != nullptr) {  // [tokens][n_key][query, key, n_each values, their gates]
    pass.MatMul(in, {{w.ssm_in, s.temp}});
    const size_t values = n_each * length, head = 2 * length + 2 * values;
    const Heads from = {s.temp, n_key * head, head};
    const Heads to = {s.conv_in, r.channels, length};
    pass.CopyHeads(from, to, n_key, length);
    pass.CopyHeads(from.from(length), to.from(n_key * length), n_key, length);
    pass.CopyHeads(from.from(2 * length), {to.data + 2 * n_key * length, r.channels, values}, n_key,
                   values);
    pass.CopyHeads(from.from(2 * length + values), {s.gate, r.width(), values}, n_key, values);
  }
  if (w.ssm_ba.tensor != nullptr) {  // [tokens][n_key][n_each betas, n_each alphas]
    pass.MatMul(in, {{w.ssm_ba, s.temp}});
    const Heads from = {s.temp, 2 * r.n_value_heads, 2 * n_each};
    pass.CopyHeads(from, {s.beta, r.n_value_heads, n_each}, n_key, n_each);
    pass.CopyHeads(from.from(n_each), {s.alpha, r.n_value_heads, n_each}, n_key, n_each);
  }
  FinishDeltaNet(layer, kernels::Activation::kSilu, pass);
}

// Mamba (Gu and Dao 2023).
void Mamba(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const RecurrentPlan& r = layer.plan.recurrent;
  float *const low = s.temp, *const key = s.beta, *const query = key + r.key_length;
  pass.MatMul(in, {{w.conv_in, s.conv_in}, {w.mixer_gate, s.gate}});
  pass.Convolve(layer);
  pass.MatMul(s.conv_out, {{w.alpha_in, low}, {w.ssm_beta, key}});
  if (r.normed) {
    pass.NormRows(w.ssm_norms[0], pass.n_tokens(), r.rank, r.rank, low, 1, r.norm_eps);
    pass.NormRows(w.ssm_norms[1], pass.n_tokens(), r.key_length, r.n_beta, key, 1, r.norm_eps);
    pass.NormRows(w.ssm_norms[2], pass.n_tokens(), r.key_length, r.n_beta, query, 1, r.norm_eps);
  }
  pass.MatMul(low, {{w.ssm_alpha, s.alpha}});
  pass.Recur(layer);
  pass.Gate(kernels::Activation::kSilu, s.gate, s.attended, r.width());
  pass.MatMul(s.gate, {{w.mixer_out, s.delta}});
}

// Mamba-2 (Dao and Gu 2024).
void Mamba2(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const RecurrentPlan& r = layer.plan.recurrent;
  pass.MatMul(in, {{w.mixer_gate, s.gate}, {w.conv_in, s.conv_in}, {w.ssm_alpha, s.alpha}});
  pass.Convolve(layer);
  pass.Recur(layer);
  pass.Gate(kernels::Activation::kSilu, s.gate, s.attended, r.width());
  if (w.ssm_norm != nullptr) {
    const size_t n = r.n_key_heads, length = r.width() / n;
    pass.NormRows(w.ssm_norm, pass.n_tokens() * n, length, length, s.gate, n);
  }
  pass.MatMul(s.gate, {{w.mixer_out, s.delta}});
}

// Lightning attention (Qin et al. 2024; MiniMax-01, 2025): no softmax, and older tokens fade.
void Lightning(const LayerView& layer, const float* in, Pass& pass) {
  const LayerWeights& w = layer.w;
  Scratch& s = pass.scratch();
  const RecurrentPlan& r = layer.plan.recurrent;
  const size_t n = r.n_value_heads, length = r.value_length, width = r.width();
  pass.MatMul(in, {{w.conv_in, s.temp}, {w.mixer_gate, s.gate}});
  const Heads from = {s.temp, r.channels, 3 * length};  // [tokens][n][query, key, value]
  const Heads to = {s.conv_in, r.channels, length};     // all values, then keys, then queries
  pass.CopyHeads(from.from(2 * length), to, n, length);
  pass.CopyHeads(from.from(length), to.from(width), n, length);
  pass.CopyHeads(from, to.from(2 * width), n, length);
  pass.Convolve(layer);  // with one tap, 1, this is SiLU
  pass.Recur(layer);
  pass.NormRows(w.ssm_norm, pass.n_tokens(), width, width, s.attended, 1, r.norm_eps);
  pass.Gate(kernels::Activation::kSigmoid, s.gate, s.attended, width);
  pass.MatMul(s.gate, {{w.mixer_out, s.delta}});
}

}  // namespace

void MixTokens(const LayerView& layer, Mixer mixer, const float* in, Pass& pass) {
  switch (mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kAttention:
      return Attention(layer, in, pass);
    case Mixer::kLatentAttention:
      return LatentAttention(layer, in, pass);
    case Mixer::kShortConv:
      return ShortConv(layer, in, pass);
    case Mixer::kDeltaNet:
      return DeltaNet(layer, in, pass);
    case Mixer::kMamba:
      return Mamba(layer, in, pass);
    case Mixer::kMamba2:
      return Mamba2(layer, in, pass);
    case Mixer::kLightning:
      return Lightning(layer, in, pass);
  }
}

}  // namespace engine
