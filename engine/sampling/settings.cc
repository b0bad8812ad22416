#include "engine/sampling/settings.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>

#include "engine/error.h"

namespace engine {
namespace {

// "top_k;top_p;temperature". A step that is unknown here is passed over, as llama.cpp does.
void ReadSteps(const std::string& text, SamplerOptions& options, FileSampling& result) {
  std::vector<SamplerStep> steps;
  std::istringstream in(text);
  for (std::string name; std::getline(in, name, ';');) {
    if (const auto step = FindSamplerStep(name)) {
      steps.push_back(*step);
    } else if (result.notes.empty()) {
      result.notes.push_back(std::string(kSamplingPrefix) + "sequence: '" + name.substr(0, 40) +
                             "' is none of " + SamplerStepNames() + ": passed over");
    }
  }
  if (steps.empty()) return;
  options.steps = std::move(steps);
  result.names.push_back(kSteps);
}

}  // namespace

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
      {"temperature", &options.temperature, 0, kMax, "temp"},
      {"temperature_range", &options.temperature_range, 0, kMax},
      {"temperature_exponent", &options.temperature_exponent, 0, kMax},
      {"top_k", &options.top_k, -1, kMaxTokens, "top_k"},
      {"top_p", &options.top_p, 0, 1, "top_p"},
      {"min_p", &options.min_p, 0, 1, "min_p"},
      {"typical", &options.typical, 0, 1},
      {"top_n_sigma", &options.top_n_sigma, -1, kMax},
      {"xtc_probability", &options.xtc_probability, 0, 1, "xtc_probability"},
      {"xtc_threshold", &options.xtc_threshold, 0, 1, "xtc_threshold"},
      {"repeat_penalty", &penalties.repeat, 1e-3, 1e3, "penalty_repeat"},
      {"presence_penalty", &penalties.presence, -kMaxPenalty, kMaxPenalty},
      {"frequency_penalty", &penalties.frequency, -kMaxPenalty, kMaxPenalty},
      {"penalty_last_n", &options.repeat_last_n, -1, kMaxTokens, "penalty_last_n"},
      {"dry.multiplier", &dry.multiplier, 0, kMax},
      {"dry.base", &dry.base, 1, kMax},
      {"dry.allowed_length", &dry.allowed_length, 0, kMaxTokens},
      {"dry.last_n", &dry.last_n, -1, kMaxTokens},
      {"mirostat", &options.mirostat.version, 0, 2, "mirostat"},
      {"mirostat.tau", &options.mirostat.tau, 0, kMax, "mirostat_tau"},
      {"mirostat.eta", &options.mirostat.eta, 0, kMax, "mirostat_eta"},
  };
}

const Setting& FindSetting(const std::vector<Setting>& settings, std::string_view name) {
  return *std::ranges::find(settings, name, &Setting::name);
}

std::string RangeFault(double number, double low, double high) {
  if (number >= low && number <= high) return "";
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(), "expected a number from %.15g to %.15g, found %.9g", low,
                high, number);
  return text.data();
}

void CheckRange(std::string_view name, double number, double low, double high) {
  const std::string fault = RangeFault(number, low, high);
  if (!fault.empty()) throw Error(name, ": ", fault);
}

FileSampling ReadSampling(const gguf::Metadata& metadata, SamplerOptions& options) {
  FileSampling result;
  const std::string prefix(kSamplingPrefix), sequence = prefix + "sequence";
  std::vector<std::string> known = {sequence};
  ReadSteps(std::string(metadata.GetStringOr(sequence, "")), options, result);
  for (const Setting& setting : Settings(options)) {
    if (setting.key.empty()) continue;
    const std::string& key = known.emplace_back(prefix + std::string(setting.key));
    if (!metadata.Has(key)) continue;
    const double number =
        setting.is_whole() ? static_cast<double>(metadata.GetInt(key)) : metadata.GetFloat(key);
    const std::string fault = RangeFault(number, setting.low, setting.high);
    if (!fault.empty()) metadata.Fail(key, fault);
    setting.Set(number);
    result.names.push_back(setting.name);
  }
  for (const gguf::Metadata::Entry& entry : metadata.entries()) {
    if (!entry.key.starts_with(prefix) || std::ranges::count(known, entry.key) > 0) continue;
    result.notes.push_back(std::string(entry.key) + ": there is no such sampler here");
    break;  // one is enough to say: a file can have any number of them
  }
  return result;
}

}  // namespace engine
