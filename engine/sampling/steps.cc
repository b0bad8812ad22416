// The sampling steps, from the logits of a pass to the few candidates that a token is drawn from.
#include "engine/sampling/steps.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace engine {

void ApplyPenalties(Candidates& candidates, std::span<tokenizer::TokenId> recent,
                    const Penalties& penalties) {
  std::sort(recent.begin(), recent.end());
  candidates.ChangeListed(recent, std::identity(), [&](Candidate& c) {
    const auto [first, last] = std::equal_range(recent.begin(), recent.end(), c.id);
    if (first == last) return;
    c.logit = c.logit > 0 ? c.logit / penalties.repeat : c.logit * penalties.repeat;
    c.logit -= penalties.frequency * static_cast<float>(last - first) + penalties.presence;
    c.logit = Comparable(c.logit);  // options may be extreme
  });
}

void TopK(Candidates& candidates, int k) {
  if (k <= 0) return;
  candidates.KeepTop(static_cast<size_t>(k));
}

void TopP(Candidates& candidates, float p) {
  if (p >= 1.0f) return;
  const double max = candidates.Best().logit;
  const double total = candidates.SumOfExp(static_cast<float>(max));
  // Candidates with probabilities below (1 - p) / n sum to less than 1 - p, so the nucleus does not
  // need them. Half of that threshold allows for rounding.
  const double min_probability =
      std::min(1.0 - p, 1.0) / (2.0 * static_cast<double>(candidates.size()));
  candidates.KeepAtLeast(static_cast<float>(max + std::log(min_probability * total)));
  // A nucleus is usually small: sort less likely candidates only until it is complete.
  double sum = 0;
  size_t kept = 0;
  for (double likely = (1.0 - p) / 16; kept < candidates.size(); likely /= 8) {
    const size_t sorted =
        candidates.SortAtLeast(static_cast<float>(max + std::log(likely * total)));
    while (kept < sorted) {
      sum += std::exp(candidates[kept++].logit - max) / total;
      if (sum >= p) return candidates.Truncate(kept);
    }
  }
}

void MinP(Candidates& candidates, float min_p) {
  if (min_p <= 0.0f) return;
  // p >= min_p * p_max, in logits; min_p above 1 must still leave the best.
  const float max = candidates.Best().logit;
  candidates.KeepAtLeast(std::min(max, max + std::log(min_p)));
}

void Typical(Candidates& candidates, float p) {
  if (p >= 1.0f) return;
  const std::span<const double> probabilities = candidates.Probabilities();
  double entropy = 0;
  for (const double q : probabilities) entropy -= q > 0 ? q * std::log(q) : 0;

  const std::span<Candidates::Ranked> ranked = candidates.Ranking();
  for (size_t i = 0; i < ranked.size(); ++i) {
    ranked[i] = {std::abs(-std::log(probabilities[i]) - entropy), probabilities[i], i};
  }
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
    return a.distance != b.distance ? a.distance < b.distance : a.index < b.index;
  });
  double sum = 0;
  size_t n = 0;
  while (n < ranked.size() && sum < p) sum += ranked[n++].probability;
  candidates.KeepRanked(std::max<size_t>(n, 1));
}

void TopNSigma(Candidates& candidates, float n) {
  if (n <= 0.0f) return;
  const auto count = static_cast<double>(candidates.size());
  double mean = 0, squares = 0;
  for (const Candidate& c : candidates.items()) mean += c.logit / count;
  for (const Candidate& c : candidates.items()) squares += (c.logit - mean) * (c.logit - mean);
  const double max = candidates.Best().logit;
  const double min_logit = max - n * std::sqrt(squares / count);
  candidates.RemoveIf([&](const Candidate& c) { return c.logit < std::min(min_logit, max); });
}

void Xtc(Candidates& candidates, float threshold) {
  const std::span<const double> probabilities = candidates.Probabilities();
  const auto is_top = [&](double p) { return p >= threshold; };
  const auto n = static_cast<size_t>(std::ranges::count_if(probabilities, is_top));
  if (n < 2) return;
  candidates.SortTop(n);
  const Candidate least_likely = candidates.items()[n - 1];
  candidates.RemoveIf([&](const Candidate& c) { return MoreLikely(c, least_likely); });
}

void DropAboveSurprisal(Candidates& candidates, double mu) {
  const std::span<const double> probabilities = candidates.Probabilities();
  // -log2 p <= mu, in logits.
  const double max = candidates.Best().logit;
  const double best = *std::max_element(probabilities.begin(), probabilities.end());
  const double min_logit = std::min(max, max - (mu + std::log2(best)) * std::log(2.0));
  candidates.RemoveIf([&](const Candidate& c) { return c.logit < min_logit; });
}

void DynamicTemperature(Candidates& candidates, float low, float high, float exponent) {
  if (candidates.size() < 2) return;
  double entropy = 0;
  for (const double p : candidates.Probabilities()) entropy -= p > 0 ? p * std::log(p) : 0;
  const double normalized = entropy / std::log(static_cast<double>(candidates.size()));
  const double t = low + (high - low) * std::pow(std::clamp(normalized, 0.0, 1.0), exponent);
  Temperature(candidates, std::max(static_cast<float>(t), kMinTemperature));
}

void Temperature(Candidates& candidates, float temperature) {
  for (size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].logit = Comparable(candidates[i].logit / temperature);
  }
}

}  // namespace engine
