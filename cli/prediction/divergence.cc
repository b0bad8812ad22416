// Kullback-Leibler divergence and its statistics, over all predictions.
#include "cli/prediction/divergence.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/output/text.h"
#include "engine/sampling/log_probabilities.h"

namespace cli {
namespace {

constexpr float kLeastLogProbability = -16;

// The quantiles that llama-perplexity shows.
constexpr std::pair<const char*, double> kQuantiles[] = {
    {"maximum", 1}, {"99.9%", 0.999}, {"99%", 0.99}, {"95%", 0.95}, {"90%", 0.9},
    {"75%", 0.75},  {"median", 0.5},  {"25%", 0.25}, {"10%", 0.1},  {"5%", 0.05},
    {"1%", 0.01},   {"0.1%", 0.001},  {"minimum", 0}};

size_t Top(std::span<const float> values) {
  return static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::vector<float> Sorted(std::vector<float> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// The value below which the share `part` of sorted values falls, interpolated between neighbours.
double Quantile(std::span<const float> sorted, double part) {
  if (sorted.empty()) return 0;
  const double place = part * static_cast<double>(sorted.size() - 1), below = std::floor(place);
  const auto at = static_cast<size_t>(below);
  const double low = sorted[at], high = sorted[std::min(at + 1, sorted.size() - 1)];
  return low + (place - below) * (high - low);
}

}  // namespace

Json EstimateJson(const Estimate& estimate) {
  return {{"value", estimate.value}, {"error", estimate.error}};
}

void Divergence::Add(std::span<const float> base, std::span<const float> logits,
                     tokenizer::TokenId next) {
  const double log_sum = engine::LogSumExp(logits);
  double divergence = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (base[i] <= kLeastLogProbability) continue;
    divergence += std::exp(double{base[i]}) * (base[i] - (logits[i] - log_sum));
  }
  const auto id = static_cast<size_t>(next);
  const double log_p = logits[id] - log_sum, log_base = base[id];
  const double difference = std::exp(log_p) - std::exp(log_base);
  surprisal_.Add(-log_p);
  base_surprisal_.Add(-log_base);
  surprisal_excess_.Add(log_base - log_p);
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
  const auto line = [](const char* name, const std::string& left, const std::string& right) {
    return Format("%-8s %24s   %24s\n", name, left.c_str(), right.c_str());
  };
  std::string text = estimate(Perplexity(), 1, "perplexity %.4f +- %.4f") +
                     estimate(base_surprisal_.Exp(), 1, "; of the base %.4f +- %.4f\n") +
                     estimate(surprisal_excess_.Exp(), 1, "ratio of the two %.4f +- %.4f\n") +
                     estimate(SameTop(), 100, "same token on top: %.3f +- %.3f %%\n\n") +
                     line("", "KL divergence, nats", "p - p of the base, %") +
                     line("mean", estimate(MeanDivergence(), 1, "%.6f +- %.6f"),
                          estimate(difference_.Get(), 100, "%.3f +- %.3f")) +
                     line("rms", "", estimate(RootMeanSquareDifference(), 100, "%.3f +- %.3f"));
  const std::vector<float> divergences = Sorted(divergences_), differences = Sorted(differences_);
  for (const auto& [name, part] : kQuantiles) {
    text += Format("%-8s %24.6f   %24.3f\n", name, Quantile(divergences, part),
                   100 * Quantile(differences, part));
  }
  return text;
}

Json Divergence::ToJson() const {
  Json divergence = EstimateJson(MeanDivergence()), difference = EstimateJson(difference_.Get());
  difference["root_mean_square"] = EstimateJson(RootMeanSquareDifference());
  const std::vector<float> divergences = Sorted(divergences_), differences = Sorted(differences_);
  for (const auto& [name, part] : kQuantiles) {
    divergence["quantiles"][name] = Quantile(divergences, part);
    difference["quantiles"][name] = Quantile(differences, part);
  }
  return {{"perplexity", EstimateJson(Perplexity())},
          {"base_perplexity", EstimateJson(base_surprisal_.Exp())},
          {"perplexity_ratio", EstimateJson(surprisal_excess_.Exp())},
          {"kl_divergence", divergence},
          {"probability_difference", difference},
          {"same_top", EstimateJson(SameTop())}};
}

}  // namespace cli
