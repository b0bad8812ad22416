// Applies the sampling steps in order, and draws the token.
#include "engine/sampling/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/error.h"
#include "engine/sampling/steps.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// A number in [0, 1) from the top 53 bits. std::uniform_real_distribution may differ between
// libraries.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

constexpr auto kNames = std::to_array<std::pair<std::string_view, SamplerStep>>({
    {"penalties", SamplerStep::kPenalties},
    {"dry", SamplerStep::kDry},
    {"top_n_sigma", SamplerStep::kTopNSigma},
    {"top_k", SamplerStep::kTopK},
    {"typ_p", SamplerStep::kTypical},
    {"top_p", SamplerStep::kTopP},
    {"min_p", SamplerStep::kMinP},
    {"xtc", SamplerStep::kXtc},
    {"temperature", SamplerStep::kTemperature},
});
static_assert(kNames.size() == static_cast<size_t>(SamplerStep::kCount), "each step has a name");

std::vector<std::pair<TokenId, float>> ById(std::vector<std::pair<TokenId, float>> biases) {
  std::ranges::stable_sort(biases, {}, &std::pair<TokenId, float>::first);
  return biases;
}

}  // namespace

std::optional<SamplerStep> FindSamplerStep(std::string_view name) {
  // Other names that llama.cpp accepts for these steps.
  constexpr auto kAliases =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"temp", "temperature"},
                                                                    {"typical_p", "typ_p"},
                                                                    {"typical", "typ_p"},
                                                                    {"typ", "typ_p"},
                                                                    {"nucleus", "top_p"}});
  std::string wanted(name);
  std::ranges::replace(wanted, '-', '_');
  for (const auto& [alias, known] : kAliases) {
    if (wanted == alias) wanted = known;
  }
  for (const auto& [known, step] : kNames) {
    if (known == wanted) return step;
  }
  return std::nullopt;
}

std::string SamplerStepNames() {
  std::string names;
  for (const auto& [name, step] : kNames) names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

Sampler::Sampler(Sampling options, std::vector<TokenId> breakers)
    : options_(std::move(options)),
      biases_(ById(options_.logit_bias)),
      breakers_(std::move(breakers)),
      random_(static_cast<uint64_t>(options_.seed.value)),
      mu_(2.0 * options_.mirostat.tau) {
  constexpr int kReserved = 4096;  // a larger buffer grows when needed
  const int max_recent = options_.repeat_last_n;
  recent_.reserve(
      static_cast<size_t>(max_recent < 0 ? kReserved : std::min(max_recent, kReserved)));
}

void Sampler::SetOptions(const Sampling& options, std::vector<TokenId> breakers) {
  if (options.seed != options_.seed) random_.seed(static_cast<uint64_t>(options.seed.value));
  if (options.mirostat.tau != options_.mirostat.tau) mu_ = 2.0 * options.mirostat.tau;
  options_ = options;
  biases_ = ById(options_.logit_bias);
  breakers_ = std::move(breakers);
}

bool Sampler::IsGreedy() const { return options_.temperature < kMinTemperature; }

bool Sampler::IsUsed(SamplerStep step) const {
  if (step == SamplerStep::kPenalties || step == SamplerStep::kDry) return true;
  // All steps except penalties, DRY and temperature truncate. Greedy sampling takes the best token
  // in any case, and Mirostat truncates by itself.
  if (IsGreedy()) return false;
  return options_.mirostat.version == 0 || step == SamplerStep::kTemperature;
}

void Sampler::Apply(SamplerStep step, std::span<const TokenId> text) {
  switch (step) {
    case SamplerStep::kPenalties: {
      const Penalties penalties = {options_.repeat_penalty, options_.frequency_penalty,
                                   options_.presence_penalty};
      if (!penalties.Active()) return;
      if (options_.repeat_last_n >= 0) {
        text = text.last(std::min(text.size(), static_cast<size_t>(options_.repeat_last_n.value)));
      }
      recent_.resize(text.size());
      std::ranges::copy(text, recent_.begin());
      return ApplyPenalties(candidates_, recent_, penalties);
    }
    case SamplerStep::kDry:
      return dry_.Apply(candidates_, text, options_.dry, breakers_);
    case SamplerStep::kTopNSigma:
      return TopNSigma(candidates_, options_.top_n_sigma);
    case SamplerStep::kTopK:
      return TopK(candidates_, options_.top_k);
    case SamplerStep::kTypical:
      return Typical(candidates_, options_.typical_p);
    case SamplerStep::kTopP:
      return TopP(candidates_, options_.top_p);
    case SamplerStep::kMinP:
      return MinP(candidates_, options_.min_p);
    case SamplerStep::kXtc:
      // When off it takes no random number, so that a seed keeps its text.
      if (options_.xtc_probability > 0 && Uniform(random_) < options_.xtc_probability) {
        Xtc(candidates_, options_.xtc_threshold);
      }
      return;
    case SamplerStep::kTemperature: {
      const float t = options_.temperature, range = options_.temperature_range;
      if (range <= 0) return Temperature(candidates_, t);
      return DynamicTemperature(candidates_, std::max(t - range, 0.0f), t + range,
                                options_.temperature_exponent);
    }
    case SamplerStep::kCount:
      return;
  }
}

size_t Sampler::Draw() {
  const std::span<const double> probabilities = candidates_.Probabilities();
  double left = Uniform(random_);
  for (size_t i = 0; i < probabilities.size(); ++i) {
    left -= probabilities[i];
    if (left < 0) return i;
  }
  return probabilities.size() - 1;  // because of rounding
}

TokenId Sampler::DrawByMirostat() {
  // The surprisal, -log2 p, is computed before any token is dropped.
  const double max = candidates_.Best().logit;
  const std::span<const double> probabilities = candidates_.Probabilities();
  const double best = std::log2(*std::max_element(probabilities.begin(), probabilities.end()));
  DropAboveSurprisal(candidates_, mu_);
  const Candidate picked = candidates_.items()[Draw()];
  const double surprisal = (max - picked.logit) / std::log(2.0) - best;
  mu_ -= options_.mirostat.eta * (surprisal - options_.mirostat.tau);
  return picked.id;
}

TokenId Sampler::Sample(std::span<const float> logits, std::span<const uint64_t> allowed,
                        std::span<const TokenId> text) {
  candidates_.Assign(logits, allowed);
  if (!allowed.empty() && candidates_.size() == 1) {  // no choice is left, whatever the logit is
    has_met_bad_logits_ |= !std::isfinite(candidates_[0].logit);
    return candidates_[0].id;
  }
  has_met_bad_logits_ |= candidates_.DropBroken();  // no step can compare NaN or infinity
  candidates_.AddBiases(biases_);
  if (candidates_.size() == 0) {
    throw Error(allowed.empty() ? "the model's logits are not numbers: its weights are broken"
                                : "no token that the grammar allows is left: biases exclude them, "
                                  "or the model's weights are broken");
  }
  for (const SamplerStep step : options_.steps.value) {
    if (IsUsed(step)) Apply(step, text);
  }
  if (IsGreedy()) return candidates_.Best().id;
  return options_.mirostat.version != 0 ? DrawByMirostat() : candidates_.items()[Draw()].id;
}

}  // namespace engine
