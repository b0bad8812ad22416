// The pass of a prediction block: token and hidden state in, the next draft out.
#include "engine/draft/nextn.h"

#include <algorithm>

#include "engine/draft/controller.h"
#include "engine/pass/feed_forward.h"
#include "engine/pass/mixers.h"
#include "engine/pass/pass.h"
#include "kernels/ops/ops.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// The most unread tokens that the block catches up on before a draft: the end of a prompt, or
// tokens generated without its drafts.
constexpr size_t kMaxUnread = 128;

}  // namespace

Nextn::Nextn(const Model& model, const SequenceState::Size& size, size_t n_threads)
    : model_(model),
      config_(model.config.OfNextn()),
      ropes_(MakeRopes(config_, model.weights.rope_freqs)),
      state_(config_, size),
      scratch_(config_, size.batch, n_threads),
      own_hidden_(config_.embedding_length),
      logits_(config_.vocab_size) {}

void Nextn::Forward(std::span<const TokenId> tokens, const float* hidden, size_t first_position,
                    kernels::ThreadPool& pool) {
  const NextnWeights& w = model_.weights.nextn;
  const size_t n = width();
  Scratch& s = scratch_;
  float *const x = s.x, *const normed = s.normed;
  n_read_ = tokens.size();
  pool.Run([&] {
    const SequenceSlice text = {ropes_, state_, first_position, tokens.size()};
    Pass pass(config_, tokens.size(), s, pool, {&text, 1});
    pass.Embed(w.embed_tokens.tensor != nullptr ? w.embed_tokens : model_.weights.token_embd,
               tokens, x);
    pass.FillRopeAngles();
    // [tokens][embedding, hidden state]
    const Pass::Heads half = {normed, n, 0}, both = {s.temp, 2 * n, 0};
    pass.Normed(x, w.enorm, n, normed);
    pass.CopyHeads(half, both, 1, n);
    pass.Normed(hidden, w.hnorm, n, normed);
    pass.CopyHeads(half, both.from(n), 1, n);
    pass.MatMul(s.temp, {{w.eh_proj, x}});

    // A layer as in forward.cc.
    const LayerView layer = {config_.layers[0], w.layer, 0};
    const float* in = pass.Normed(x, w.layer.attn_norm, n, normed);
    MixTokens(layer, layer.plan.mixer, in, pass);
    pass.Add(x, s.delta, config_.residual_scale);
    in = pass.Normed(x, w.layer.ffn_norm, n, normed);
    FeedForward(layer, in, pass);
    pass.Add(x, s.delta, config_.residual_scale);
  });
}

void Nextn::Logits(size_t first, size_t n, kernels::ThreadPool& pool, float* logits) {
  const NextnWeights& w = model_.weights.nextn;
  const float* const norm = w.shared_head_norm != nullptr ? w.shared_head_norm  //
                                                          : model_.weights.output_norm;
  Scratch& s = scratch_;
  pool.Run([&] {
    Pass pass(config_, n, s, pool);
    const float* const x = s.x + first * width();
    const float* const in = pass.Normed(x, norm, width(), s.normed);
    const float* const read = config_.nextn_before_norm ? x : in;
    std::copy_n(read + (n - 1) * width(), width(), own_hidden_.begin());
    pass.MatMul(in,
                {{w.shared_head_head.tensor != nullptr ? w.shared_head_head : model_.weights.output,
                  logits}});
  });
}

TokenId Nextn::Guess(kernels::ThreadPool& pool) {
  Logits(n_read_ - 1, 1, pool, logits_.data());
  return LikeliestOf(std::span(logits_).first(model_.tokenizer->vocab().size()));
}

void Nextn::Hidden(const float* x, float* hidden) const {
  if (config_.nextn_before_norm) {
    std::copy_n(x, width(), hidden);
  } else {
    kernels::RmsNorm(x, model_.weights.output_norm, config_.norm_eps, width(), hidden);
  }
}

NextnDrafter::NextnDrafter(const Model& model, size_t capacity, kernels::KvTypes kv_type,
                           kernels::ThreadPool& pool)
    : nextn_(model, {.capacity = capacity, .batch = kMaxUnread, .kv_type = kv_type},
             pool.max_size()),
      pool_(pool),
      n_hidden_(1),  // zeros, before the first token
      hidden_((kMaxUnread + kMaxDecodeTokens) * nextn_.width()) {}

// Drops hidden states before this position. Unless the block has read this far, its text starts
// here.
void NextnDrafter::ForgetBefore(size_t position) {
  if (position < end()) {
    std::copy(hidden(position), hidden(end()), hidden_.begin());
    n_hidden_ = end() - position;
  } else {
    n_hidden_ = 0;
  }
  begin_ = position;
  if (n_read_ < position) start_ = n_read_ = position;
}

void NextnDrafter::Observe(std::span<const TokenId> tokens, size_t first, const float* x) {
  const size_t new_end = first + 1 + tokens.size();
  if (first + 1 > end()) ForgetBefore(first + 1);
  if (new_end - begin_ > hidden_.size() / nextn_.width()) ForgetBefore(new_end - kMaxUnread);
  for (size_t position = std::max(begin_, first + 1); position < new_end; ++position) {
    nextn_.Hidden(x + (position - first - 1) * nextn_.width(), hidden(position));
  }
  n_hidden_ = new_end - begin_;
}

void NextnDrafter::Truncate(size_t n) {
  n_read_ = std::min(n_read_, n);
  if (n < begin_ || n < start_) {  // earlier hidden states are unknown
    begin_ = start_ = n_read_ = n;
    n_hidden_ = 0;
  } else {
    n_hidden_ = std::min(n_hidden_, n + 1 - begin_);
  }
}

std::optional<size_t> NextnDrafter::FindDrafts(std::span<const TokenId> text) {
  if (text.empty() || text.size() - 1 < begin_ || text.size() > end()) return {};
  return 0;
}

void NextnDrafter::Draft(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) {
  while (n_read_ < text.size()) {
    const size_t count = std::min(text.size() - n_read_, nextn_.max_tokens());
    nextn_.Forward(text.subspan(n_read_, count), hidden(n_read_), n_read_ - start_, pool_);
    n_read_ += count;
  }
  // Only the last hidden state is needed again: the text continues after it.
  ForgetBefore(n_read_ - 1);
  for (size_t i = 0; i < n; ++i) {
    const TokenId id = nextn_.Guess(pool_);
    drafts.push_back(id);
    const size_t position = n_read_ + i - start_;
    if (i + 1 == n || position == nextn_.capacity()) return;
    if (wants_more && !wants_more(nextn_.ProbabilityOfGuess(id))) return;
    nextn_.Forward({&id, 1}, nextn_.OwnHidden(), position, pool_);
  }
}

}  // namespace engine
