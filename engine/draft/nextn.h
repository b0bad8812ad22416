// Drafts by a block after the last layer that some models have to predict the token after the next
// ("multi-token prediction", DeepSeek-V3 2024). It reads a token together with the hidden state at
// the previous position: the model's for the first draft, then the block's own.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/model/model.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "kernels/threads/thread_pool.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// The block.
class Nextn {
 public:
  // The model's weights must have the block. Texts have up to size.capacity tokens.
  Nextn(const Model& model, const SequenceState::Size& size, size_t n_threads);

  size_t width() const { return config_.embedding_length; }
  size_t capacity() const { return state_.capacity(); }
  size_t max_tokens() const { return scratch_.max_tokens; }
  void Grow(size_t new_capacity) { state_.Grow(config_, new_capacity); }

  // Reads at most max_tokens() tokens from first_position on. hidden is [tokens.size()][width]: for
  // each token the Hidden() of the previous one, or zeros.
  void Forward(std::span<const tokenizer::TokenId> tokens, const float* hidden,
               size_t first_position, kernels::ThreadPool& pool);
  // The most likely token after the last one read, and how likely it is.
  tokenizer::TokenId Guess(kernels::ThreadPool& pool);
  double ProbabilityOfGuess(tokenizer::TokenId id) const { return ProbabilityOf(logits_, id); }
  // Logits of n tokens of the last batch from its index `first` on: [n][vocab_size].
  void Logits(size_t first, size_t n, kernels::ThreadPool& pool, float* logits);
  // The block's own hidden state after the last token, [width], used until the model's is known.
  const float* OwnHidden() const { return own_hidden_.data(); }

  // hidden = x, a token's residual stream after the last layer, normed unless the family's blocks
  // read it unnormed; both are [width].
  void Hidden(const float* x, float* hidden) const;

 private:
  const Model& model_;
  Config config_;  // the model's, with the block as the only layer
  std::vector<RopeAngles> ropes_;
  SequenceState state_;
  Scratch scratch_;
  size_t n_read_ = 0;  // tokens of the last batch
  std::vector<float> own_hidden_;
  std::vector<float> logits_;  // [vocab_size]
};

// Reads only a prompt's last tokens: all tokens of a long prompt would cost more than they gain.
class NextnDrafter : public Drafter {
 public:
  // The pool must outlive the drafter.
  NextnDrafter(const Model& model, size_t capacity, kernels::KvTypes kv_type,
               kernels::ThreadPool& pool);

  std::optional<size_t> FindDrafts(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  void Observe(std::span<const tokenizer::TokenId> tokens, size_t first, const float* x) override;
  void Truncate(size_t n) override;
  bool knows_confidence() const override { return true; }
  void Grow(size_t capacity) override { nextn_.Grow(capacity); }

 private:
  void ForgetBefore(size_t position);
  size_t end() const { return begin_ + n_hidden_; }
  float* hidden(size_t position) { return hidden_.data() + (position - begin_) * nextn_.width(); }

  Nextn nextn_;
  kernels::ThreadPool& pool_;
  size_t start_ = 0;           // the text's position at which the block began to read
  size_t n_read_ = 0;          // the text's position up to which it has read
  size_t begin_ = 0;           // the text's position of the first row of hidden_
  size_t n_hidden_ = 0;        // rows of hidden_
  std::vector<float> hidden_;  // [rows][width]: for each position the previous hidden state
};

}  // namespace engine
