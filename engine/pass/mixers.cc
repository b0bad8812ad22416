#include "engine/pass/mixers.h"

#include <utility>

namespace engine {
namespace {

using Heads = Pass::Heads;

// Queries [tokens][n_heads][head_key_length] to `out`, perhaps through `low`, [tokens][query_rank].
void LatentQueries(const LayerPlan& plan, const LayerWeights& w, const float* in, float* low,
                   float* out, Pass& pass) {
  if (w.attn_q.tensor != nullptr) {
    pass.MatMul(in, {{w.attn_q, out}});
    return;
  }
  pass.MatMul(in, {{w.attn_q_a, low}});
  pass.MatMul(pass.Normed(low, w.attn_q_a_norm, plan.query_rank, low), {{w.attn_q_b, out}});
}

// From a delta net's inputs in the scratch buffers to s.delta.
void FinishDeltaNet(kernels::Activation gate, const LayerPlan& plan, const LayerWeights& w,
                    size_t layer, Scratch& s, Pass& pass) {
  const RecurrentPlan& r = plan.recurrent;
  pass.Convolve(plan, w, layer);
  pass.Recur(plan, w, layer);
  pass.NormRows(w.ssm_norm, pass.n_tokens() * r.n_value_heads, r.value_length, r.value_length,
                s.attended.get());
  pass.Gate(gate, s.gate.get(), s.attended.get(), r.width());
  pass.MatMul(s.gate.get(), {{w.mixer_out, s.delta.get()}});
}

// Decay and gate, as wide as all keys, are products of two matrices each (Kimi Linear, 2025).
void DeltaNetByChannel(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
                       Scratch& s, Pass& pass) {
  const RecurrentPlan& r = plan.recurrent;
  float *const q = s.conv_in.get(), *const k = q + r.width(), *const v = k + r.width();
  float *const decay = s.joined.get(), *const gate = decay + pass.n_tokens() * r.rank;
  pass.MatMul(in, {{w.attn_q, q, r.channels},
                   {w.attn_k, k, r.channels},
                   {w.attn_v, v, r.channels},
                   {w.alpha_in, decay},
                   {w.gate_in, gate},
                   {w.ssm_beta, s.beta.get()}});
  pass.MatMul(decay, {{w.ssm_alpha, s.alpha.get()}});
  pass.MatMul(gate, {{w.mixer_gate, s.gate.get()}});
  FinishDeltaNet(kernels::Activation::kSigmoid, plan, w, layer, s, pass);
}

// Attention (Vaswani et al. 2017), with the variants that the plan and the tensors ask for.
void Attention(const Config& c, const LayerPlan& plan, const LayerWeights& w, size_t layer,
               const float* in, Scratch& s, Pass& pass) {
  const size_t n_heads = plan.n_heads, length = plan.key_length;
  float *const q = s.q.get(), *k = s.k.get(), *v = s.v.get();
  const bool in_queries = c.attention_gate == AttentionGate::kInQueries;
  const bool by_head = w.attn_gate.rows == n_heads;
  float* const queries = in_queries ? s.joined.get() : q;
  float* const gate = by_head ? s.joined.get() : s.gate.get();
  pass.MatMul(in, {{w.attn_q, queries}, {w.attn_k, k}, {w.attn_v, v}, {w.attn_gate, gate}});
  if (in_queries) {  // [tokens][n_heads][query, gate]
    const Heads both = {queries, 2 * n_heads * length, 2 * length};
    pass.CopyHeads(both, {q, n_heads * length, length}, n_heads, length);
    pass.CopyHeads(both.from(length), {s.gate.get(), n_heads * length, length}, n_heads, length);
  }
  pass.NormAndRotate(plan, w.attn_q_norm, q, n_heads);
  pass.ScaleQueries(plan, q);
  if (w.attn_k.tensor == nullptr) {
    k = v = nullptr;  // the cache has an earlier layer's
  } else {
    const size_t kv = plan.n_kv_heads * length;
    if (w.attn_v.tensor == nullptr) pass.CopyHeads({k, kv, 0}, {v, kv, 0}, 1, kv);  // v = k
    if (c.value_norm) pass.NormHeads(nullptr, plan.n_kv_heads, plan.value_length, v);
    pass.NormAndRotate(plan, w.attn_k_norm, k, plan.n_kv_heads);
  }
  pass.Attend(plan, w.attn_sinks, layer, q, k, v, s.attended.get());
  const size_t width = n_heads * plan.value_length;
  const float* out = pass.Normed(s.attended.get(), w.attn_sub_norm, width, s.attended.get());
  if (in_queries || w.attn_gate.tensor != nullptr) {
    if (by_head) pass.Repeat(gate, n_heads, plan.value_length, s.gate.get());
    pass.Gate(c.gate_activation, s.gate.get(), out, width);
    out = s.gate.get();
  }
  pass.MatMul(out, {{w.attn_output, s.delta.get()}});
  pass.Scale(s.delta.get(), c.attention_scale);
}

// Multi-head latent attention (Liu et al. 2024): one short vector, cached, has all keys and values.
void LatentAttention(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
                     Scratch& s, Pass& pass) {
  const size_t n_heads = plan.n_heads, latent = plan.latent_length;
  const size_t head_key = plan.head_key_length, head_value = plan.head_value_length;
  // A head's key: n_plain numbers, then n_rotated rotated by RoPE, which all heads share.
  const size_t n_rotated = plan.key_length - plan.rope_offset, n_plain = head_key - n_rotated;
  const size_t down_length = latent + n_rotated;  // of a token's latent vector and rotated key
  float* next = s.joined.get();
  const auto rows_of = [&](size_t n) { return std::exchange(next, next + pass.n_tokens() * n); };
  float* const low = rows_of(plan.query_rank);
  float* const wide = rows_of(n_heads * (head_key + head_value));

  if (w.attn_k_b.tensor != nullptr) {
    // A head's key is attn_k_b times the latent vector. Instead of expanding keys, queries are
    // multiplied by the matrix: q . (K c) = (K^T q) . c. So all heads share one cached key, [latent
    // vector, rotated key], and the latent vector is also their value.
    float* const key = s.k.get();
    pass.MatMul(in, {{w.attn_kv_a_mqa, key}});
    pass.NormRows(w.attn_kv_a_norm, pass.n_tokens(), latent, down_length, key);
    pass.Rotate(plan, key, 1);
    LatentQueries(plan, w, in, low, wide, pass);
    if (pass.MakesHeads(plan, w, layer)) {
      LayerPlan own = plan;  // with keys and values of each head
      own.key_length = head_key;
      own.value_length = head_value;
      own.rope_offset = n_plain;
      pass.Rotate(own, wide, n_heads);
      pass.ScaleQueries(own, wide);
      pass.Attend(own, nullptr, layer, wide, key, key, s.attended.get(), &w);
      pass.MatMul(s.attended.get(), {{w.attn_output, s.delta.get()}});
      return;
    }
    const Heads head_q = {wide, n_heads * head_key, head_key};
    const Heads q = {s.q.get(), n_heads * down_length, down_length};
    pass.HeadProducts(w.attn_k_b, head_q, q);
    pass.CopyHeads(head_q.from(n_plain), q.from(latent), n_heads, n_rotated);
    pass.Rotate(plan, s.q.get(), n_heads);
    pass.ScaleQueries(plan, s.q.get());
    pass.Attend(plan, nullptr, layer, s.q.get(), key, key, s.attended.get());
    pass.HeadProducts(w.attn_v_b, {s.attended.get(), n_heads * latent, latent},
                      {wide, n_heads * head_value, head_value});
    pass.MatMul(wide, {{w.attn_output, s.delta.get()}});
    return;
  }

  // Older files have one matrix for keys and values, which are expanded and cached.
  const Heads down = {rows_of(down_length), down_length, 0};
  const Heads latents = {rows_of(latent), latent, 0};
  const Heads k = {s.k.get(), n_heads * head_key, head_key};
  const Heads k_and_v = {wide, n_heads * (n_plain + head_value), n_plain + head_value};
  pass.MatMul(in, {{w.attn_kv_a_mqa, down.data}});
  pass.CopyHeads(down.from(latent), k.from(n_plain), n_heads, n_rotated);
  pass.CopyHeads(down, latents, 1, latent);
  pass.NormRows(w.attn_kv_a_norm, pass.n_tokens(), latent, latent, latents.data);
  pass.MatMul(latents.data, {{w.attn_kv_b, wide}});
  pass.CopyHeads(k_and_v, k, n_heads, n_plain);
  pass.CopyHeads(k_and_v.from(n_plain), {s.v.get(), n_heads * head_value, head_value}, n_heads,
                 head_value);
  LatentQueries(plan, w, in, low, s.q.get(), pass);
  pass.Rotate(plan, s.q.get(), n_heads);
  pass.ScaleQueries(plan, s.q.get());
  pass.Rotate(plan, s.k.get(), n_heads);
  pass.Attend(plan, nullptr, layer, s.q.get(), s.k.get(), s.v.get(), s.attended.get());
  pass.MatMul(s.attended.get(), {{w.attn_output, s.delta.get()}});
}

// A short convolution between two gates (Liquid AI 2025, LFM2).
void ShortConv(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
               Scratch& s, Pass& pass) {
  const size_t width = plan.recurrent.channels;
  float *const before = s.joined.get(), *const after = s.gate.get();  // gates of the convolution
  pass.MatMul(in, {{w.conv_gate, before}, {w.mixer_gate, after}, {w.conv_in, s.conv_in.get()}});
  pass.Multiply(s.conv_in.get(), before, width);
  pass.Convolve(plan, w, layer);
  pass.Multiply(after, s.attended.get(), width);
  pass.MatMul(after, {{w.mixer_out, s.delta.get()}});
}

// Gated delta net (Yang, Kautz, Hatamizadeh 2024).
void DeltaNet(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in,
              Scratch& s, Pass& pass) {
  const RecurrentPlan& r = plan.recurrent;
  const size_t n_key = r.n_key_heads, n_each = r.n_value_heads / n_key, length = r.key_length;
  if (r.decay_by_channel) return DeltaNetByChannel(plan, w, layer, in, s, pass);
  pass.MatMul(in, {{w.conv_in, s.conv_in.get()},
                   {w.mixer_gate, s.gate.get()},
                   {w.ssm_alpha, s.alpha.get()},
                   {w.ssm_beta, s.beta.get()}});
  if (w.ssm_in.tensor != nullptr) {  // [tokens][n_key][query, key, n_each values, their gates]
    pass.MatMul(in, {{w.ssm_in, s.joined.get()}});
    const size_t values = n_each * length, head = 2 * length + 2 * values;
    const Heads from = {s.joined.get(), n_key * head, head};
    const Heads to = {s.conv_in.get(), r.channels, length};
    pass.CopyHeads(from, to, n_key, length);
    pass.CopyHeads(from.from(length), to.from(n_key * length), n_key, length);
    pass.CopyHeads(from.from(2 * length), {to.data + 2 * n_key * length, r.channels, values}, n_key,
                   values);
    pass.CopyHeads(from.from(2 * length + values), {s.gate.get(), r.width(), values}, n_key,
                   values);
  }
  if (w.ssm_ba.tensor != nullptr) {  // [tokens][n_key][n_each betas, n_each alphas]
    pass.MatMul(in, {{w.ssm_ba, s.joined.get()}});
    const Heads from = {s.joined.get(), 2 * r.n_value_heads, 2 * n_each};
    pass.CopyHeads(from, {s.beta.get(), r.n_value_heads, n_each}, n_key, n_each);
    pass.CopyHeads(from.from(n_each), {s.alpha.get(), r.n_value_heads, n_each}, n_key, n_each);
  }
  FinishDeltaNet(kernels::Activation::kSilu, plan, w, layer, s, pass);
}

// Mamba (Gu and Dao 2023).
void Mamba(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in, Scratch& s,
           Pass& pass) {
  const RecurrentPlan& r = plan.recurrent;
  float *const low = s.joined.get(), *const key = s.beta.get(), *const query = key + r.key_length;
  pass.MatMul(in, {{w.conv_in, s.conv_in.get()}, {w.mixer_gate, s.gate.get()}});
  pass.Convolve(plan, w, layer);
  pass.MatMul(s.conv_out.get(), {{w.alpha_in, low}, {w.ssm_beta, key}});
  if (r.normed) {
    pass.NormRows(w.ssm_norms[0], pass.n_tokens(), r.rank, r.rank, low);
    pass.NormRows(w.ssm_norms[1], pass.n_tokens(), r.key_length, r.n_beta, key);
    pass.NormRows(w.ssm_norms[2], pass.n_tokens(), r.key_length, r.n_beta, query);
  }
  pass.MatMul(low, {{w.ssm_alpha, s.alpha.get()}});
  pass.Recur(plan, w, layer);
  pass.Gate(kernels::Activation::kSilu, s.gate.get(), s.attended.get(), r.width());
  pass.MatMul(s.gate.get(), {{w.mixer_out, s.delta.get()}});
}

// Mamba-2 (Dao and Gu 2024).
void Mamba2(const LayerPlan& plan, const LayerWeights& w, size_t layer, const float* in, Scratch& s,
            Pass& pass) {
  const RecurrentPlan& r = plan.recurrent;
  pass.MatMul(
      in,
      {{w.mixer_gate, s.gate.get()}, {w.conv_in, s.conv_in.get()}, {w.ssm_alpha, s.alpha.get()}});
  pass.Convolve(plan, w, layer);
  pass.Recur(plan, w, layer);
  pass.Gate(kernels::Activation::kSilu, s.gate.get(), s.attended.get(), r.width());
  if (w.ssm_norm != nullptr)
    pass.NormGroups(w.ssm_norm, r.n_key_heads, r.width() / r.n_key_heads, s.gate.get());
  pass.MatMul(s.gate.get(), {{w.mixer_out, s.delta.get()}});
}

}  // namespace

void MixTokens(const Config& config, size_t layer, const LayerWeights& w, Mixer mixer,
               const float* in, Scratch& s, Pass& pass) {
  const LayerPlan& plan = config.layers[layer];
  switch (mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kAttention:
      return Attention(config, plan, w, layer, in, s, pass);
    case Mixer::kLatentAttention:
      return LatentAttention(plan, w, layer, in, s, pass);
    case Mixer::kShortConv:
      return ShortConv(plan, w, layer, in, s, pass);
    case Mixer::kDeltaNet:
      return DeltaNet(plan, w, layer, in, s, pass);
    case Mixer::kMamba:
      return Mamba(plan, w, layer, in, s, pass);
    case Mixer::kMamba2:
      return Mamba2(plan, w, layer, in, s, pass);
  }
}

}  // namespace engine
