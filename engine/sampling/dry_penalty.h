// DRY, "don't repeat yourself" (p-e-w 2024, pull request 5677 of text-generation-webui): penalizes
// tokens that would continue a repetition. A longer repetition gives a larger penalty.
//
// Let m be the length of the longest suffix of the text that also occurs before an earlier token x
// and contains no sequence breaker. If x is not a breaker and m >= allowed_length, the logit of x
// falls by multiplier * base^(m - allowed_length).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/sampling/candidates.h"
#include "engine/sampling/sampling.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// Breakers: the ascending ids of tokens that contain one of these texts. Throws engine::Error if no
// token contains one of the texts.
std::vector<tokenizer::TokenId> TokensWith(const std::vector<std::string>& texts,
                                           const tokenizer::Tokenizer& tokenizer);

class DryPenalty {
 public:
  void Apply(Candidates& candidates, std::span<const tokenizer::TokenId> text,
             const pronk::Dry& options, std::span<const tokenizer::TokenId> breakers);

 private:
  // For each token that followed a repetition, the longest repetition's length; ids ascend.
  void FindRepetitions(std::span<const tokenizer::TokenId> text,
                       std::span<const tokenizer::TokenId> breakers);

  std::vector<size_t> matches_;
  std::vector<std::pair<tokenizer::TokenId, size_t>> repetitions_;
};

}  // namespace engine
