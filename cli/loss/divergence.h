// How far one model's predictions are from another's, in the terms of llama-perplexity.
#ifndef PRONK_CLI_LOSS_DIVERGENCE_H_
#define PRONK_CLI_LOSS_DIVERGENCE_H_

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/loss/text_windows.h"
#include "cli/output/json_file.h"

namespace cli {

// The base is the model held for right (weights that nobody rounded), the other one is judged.
//   KL divergence (Kullback and Leibler 1951): the sum over all tokens of p_base * ln(p_base / p),
//     in nats; 0 where both predict the same. Tokens of p_base below e^-16 are left out.
//   difference: p - p_base of the token that came.
//   same top: how often both find the same token the most probable.
class Divergence {
 public:
  // One prediction: ln(p_base) of all tokens, the other model's logits, the token that came.
  void Add(std::span<const float> base, std::span<const float> logits, tokenizer::TokenId next);

  size_t n() const { return divergences_.size(); }
  Estimate Perplexity() const { return surprise_.Exp(); }
  Estimate MeanDivergence() const { return divergence_.Get(); }
  Estimate SameTop() const { return same_top_.Get(); }  // a share

  // For people: lines of at most 80 columns.
  std::string Text() const;
  Json ToJson() const;

 private:
  Estimate RootMeanSquareDifference() const;

  Mean surprise_, base_surprise_, surprise_excess_, divergence_, difference_, squared_difference_,
      same_top_;
  std::vector<float> divergences_, differences_;  // of each prediction
};

Json EstimateJson(const Estimate& estimate);

}  // namespace cli

#endif  // PRONK_CLI_LOSS_DIVERGENCE_H_
