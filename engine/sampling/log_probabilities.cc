// Log-softmax, summed in double.
#include "engine/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace engine {

using TokenId = int32_t;

double LogSumExp(std::span<const float> logits) {
  const double max_logit = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max_logit);
  return max_logit + std::log(sum);
}

void SetLogProbabilities(pronk::Token& token, std::span<const float> logits, size_t n) {
  const double log_sum = LogSumExp(logits);
  const auto likely = [&](TokenId i) {
    return pronk::Token::Likely{i, static_cast<float>(logits[static_cast<size_t>(i)] - log_sum)};
  };
  token.log_probability = likely(token.id).log_probability;
  if (n == 0) return;
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(n, ids.size()));
  std::ranges::partial_sort(ids, end, std::greater(),
                            [&](TokenId i) { return logits[static_cast<size_t>(i)]; });
  std::transform(ids.begin(), end, std::back_inserter(token.likeliest), likely);
}

}  // namespace engine
