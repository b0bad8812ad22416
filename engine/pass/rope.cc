// Frequencies by each kind of scaling, then tables of cosines and sines.
#include "engine/pass/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace engine {
namespace {

// The (fractional) index of the pair of so many full rotations in the trained context (YaRN, 3.2).
double PairWithRotations(const RopeConfig& c, double rotations) {
  const double context = static_cast<double>(c.original_context);
  return static_cast<double>(c.n_dims) * std::log(context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(c.base));
}

// 1 for pairs that rotate fast (kept as trained), 0 for slow ones (interpolated), linear between.
double YarnKept(const RopeConfig& c, size_t pair) {
  const double last = static_cast<double>(c.n_dims) - 1;
  double low = PairWithRotations(c, c.beta_fast), high = PairWithRotations(c, c.beta_slow);
  if (c.rounds_ramp) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, last);
  const double ramp = (static_cast<double>(pair) - low) / std::max(0.001, high - low);
  return c.ext_factor * (1 - std::clamp(ramp, 0.0, 1.0));
}

// Pairs go to time, height and width, in turn until each has its number, or one after the other;
// the rest do not rotate. A text's three positions are equal.
bool Rotates(const RopeConfig& c, size_t pair) {
  const size_t n = std::accumulate(c.sections.begin(), c.sections.end(), size_t{0});
  if (n == 0) return true;
  const size_t i = pair % n;
  return c.sections_in_turn ? i < 3 * c.sections[i % 3] : i < n - c.sections[3];
}

}  // namespace

RopeAngles::RopeAngles(const RopeConfig& config, const float* freq_divisors)
    : frequencies_(config.n_dims / 2) {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    double f =
        std::pow(config.base, -2.0 * static_cast<double>(i) / static_cast<double>(config.n_dims));
    if (freq_divisors != nullptr && config.uses_divisors) f /= freq_divisors[i];
    if (!Rotates(config, i)) f = 0;
    const double interpolated = f / config.factor;
    if (config.scaling == RopeScaling::kLinear) f = interpolated;
    if (config.scaling == RopeScaling::kYarn) f = std::lerp(interpolated, f, YarnKept(config, i));
    frequencies_[i] = f;
  }
  magnitude_ = config.attention_factor;
  if (config.scaling == RopeScaling::kYarn && config.factor > 1 && config.ext_factor > 0) {
    const double growth = 0.1 * std::log(config.factor);
    magnitude_ *= (1 + growth) / (1 + config.log_multiplier * growth);
  }
  for (const double f : frequencies_) {
    const double whole = f * kMeanPositions;  // the integrals of cos and sin from 0 to here
    mean_cos_.push_back(
        static_cast<float>(f == 0 ? magnitude_ : magnitude_ * std::sin(whole) / whole));
    mean_sin_.push_back(
        static_cast<float>(f == 0 ? 0 : magnitude_ * (1 - std::cos(whole)) / whole));
  }
}

void RopeAngles::Fill(size_t position, float* cos, float* sin) const {
  for (size_t i = 0; i < frequencies_.size(); ++i) {
    const double angle = static_cast<double>(position) * frequencies_[i];
    cos[i] = static_cast<float>(magnitude_ * std::cos(angle));
    sin[i] = static_cast<float>(magnitude_ * std::sin(angle));
  }
}

std::vector<RopeAngles> MakeRopes(const Config& config, const float* freq_divisors) {
  std::vector<RopeAngles> ropes;
  for (const RopeConfig& rope : config.ropes) ropes.emplace_back(rope, freq_divisors);
  return ropes;
}

bool HasLongFactors(const Model& model, size_t context) {
  return model.weights.rope_factors_long != nullptr &&
         context > model.config.ropes[0].original_context;
}

std::vector<RopeAngles> MakeRopes(const Model& model, size_t context) {
  const Weights& w = model.weights;
  const float* divisors = w.rope_freqs;
  if (w.rope_factors_long != nullptr) {
    divisors = HasLongFactors(model, context) ? w.rope_factors_long : w.rope_factors_short;
  }
  return MakeRopes(model.config, divisors);
}

}  // namespace engine
