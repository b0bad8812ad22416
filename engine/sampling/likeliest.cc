// The sampler's greedy choice: the largest logit, where it is.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/sampling/sampler.h"
#include "kernels/ops/largest.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// Calls range(begin, end) for each run of bits that are set, of the first n.
template <class Range>
void EachRun(std::span<const uint64_t> bits, size_t n, Range range) {
  size_t begin = 0, end = 0;  // of a run that may go on
  for (size_t word = 0; word < bits.size(); ++word) {
    for (uint64_t left = bits[word]; left != 0;) {
      const auto low = static_cast<size_t>(std::countr_zero(left));
      const auto length = static_cast<size_t>(std::countr_one(left >> low));
      const size_t first = std::min(64 * word + low, n);
      if (first != end) {
        if (begin < end) range(begin, end);
        begin = first;
      }
      end = std::min(64 * word + low + length, n);
      left = low + length == 64 ? 0 : left >> (low + length) << (low + length);
    }
  }
  if (begin < end) range(begin, end);
}

}  // namespace

// Whether no step of the greedy choice changes a logit, but for biases.
bool Sampler::KeepsLogits() const {
  const Penalties penalties = {options_.repeat_penalty, options_.frequency_penalty,
                               options_.presence_penalty};
  return std::ranges::none_of(options_.steps.value, [&](SamplerStep step) {
    return (step == SamplerStep::kPenalties && penalties.Active()) ||
           (step == SamplerStep::kDry && options_.dry.IsOn());
  });
}

// The token with the largest finite logit, read where it is: no candidates. Those with a bias are
// compared one by one. Returns -1 if no logit is finite.
TokenId Sampler::Likeliest(std::span<const float> logits, std::span<const uint64_t> allowed) {
  TokenId best = -1;
  float most = 0;
  const auto take = [&](size_t i, float logit) {
    const auto id = static_cast<TokenId>(i);
    if (best >= 0 && (logit < most || (logit == most && id > best))) return;
    best = id;
    most = logit;
  };
  const auto search = [&](size_t begin, size_t end) {
    const kernels::Largest found = kernels::FindLargest(logits.data() + begin, end - begin);
    has_met_broken_ = has_met_broken_ || !found.all_finite;
    if (begin + found.index < end) take(begin + found.index, logits[begin + found.index]);
  };
  size_t n_allowed = 0, only = 0;
  const auto search_biased = [&](size_t begin, size_t end) {
    auto bias = std::ranges::lower_bound(biases_, static_cast<TokenId>(begin), {},
                                         &std::pair<TokenId, float>::first);
    while (bias != biases_.end() && static_cast<size_t>(bias->first) < end) {
      const auto id = static_cast<size_t>(bias->first);
      search(begin, id);
      float logit = logits[id];
      has_met_broken_ = has_met_broken_ || !std::isfinite(logit);
      for (; bias != biases_.end() && bias->first == static_cast<TokenId>(id); ++bias) {
        logit += bias->second;
      }
      if (std::isfinite(logit)) take(id, logit);
      begin = id + 1;
    }
    search(begin, end);
  };
  if (allowed.empty()) {
    search_biased(0, logits.size());
    return best;
  }
  EachRun(allowed, logits.size(), [&](size_t begin, size_t end) {
    n_allowed += end - begin;
    only = begin;
    search_biased(begin, end);
  });
  return n_allowed == 1 ? static_cast<TokenId>(only) : best;  // a single one whatever its logit
}

}  // namespace engine
