// Drafter: guesses the next tokens, so that the model can check several in one pass. Wrong drafts
// never change the text, only the speed (speculation.h).
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kernels/ops/largest.h"
#include "kernels/ops/sum_of_exp.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// The likeliest token; if several are equally likely, the first; 0 if no logit is finite.
inline tokenizer::TokenId LikeliestOf(std::span<const float> logits) {
  const size_t i = kernels::FindLargest(logits.data(), logits.size()).index;
  return static_cast<tokenizer::TokenId>(i < logits.size() ? i : 0);
}

// The probability of the likeliest token.
inline double ProbabilityOf(std::span<const float> logits, tokenizer::TokenId likeliest) {
  const float max_logit = logits[static_cast<size_t>(likeliest)];
  return 1 / kernels::SumOfExp(logits.data(), logits.size(), max_logit);
}

class Drafter {
 public:
  virtual ~Drafter() = default;
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;

  // The number of kinds of drafts, which differ in how often they are right.
  virtual size_t n_kinds() const { return 1; }
  // Searches for drafts that may follow this text. Returns their kind, or nothing if there are
  // none. Takes next to no time.
  virtual std::optional<size_t> FindDrafts(std::span<const tokenizer::TokenId> text) = 0;
  // Appends up to n tokens that may follow the text of the last FindDrafts().
  virtual void Draft(std::span<const tokenizer::TokenId> text, size_t n,
                     std::vector<tokenizer::TokenId>& drafts) = 0;
  // Whether Draft() calls wants_more.
  virtual bool knows_confidence() const { return false; }
  // wants_more, if set, is called after each draft but the n-th with the probability that the
  // drafter gave it. Returns whether the drafter shall make more drafts.
  std::function<bool(double)> wants_more = {};

  // Whether drafts take next to no time. Such drafts are also made only to learn from, when no pass
  // will read them.
  virtual bool costs_nothing() const { return false; }
  // A guess at the time that a draft takes, divided by that of a pass with one token.
  virtual double cost() const { return 0; }

  // Called after each pass with its tokens, from position `first` on, and its residual stream,
  // [tokens][embedding_length]. Truncate() removes rejected tokens.
  virtual void Observe(std::span<const tokenizer::TokenId>, size_t /*first*/, const float* /*x*/) {}
  // From now on texts may have `capacity` tokens.
  virtual void Grow(size_t /*capacity*/) {}
  // The text is now its first n tokens.
  virtual void Truncate(size_t /*n*/) {}
};

}  // namespace engine
