// The distance between two models' predictions, in llama-perplexity's terms.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cli/output/json_file.h"
#include "cli/prediction/text_windows.h"

namespace cli {

// The base is the reference (unquantized weights), the other model is judged. KL divergence
// (Kullback and Leibler 1951): the sum over all tokens of p_base * ln(p_base / p), in nats; 0 if
// both predict the same. Tokens of p_base below e^-16 are left out. Difference: p - p_base of the
// actual token. Same top: how often both models find the same token the most probable.
class Divergence {
 public:
  // Adds a prediction: ln(p_base) of all tokens, the other model's logits, and the actual token.
  void Add(std::span<const float> base, std::span<const float> logits, tokenizer::TokenId next);

  size_t n() const { return divergences_.size(); }
  Estimate Perplexity() const { return surprisal_.Exp(); }
  Estimate MeanDivergence() const { return divergence_.Get(); }
  Estimate SameTop() const { return same_top_.Get(); }  // a fraction

  // A report for people, in lines of at most 80 columns.
  std::string Text() const;
  Json ToJson() const;

 private:
  Estimate RootMeanSquareDifference() const;

  Mean surprisal_, base_surprisal_, surprisal_excess_, divergence_, difference_,
      squared_difference_, same_top_;
  std::vector<float> divergences_, differences_;  // one for each prediction
};

Json EstimateJson(const Estimate& estimate);

}  // namespace cli
