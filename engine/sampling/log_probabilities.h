// The model's probabilities of tokens: the softmax of its logits, before sampling changes them.
#pragma once

#include <cstddef>
#include <span>

#include "engine/completion.h"

namespace engine {

// ln(sum(exp(logits))).
double LogSumExp(std::span<const float> logits);

// Sets the log probabilities of a token and of the n likeliest, from a row of logits.
void SetLogProbabilities(pronk::Token& token, std::span<const float> logits, size_t n);

}  // namespace engine
