// How likely the model holds tokens: the softmax of its logits, before sampling changes them.
#ifndef PRONK_ENGINE_SAMPLING_LOG_PROBABILITIES_H_
#define PRONK_ENGINE_SAMPLING_LOG_PROBABILITIES_H_

#include <cstddef>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace engine {

struct LikelyToken {
  tokenizer::TokenId id;
  float log_probability;  // the natural logarithm
};

struct LogProbabilities {
  float of_token;
  std::vector<LikelyToken> likeliest;  // the first is the likeliest
};

// Of a token and of the n likeliest, from a row of logits.
LogProbabilities LogProbabilitiesOf(tokenizer::TokenId id, std::span<const float> logits, size_t n);

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_LOG_PROBABILITIES_H_
