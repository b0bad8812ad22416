// Log-softmax, summed in double.
#include "engine/sampling/log_probabilities.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace engine {

using tokenizer::TokenId;

LogProbabilities LogProbabilitiesOf(TokenId id, std::span<const float> logits, size_t n) {
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most);
  const auto likely = [&](TokenId i) {
    return LikelyToken{i,
                       static_cast<float>(logits[static_cast<size_t>(i)] - most - std::log(sum))};
  };
  LogProbabilities result = {likely(id).log_probability, {}};
  if (n == 0) return result;
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(n, ids.size()));
  std::ranges::partial_sort(ids, end, std::greater(),
                            [&](TokenId i) { return logits[static_cast<size_t>(i)]; });
  std::transform(ids.begin(), end, std::back_inserter(result.likeliest), likely);
  return result;
}

}  // namespace engine
