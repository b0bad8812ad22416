// The main chapter: a llama-family transformer (Touvron et al. 2023), one operation a line.
//
// Every line is one operation for the whole batch; team splits it among the threads. Shapes are
// [tokens][width]; the buffers are described in scratch.h and the weights in weights.h. Families
// differ by what is there (biases, norms on q and k), never by name.
#include "engine/forward.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/ops.h"
#include "kernels/reference.h"

namespace engine {
namespace {

using kernels::Team;

// out[t] = RmsNorm(x[t]) * weight for n rows of `width`.
void NormRows(Team& team, const float* x, const float* weight, float eps, size_t n, size_t width,
              float* out) {
  team.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) {
      kernels::RmsNorm(x + t * width, weight, eps, width, out + t * width);
    }
  });
}

// x[t] += y[t]
void AddRows(Team& team, float* x, const float* y, size_t n, size_t width) {
  team.For(n, 1, [&](size_t begin, size_t end, size_t) {
    kernels::Add(x + begin * width, y + begin * width, (end - begin) * width);
  });
}

// Turns every head of rows ([n][n_heads][head_dim]) by the angle of its row's position.
void RopeRows(Team& team, float* rows, size_t n, size_t n_heads, size_t head_dim,
              const RopeConfig& rope, Scratch& s) {
  const size_t n_pairs = rope.n_dims / 2;
  team.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) {
      kernels::Rope(rows + t * n_heads * head_dim, n_heads, head_dim, rope.n_dims,
                    s.rope_cos.row(t, n_pairs), s.rope_sin.row(t, n_pairs), rope.pairs);
    }
  });
}

}  // namespace

void Forward(const Model& model, const RopeAngles& rope, std::span<const tokenizer::TokenId> tokens,
             size_t first_position, KvCache& cache, Scratch& s, Team& team) {
  const Config& c = model.config;
  const size_t n = tokens.size();
  const size_t width = c.embedding_length;
  const size_t q_width = c.n_heads * c.key_length;
  const size_t k_width = c.n_kv_heads * c.key_length;
  const size_t v_width = c.n_kv_heads * c.value_length;
  const float attention_scale = 1.0f / std::sqrt(static_cast<float>(c.key_length));

  // A token begins as its row of the embedding; its position is a set of angles, the same in all
  // layers.
  team.For(n, 1, [&](size_t begin, size_t end, size_t) {
    for (size_t t = begin; t < end; ++t) {
      const kernels::Matrix& embd = model.weights.token_embd;
      kernels::DequantizeRow(embd.dtype, embd.row(static_cast<size_t>(tokens[t])), width,
                             s.x.row(t, width));
      rope.Fill(first_position + t, s.rope_cos.row(t, rope.n_pairs()),
                s.rope_sin.row(t, rope.n_pairs()));
    }
  });

  for (size_t i = 0; i < c.n_layers; ++i) {
    const LayerWeights& w = model.weights.layers[i];
    const kernels::KvLayer kv = cache.layer(i);

    // Attention: x += attn_output(attention(rope(q), rope(k), v)).
    NormRows(team, s.x.get(), w.attn_norm, c.norm_eps, n, width, s.normed.get());
    s.input.Set(s.normed.get(), n, width);
    kernels::MatMul(team,
                    std::array{
                        kernels::Product{w.attn_q, s.q.get(), q_width, w.attn_q_bias},
                        kernels::Product{w.attn_k, s.k.get(), k_width, w.attn_k_bias},
                        kernels::Product{w.attn_v, s.v.get(), v_width, w.attn_v_bias},
                    },
                    s.input);
    if (c.qk_norm) {  // every head is a row of its own here
      NormRows(team, s.q.get(), w.attn_q_norm, c.norm_eps, n * c.n_heads, c.key_length, s.q.get());
      NormRows(team, s.k.get(), w.attn_k_norm, c.norm_eps, n * c.n_kv_heads, c.key_length,
               s.k.get());
    }
    RopeRows(team, s.q.get(), n, c.n_heads, c.key_length, c.rope, s);
    RopeRows(team, s.k.get(), n, c.n_kv_heads, c.key_length, c.rope, s);
    kernels::StoreKv(kv, first_position, n, s.k.get(), s.v.get());
    kernels::Attention(team, kv, s.q.get(), c.n_heads, n, first_position, attention_scale,
                       s.attended.get());
    s.input.Set(s.attended.get(), n, c.n_heads * c.value_length);
    kernels::MatMul(
        team, std::array{kernels::Product{w.attn_output, s.delta.get(), width, w.attn_output_bias}},
        s.input);
    AddRows(team, s.x.get(), s.delta.get(), n, width);

    // Feed-forward: x += ffn_down(silu(ffn_gate(x)) * ffn_up(x)).
    NormRows(team, s.x.get(), w.ffn_norm, c.norm_eps, n, width, s.normed.get());
    s.input.Set(s.normed.get(), n, width);
    kernels::GatedMatMul(team, w.ffn_gate, w.ffn_up, s.input, s.hidden.get());
    s.input.Set(s.hidden.get(), n, c.ffn_length);
    kernels::MatMul(team, std::array{kernels::Product{w.ffn_down, s.delta.get(), width}}, s.input);
    AddRows(team, s.x.get(), s.delta.get(), n, width);
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, Team& team, float* logits) {
  const Config& c = model.config;
  const size_t width = c.embedding_length;
  NormRows(team, s.x.row(first, width), model.weights.output_norm, c.norm_eps, n, width,
           s.normed.get());
  s.input.Set(s.normed.get(), n, width);
  kernels::MatMul(team, std::array{kernels::Product{model.weights.output, logits, c.vocab_size}},
                  s.input);
}

}  // namespace engine
