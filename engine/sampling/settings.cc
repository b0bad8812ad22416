#include "engine/sampling/settings.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "engine/error.h"

namespace engine {

double Setting::Get() const {
  return std::visit([](const auto* number) { return static_cast<double>(*number); }, value);
}

void Setting::Set(double number) const {
  std::visit([&]<class T>(T* to) { *to = static_cast<T>(number); }, value);
}

std::vector<Setting> Settings(SamplerOptions& options) {
  constexpr double kMax = 1e6, kMaxPenalty = 1e9;
  Penalties& penalties = options.penalties;
  DryOptions& dry = options.dry;
  return {
      {"temperature", &options.temperature, 0, kMax},
      {"temperature_range", &options.temperature_range, 0, kMax},
      {"temperature_exponent", &options.temperature_exponent, 0, kMax},
      {"top_k", &options.top_k, -1, kMaxTokens},
      {"top_p", &options.top_p, 0, 1},
      {"min_p", &options.min_p, 0, 1},
      {"typical", &options.typical, 0, 1},
      {"top_n_sigma", &options.top_n_sigma, -1, kMax},
      {"xtc_probability", &options.xtc_probability, 0, 1},
      {"xtc_threshold", &options.xtc_threshold, 0, 1},
      {"repeat_penalty", &penalties.repeat, 1e-3, 1e3},
      {"presence_penalty", &penalties.presence, -kMaxPenalty, kMaxPenalty},
      {"frequency_penalty", &penalties.frequency, -kMaxPenalty, kMaxPenalty},
      {"penalty_last_n", &options.repeat_last_n, -1, kMaxTokens},
      {"dry.multiplier", &dry.multiplier, 0, kMax},
      {"dry.base", &dry.base, 1, kMax},
      {"dry.allowed_length", &dry.allowed_length, 0, kMaxTokens},
      {"dry.last_n", &dry.last_n, -1, kMaxTokens},
      {"mirostat.tau", &options.mirostat.tau, 0, kMax},
      {"mirostat.eta", &options.mirostat.eta, 0, kMax},
  };
}

const Setting& FindSetting(const std::vector<Setting>& settings, std::string_view name) {
  return *std::ranges::find(settings, name, &Setting::name);
}

void CheckRange(std::string_view name, double number, double low, double high) {
  if (number >= low && number <= high) return;
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), ": expected a number from %.15g to %.15g, found %.9g",
                low, high, number);
  throw Error(std::string(name) + text.data());
}

}  // namespace engine
