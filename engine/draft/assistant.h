// Drafts by a model that was trained with a larger one and reads its keys, values and hidden state
// (Gemma 4's "assistants", 2026). Its layers have only queries, which attend to the keys and values
// of the large model's last layer with a window, or of its last layer without one. The input of the
// first draft is the large model's embedding of the last token and its last hidden state; later
// drafts use the assistant's own draft and state. All drafts after a text attend from the position
// of the text's last token.
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

class AssistantDrafter : public Drafter {
 public:
  // `state` belongs to the text that `model` writes. All three must outlive the drafter. Throws
  // engine::Error if the assistant was made for a model of another shape.
  AssistantDrafter(const Model& model, const Model& assistant, SequenceState& state,
                   kernels::ThreadPool& pool);

  std::optional<size_t> FindDrafts(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  double cost() const override;
  bool knows_confidence() const override { return true; }
  void Observe(std::span<const tokenizer::TokenId> tokens, size_t first, const float* x) override;
  void Truncate(size_t n) override;

  // The logits of the last draft, [vocab_size of the assistant].
  std::span<const float> logits() const { return logits_; }

 private:
  const Model& model_;
  const Model& assistant_;
  SequenceState& state_;
  kernels::ThreadPool& pool_;
  Config config_;  // the assistant's; kv_layer is a layer of the model
  std::vector<RopeAngles> ropes_;
  Scratch scratch_;
  std::vector<float> logits_;
  std::vector<float> last_;        // [rows][width]: the model's residual stream after tokens
  size_t begin_ = 0, n_rows_ = 0;  // the first row's position; the number of rows
};

}  // namespace engine
