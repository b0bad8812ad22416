// NextnDrafter: drafts by the model's own block for that (nextn.h).
//
// The block's first draft stands on what the layers made of the text; for those behind it, the
// block's own output takes that place. Of a prompt it knows the last tokens only: reading a long
// one with it, too, would take longer than a short answer can gain.
#ifndef PRONK_ENGINE_DRAFT_NEXTN_DRAFTER_H_
#define PRONK_ENGINE_DRAFT_NEXTN_DRAFTER_H_

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/draft/nextn.h"

namespace engine {

class NextnDrafter : public Drafter {
 public:
  // The team must outlive the drafter.
  NextnDrafter(const Model& model, size_t capacity, kernels::KvType kv_type, kernels::Team& team);

  std::optional<size_t> Look(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  void Read(std::span<const tokenizer::TokenId> tokens, size_t first, Scratch& scratch) override;
  void Cut(size_t n) override;

 private:
  void ForgetBefore(size_t position);
  size_t end() const { return begin_ + n_hidden_; }
  float* hidden(size_t position) { return hidden_.data() + (position - begin_) * nextn_.width(); }

  Nextn nextn_;
  kernels::Team& team_;
  size_t start_ = 0;     // the position of the text at which the block's own begin
  size_t n_read_ = 0;    // positions of the text that the block has read, those before start_, too
  size_t begin_ = 0;     // the first position whose hidden state before it is there
  size_t n_hidden_ = 0;  // positions from there on for which it is
  std::vector<float> hidden_;  // [rows][width]
};

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_NEXTN_DRAFTER_H_
