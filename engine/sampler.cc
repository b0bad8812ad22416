#include "engine/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/error.h"

namespace engine {
namespace {

// Logits divided by less than this could leave the range of a float.
constexpr float kColdest = 1e-6f;

// A number in [0, 1) from the top 53 bits: std::uniform_real_distribution may differ between
// libraries.
double Uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

}  // namespace

std::optional<SamplerStep> FindSamplerStep(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, SamplerStep>, 6> kNames = {{
      {"penalties", SamplerStep::kPenalties},
      {"top_k", SamplerStep::kTopK},
      {"typ_p", SamplerStep::kTypical},
      {"top_p", SamplerStep::kTopP},
      {"min_p", SamplerStep::kMinP},
      {"temperature", SamplerStep::kTemperature},
  }};
  for (const auto& [known, step] : kNames) {
    if (known == name) return step;
  }
  return std::nullopt;
}

Sampler::Sampler(SamplerOptions options) : options_(std::move(options)), random_(options_.seed) {
  constexpr size_t kUsual = 4096;  // longer memories grow when they are filled
  recent_.reserve(std::min(MostRecent(), kUsual));
  sorted_.reserve(recent_.capacity());
}

size_t Sampler::MostRecent() const {
  return options_.repeat_last_n < 0 ? SIZE_MAX : static_cast<size_t>(options_.repeat_last_n);
}

void Sampler::Accept(tokenizer::TokenId id) {
  const size_t most = MostRecent();
  if (most == 0) return;
  if (recent_.size() < most) {
    recent_.push_back(id);
  } else {
    recent_[n_accepted_ % most] = id;
  }
  ++n_accepted_;
}

void Sampler::SetHistory(std::span<const tokenizer::TokenId> tokens) {
  const auto last = tokens.last(std::min(MostRecent(), tokens.size()));
  recent_.assign(last.begin(), last.end());
  n_accepted_ = recent_.size();
}

void Sampler::Apply(SamplerStep step) {
  switch (step) {
    case SamplerStep::kPenalties:
      if (options_.penalties.Active()) {
        sorted_ = recent_;
        ApplyPenalties(candidates_, sorted_, options_.penalties);
      }
      return;
    case SamplerStep::kTopK:
      return TopK(candidates_, options_.top_k);
    case SamplerStep::kTypical:
      return Typical(candidates_, options_.typical);
    case SamplerStep::kTopP:
      return TopP(candidates_, options_.top_p);
    case SamplerStep::kMinP:
      return MinP(candidates_, options_.min_p);
    case SamplerStep::kTemperature:
      return Temperature(candidates_, options_.temperature);
  }
}

tokenizer::TokenId Sampler::Sample(std::span<const float> logits) {
  candidates_.Assign(logits);
  for (const auto& [id, bias] : options_.logit_bias) {
    const auto i = static_cast<size_t>(id);
    if (i < candidates_.size()) candidates_[i].logit += bias;
  }
  // What is not a number or not below infinity cannot be compared: no step would mean anything.
  candidates_.RemoveIf(
      [](const Candidate& c) { return !(c.logit < INFINITY && c.logit > -INFINITY); });
  if (candidates_.size() == 0) {
    throw Error("the model's logits are not numbers: its weights are broken");
  }
  const bool greedy = options_.temperature < kColdest;
  for (const SamplerStep step : options_.steps) {
    if (!greedy || step == SamplerStep::kPenalties) Apply(step);
  }
  if (greedy) return candidates_.Best().id;

  const std::span<const double> probabilities = candidates_.Probabilities();
  double left = Uniform(random_);
  for (size_t i = 0; i < probabilities.size(); ++i) {
    left -= probabilities[i];
    if (left < 0) return candidates_.items()[i].id;
  }
  return candidates_.items().back().id;  // rounding left a crumb
}

}  // namespace engine
