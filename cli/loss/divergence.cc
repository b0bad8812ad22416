#include "cli/loss/divergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output/text.h"

namespace cli {
namespace {

constexpr float kLeastLogProbability = -16;

// Those that llama-perplexity shows.
struct NamedQuantile {
  const char* name;
  double part;
};
constexpr std::array kQuantiles = {
    NamedQuantile{"maximum", 1},  NamedQuantile{"99.9%", 0.999}, NamedQuantile{"99%", 0.99},
    NamedQuantile{"95%", 0.95},   NamedQuantile{"90%", 0.9},     NamedQuantile{"75%", 0.75},
    NamedQuantile{"median", 0.5}, NamedQuantile{"25%", 0.25},    NamedQuantile{"10%", 0.1},
    NamedQuantile{"5%", 0.05},    NamedQuantile{"1%", 0.01},     NamedQuantile{"0.1%", 0.001},
    NamedQuantile{"minimum", 0},
};

size_t Top(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::vector<float> Sorted(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values;
}

Json EstimateJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

}  // namespace

double Quantile(std::span<const float> sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = part * static_cast<double>(sorted.size() - 1), below = std::floor(place);
  const auto at = static_cast<size_t>(below);
  const double low = sorted[at], high = sorted[std::min(at + 1, sorted.size() - 1)];
  return low + (place - below) * (high - low);
}

void Divergence::Add(std::span<const float> base, std::span<const float> logits,
                     tokenizer::TokenId next) {
  const double log_sum = LogSumExp(logits);
  double divergence = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (base[i] <= kLeastLogProbability) continue;
    divergence += std::exp(double{base[i]}) * (base[i] - (logits[i] - log_sum));
  }
  const auto id = static_cast<size_t>(next);
  const double log_p = logits[id] - log_sum, log_base = base[id];
  const double difference = std::exp(log_p) - std::exp(log_base);
  surprise_.Add(-log_p);
  base_surprise_.Add(-log_base);
  surprise_excess_.Add(log_base - log_p);
  divergence_.Add(divergence);
  difference_.Add(difference);
  squared_difference_.Add(difference * difference);
  same_top_.Add(Top(base) == Top(logits) ? 1 : 0);
  divergences_.push_back(static_cast<float>(divergence));
  differences_.push_back(static_cast<float>(difference));
}

Estimate Divergence::RootMeanSquareDifference() const {
  const Estimate square = squared_difference_.Get();
  const double root = std::sqrt(square.value);
  return {root, root > 0 ? square.error / (2 * root) : 0};
}

std::string Divergence::Text() const {
  const auto estimate = [](Estimate value, double unit, const char* format) {
    return Format(format, unit * value.value, unit * value.error);
  };
  const Estimate rms = RootMeanSquareDifference(), same = SameTop();
  std::string text = "perplexity " + estimate(Perplexity(), 1, "%.4f +- %.4f") + "; of the base " +
                     estimate(BasePerplexity(), 1, "%.4f +- %.4f") + "\n" +
                     estimate(PerplexityRatio(), 1, "ratio of the two %.4f +- %.4f\n") +
                     estimate(same, 100, "same token on top: %.3f +- %.3f %%\n\n");
  text += Format("%-8s %24s   %24s\n", "", "KL divergence, nats", "p - p of the base, %");
  text +=
      Format("%-8s %24s   %24s\n", "mean", estimate(MeanDivergence(), 1, "%.6f +- %.6f").c_str(),
             estimate(MeanDifference(), 100, "%.3f +- %.3f").c_str());
  text += Format("%-8s %24s   %24s\n", "rms", "", estimate(rms, 100, "%.3f +- %.3f").c_str());
  const std::vector<float> divergences = Sorted(divergences_), differences = Sorted(differences_);
  for (const auto& [name, part] : kQuantiles) {
    text += Format("%-8s %24.6f   %24.3f\n", name, Quantile(divergences, part),
                   100 * Quantile(differences, part));
  }
  return text;
}

Json Divergence::ToJson() const {
  Json divergence = EstimateJson(MeanDivergence()), difference = EstimateJson(MeanDifference());
  difference["root_mean_square"] = EstimateJson(RootMeanSquareDifference());
  const std::vector<float> divergences = Sorted(divergences_), differences = Sorted(differences_);
  for (const auto& [name, part] : kQuantiles) {
    divergence["quantiles"][name] = Quantile(divergences, part);
    difference["quantiles"][name] = Quantile(differences, part);
  }
  return {{"perplexity", EstimateJson(Perplexity())},
          {"base_perplexity", EstimateJson(BasePerplexity())},
          {"perplexity_ratio", EstimateJson(PerplexityRatio())},
          {"kl_divergence", divergence},
          {"probability_difference", difference},
          {"same_top", EstimateJson(SameTop())}};
}

}  // namespace cli
