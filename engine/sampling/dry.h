// DRY, "don't repeat yourself": tokens that would go on with a repetition become less likely, the
// longer it is by now.
//
// By p-e-w, 2024 (pull request 5677 of text-generation-webui), whose definition this is. Let m be
// the most tokens at the end of the text that also stand, the same, somewhere before a token x,
// without a sequence breaker among them. If x is no breaker and m >= allowed_length, its logit
// falls by
//
//     multiplier * base^(m - allowed_length)
#ifndef PRONK_ENGINE_SAMPLING_DRY_H_
#define PRONK_ENGINE_SAMPLING_DRY_H_

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/sampling/candidates.h"
#include "tokenizer/tokenizer.h"

namespace engine {

struct DryOptions {
  float multiplier = 0;    // 0: off
  float base = 1.75f;      // at least 1
  int allowed_length = 2;  // tokens that may repeat as they like
  int last_n = -1;         // tokens that it looks back on; -1: all that there are, 0: off
  std::vector<tokenizer::TokenId> breakers;  // ascending; line ends and quotation marks, usually

  bool Active() const { return multiplier != 0 && last_n != 0; }
};

// The tokens that hold one of these texts, ascending: breakers. Throws engine::Error where no token
// holds a text.
std::vector<tokenizer::TokenId> TokensWith(const std::vector<std::string>& texts,
                                           const tokenizer::Tokenizer& tokenizer);

class Dry {
 public:
  void Apply(Candidates& candidates, std::span<const tokenizer::TokenId> text,
             const DryOptions& options);

 private:
  // For each token that followed a repetition, the length of the longest such; ascending ids.
  void FindRepetitions(std::span<const tokenizer::TokenId> text,
                       std::span<const tokenizer::TokenId> breakers);

  std::vector<size_t> matches_;
  std::vector<std::pair<tokenizer::TokenId, size_t>> repetitions_;
};

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_DRY_H_
