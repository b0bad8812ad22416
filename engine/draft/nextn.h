// Nextn: the block behind the last layer that some models have for guessing the token after the
// next ("multi-token prediction", DeepSeek-V3 2024). It reads a token together with what the layers
// made of the text before it.
#ifndef PRONK_ENGINE_DRAFT_NEXTN_H_
#define PRONK_ENGINE_DRAFT_NEXTN_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "engine/pass/rope.h"
#include "engine/pass/scratch.h"
#include "engine/pass/sequence_state.h"
#include "kernels/machine/team.h"
#include "tokenizer/tokenizer.h"

namespace engine {

class Nextn {
 public:
  // For a model whose weights have the block, and texts of up to `size.capacity` tokens.
  Nextn(const Model& model, const SequenceState::Size& size, size_t n_threads);

  size_t width() const { return config_.embedding_length; }
  size_t capacity() const { return state_.capacity(); }
  size_t max_tokens() const { return scratch_.max_tokens; }

  // Reads tokens that stand at first_position and behind it, at most max_tokens() of them. hidden:
  // [tokens.size()][width], for each what Hidden() gave for the token before it (zeros before the
  // first of a text).
  void Forward(std::span<const tokenizer::TokenId> tokens, const float* hidden,
               size_t first_position, kernels::Team& team);
  // The token that the block finds most likely behind the last one that it read.
  tokenizer::TokenId Guess(kernels::Team& team);
  // Logits of n tokens of the last batch from its index `first` on: [n][vocab_size].
  void Logits(size_t first, size_t n, kernels::Team& team, float* logits);
  // What stands for the hidden state of the last token read, where the model has none yet: the
  // block's own. [width]
  const float* OwnHidden() const { return own_hidden_.data(); }

  // What the layers made of a token, x being its residual stream behind the last one: to `hidden`,
  // [width].
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

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_NEXTN_H_
