// ModelDrafter: a small model drafts its most likely token for a large model with the same
// vocabulary (Leviathan et al. 2023). It owns a session, so it is here and not in draft/.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/drafter.h"

namespace engine {

struct Model;
struct SessionOptions;
class Session;

// Throws engine::Error, which names the first difference, if the models' tokens differ. The
// vocabularies' lengths may differ: rows after the last token are padding.
void CheckSameVocabulary(const Model& model, const Model& draft);

class ModelDrafter : public Drafter {
 public:
  // options: of the small model's session. Throws as CheckSameVocabulary() and Session.
  ModelDrafter(const Model& model, const Model& draft, const SessionOptions& options);
  ~ModelDrafter() override;

  std::optional<size_t> FindDrafts(std::span<const tokenizer::TokenId> text) override;
  void Draft(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts) override;
  double cost() const override { return cost_; }  // the ratio of the models' bytes
  bool knows_confidence() const override { return true; }

 private:
  void Write(std::span<const tokenizer::TokenId> text, size_t n,
             std::vector<tokenizer::TokenId>& drafts);

  std::unique_ptr<Session> session_;
  std::function<bool()> should_stop_;
  double cost_;
  size_t n_common_;              // tokens that both models have
  bool has_bad_logits_ = false;  // some logits were not numbers: no more drafts
};

}  // namespace engine
