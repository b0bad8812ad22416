// The main chapter: a llama-family transformer (Touvron et al. 2023), one operation a line.
//
// Every line is one operation for the whole batch (pass.h). Shapes are [tokens][width]; the buffers
// are described in scratch.h and the weights in weights.h. Families differ by what is there
// (biases, norms on q and k), never by name.
#include "engine/forward.h"

#include "engine/pass.h"

namespace engine {

void Forward(const Model& model, const RopeAngles& rope, std::span<const tokenizer::TokenId> tokens,
             size_t first_position, KvCache& cache, Scratch& s, kernels::Team& team, Trace* trace) {
  const Config& c = model.config;
  Pass pass(c, tokens.size(), s, team, trace);

  // A token begins as its row of the embedding; its position is a set of angles, the same in all
  // layers.
  pass.Embed(model.weights.token_embd, tokens, s.x.get());
  pass.SetPositions(rope, first_position);

  for (size_t i = 0; i < c.n_layers; ++i) {
    const LayerWeights& w = model.weights.layers[i];

    // Attention: every token gathers from those before it.
    pass.Norm(s.x.get(), w.attn_norm, s.normed.get());
    pass.MatMul(s.normed.get(), c.embedding_length,
                {{w.attn_q, s.q.get(), w.attn_q_bias},
                 {w.attn_k, s.k.get(), w.attn_k_bias},
                 {w.attn_v, s.v.get(), w.attn_v_bias}});
    if (c.qk_norm) {
      pass.NormHeads(s.q.get(), w.attn_q_norm, c.n_heads, c.key_length);
      pass.NormHeads(s.k.get(), w.attn_k_norm, c.n_kv_heads, c.key_length);
    }
    pass.RotateHeads(s.q.get(), c.n_heads);
    pass.RotateHeads(s.k.get(), c.n_kv_heads);
    pass.Attend(cache.layer(i), first_position, s.q.get(), s.k.get(), s.v.get(), s.attended.get());
    pass.MatMul(s.attended.get(), c.n_heads * c.value_length,
                {{w.attn_output, s.delta.get(), w.attn_output_bias}});
    pass.Add(s.x.get(), s.delta.get());

    // Feed-forward: every token by itself.
    pass.Norm(s.x.get(), w.ffn_norm, s.normed.get());
    pass.GatedMatMul(s.normed.get(), w.ffn_gate, w.ffn_up, s.hidden.get());
    pass.MatMul(s.hidden.get(), c.ffn_length, {{w.ffn_down, s.delta.get()}});
    pass.Add(s.x.get(), s.delta.get());
  }
}

void Logits(const Model& model, size_t first, size_t n, Scratch& s, kernels::Team& team,
            float* logits, Trace* trace) {
  const Config& c = model.config;
  Pass pass(c, n, s, team, trace);
  pass.Norm(s.x.row(first, c.embedding_length), model.weights.output_norm, s.normed.get());
  pass.MatMul(s.normed.get(), c.embedding_length, {{model.weights.output, logits}});
}

}  // namespace engine
