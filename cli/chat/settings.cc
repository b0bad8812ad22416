#include "cli/chat/settings.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <vector>

#include "cli/options/model_options.h"
#include "cli/output/text.h"
#include "engine/error.h"

namespace cli {
namespace {

struct Setting {
  const char* name;
  double low, high;
  bool is_whole;
  std::function<double()> get;
  std::function<void(double)> set;
};

template <class T>
Setting Of(const char* name, T& variable, double low, double high) {
  return {name,
          low,
          high,
          !std::is_floating_point_v<T>,
          [&variable] { return static_cast<double>(variable); },
          [&variable](double value) { variable = static_cast<T>(value); }};
}

// The ranges are those of the flags.
std::vector<Setting> Settings(engine::SamplerOptions& sampler, int64_t& max_tokens) {
  constexpr double kMax = 1e9;
  return {
      Of("temperature", sampler.temperature, 0, 1e6),
      Of("top_k", sampler.top_k, 0, kMax),
      Of("top_p", sampler.top_p, 0, 1),
      Of("min_p", sampler.min_p, 0, 1),
      Of("typical_p", sampler.typical, 0, 1),
      Of("repeat_penalty", sampler.penalties.repeat, 1e-3, 1e3),
      Of("repeat_last_n", sampler.repeat_last_n, -1, kMaxTokens),
      Of("presence_penalty", sampler.penalties.presence, -kMax, kMax),
      Of("frequency_penalty", sampler.penalties.frequency, -kMax, kMax),
      Of("seed", sampler.seed, 0, 0x1p53),
      Of("num_predict", max_tokens, -1, kMax),
  };
}

std::string Number(double value) { return Format(std::abs(value) >= 1e6 ? "%.0f" : "%.7g", value); }

}  // namespace

void ChangeSetting(const std::string& text, engine::SamplerOptions& sampler, int64_t& max_tokens) {
  constexpr std::string_view kPrefix = "parameter ";
  const std::string rest = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  const std::string name = rest.substr(0, rest.find(' '));
  const size_t at = rest.find_first_not_of(' ', name.size());
  const std::string number = at == std::string::npos ? "" : rest.substr(at);
  for (const Setting& setting : Settings(sampler, max_tokens)) {
    if (setting.name != name) continue;
    double value = 0;
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, value);
    const bool ok = error == std::errc() && stop == end && value >= setting.low &&
                    value <= setting.high && (!setting.is_whole || value == std::floor(value));
    if (!ok) {
      throw engine::Error("/set " + name + ": expected a " +
                          (setting.is_whole ? "whole number" : "number") + " from " +
                          Number(setting.low) + " to " + Number(setting.high) + ", found '" +
                          number + "'");
    }
    return setting.set(value);
  }
  if (name == "num_ctx") {
    throw engine::Error("/set num_ctx: the context's size is chosen at the start, with -c");
  }
  throw engine::Error("/set " + name +
                      ": there is no such setting; /set alone shows those there are");
}

std::string SettingsText(const engine::SamplerOptions& sampler, int64_t max_tokens) {
  engine::SamplerOptions copy = sampler;
  std::vector<std::string> texts;
  for (const Setting& setting : Settings(copy, max_tokens)) {
    texts.push_back(setting.name + (" " + Number(setting.get())));
  }
  return Joined(texts, ", ");
}

}  // namespace cli
