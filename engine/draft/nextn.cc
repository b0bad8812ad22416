#include "engine/draft/nextn.h"

#include <algorithm>

#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"
#include "engine/pass/pass.h"
#include "kernels/ops/ops.h"

namespace engine {

Nextn::Nextn(const Model& model, const SequenceState::Size& size, size_t n_threads)
    : model_(model),
      config_(model.config.OfNextn()),
      ropes_(MakeRopes(config_, model.weights.rope_freqs)),
      state_(config_, size),
      scratch_(config_, size.batch, n_threads),
      own_hidden_(config_.embedding_length),
      logits_(config_.vocab_size) {}

void Nextn::Forward(std::span<const tokenizer::TokenId> tokens, const float* hidden,
                    size_t first_position, kernels::Team& team) {
  const NextnWeights& w = model_.weights.nextn;
  const size_t n = width();
  Scratch& s = scratch_;
  float *const x = s.x.get(), *const normed = s.normed.get();
  n_read_ = tokens.size();
  team.Run([&] {
    Pass pass(config_, tokens.size(), first_position, s, team, nullptr);
    pass.Embed(w.embed_tokens.tensor != nullptr ? w.embed_tokens : model_.weights.token_embd,
               tokens, x);
    pass.SetPositions(ropes_);
    // The token's embedding and the hidden state before it, side by side.
    const Pass::Heads part = {normed, n, 0}, both = {s.joined.get(), 2 * n, 0};
    pass.Normed(x, w.enorm, n, normed);
    pass.CopyHeads(part, both, 1, n);
    pass.Normed(hidden, w.hnorm, n, normed);
    pass.CopyHeads(part, both.from(n), 1, n);
    pass.MatMul(s.joined.get(), {{w.eh_proj, x}});

    // A layer like the others, see forward.cc.
    const LayerPlan& plan = config_.layers[0];
    const LayerWeights& layer = w.layer;
    const float* in = pass.Normed(x, layer.attn_norm, n, normed);
    Attention(config_, plan, layer, state_.layer(0), in, s, pass);
    pass.Add(x, s.delta.get(), config_.residual_scale);
    in = pass.Normed(x, layer.ffn_norm, n, normed);
    FeedForward(config_, plan, layer, x, in, s, pass);
    pass.Add(x, s.delta.get(), config_.residual_scale);
  });
}

void Nextn::Logits(size_t first, size_t n, kernels::Team& team, float* logits) {
  const NextnWeights& w = model_.weights.nextn;
  const float* const norm = w.shared_head_norm != nullptr ? w.shared_head_norm  //
                                                          : model_.weights.output_norm;
  Scratch& s = scratch_;
  team.Run([&] {
    Pass pass(config_, n, 0, s, team, nullptr);
    const float* const in = pass.Normed(s.x.row(first, width()), norm, width(), s.normed.get());
    std::copy_n(in + (n - 1) * width(), width(), own_hidden_.begin());
    pass.MatMul(in,
                {{w.shared_head_head.tensor != nullptr ? w.shared_head_head : model_.weights.output,
                  logits}});
  });
}

tokenizer::TokenId Nextn::Guess(kernels::Team& team) {
  Logits(n_read_ - 1, 1, team, logits_.data());
  const auto end = logits_.begin() + static_cast<ptrdiff_t>(model_.tokenizer->vocab().size());
  return static_cast<tokenizer::TokenId>(std::max_element(logits_.begin(), end) - logits_.begin());
}

void Nextn::Hidden(const float* x, float* hidden) const {
  kernels::RmsNorm(x, model_.weights.output_norm, config_.norm_eps, width(), hidden);
}

}  // namespace engine
