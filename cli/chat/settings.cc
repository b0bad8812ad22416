#include "cli/chat/settings.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "cli/options/other_names.h"
#include "cli/output/text.h"
#include "engine/error.h"
#include "engine/session/thinking.h"
#include "gguf/error.h"
#include "gguf/number.h"

namespace cli {
namespace {

constexpr std::string_view kContext = "num_ctx";

struct NameAndNumber {
  std::string name, number;
};

NameAndNumber Split(const std::string& text) {
  constexpr std::string_view kPrefix = "parameter ";
  const std::string rest = text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text;
  const std::string name = rest.substr(0, rest.find(' '));
  const size_t at = rest.find_first_not_of(' ', name.size());
  return {name, at == std::string::npos ? "" : rest.substr(at)};
}

// "--top-k" as "top_k".
std::string Plain(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  std::ranges::replace(name, '-', '_');
  return name;
}

[[noreturn]] void Refuse(const NameAndNumber& given, bool is_whole, double low, double high) {
  throw engine::Error("/set ", gguf::Printable(given.name), ": expected a ",
                      (is_whole ? "whole number" : "number"), " from ", Figures(low, 7), " to ",
                      Figures(high, 7), ", found '", gguf::Printable(given.number), "'");
}

}  // namespace

std::vector<engine::Setting> ChatSettings(ReadyModel& ready) {
  engine::SamplerOptions& sampler = ready.session_options.sampler;
  std::vector<engine::Setting> settings = engine::Settings(sampler);
  settings.push_back({"seed", &sampler.seed, 0, 0x1p53});
  settings.push_back({"num_predict", &ready.max_tokens, -2, kMaxTokens});
  return settings;
}

void ChangeSetting(const std::string& text, const ChatOptions& options, ReadyModel& ready) {
  const NameAndNumber given = Split(text);
  const std::string plain = Plain(given.name);
  std::vector<std::string> names = {std::string(kContext)};
  const auto flags = options.FlagNames();
  for (const engine::Setting& setting : ChatSettings(ready)) {
    const std::vector<std::string>& flag_names = flags.at(setting.name);
    const bool is_meant =
        plain == setting.name || plain == ShownName(setting.name) ||
        std::ranges::any_of(flag_names, [&](const auto& flag) { return Plain(flag) == plain; });
    names.push_back(ShownName(setting.name));
    if (!is_meant) continue;
    const auto value = gguf::NumberIn<double>(given.number);
    const bool ok = value && *value >= setting.low && *value <= setting.high &&
                    (!setting.is_whole() || *value == std::floor(*value));
    if (!ok) Refuse(given, setting.is_whole(), setting.low, setting.high);
    ready.origins[std::string(setting.name)] = "/set";
    // A whole number may have been written as 1e2, which the flag would refuse.
    ready.setup.flags[LongName(flag_names)] = {setting.is_whole() ? Format("%.0f", *value)
                                                                  : given.number};
    return setting.Set(*value);
  }
  throw engine::Error("/set ", gguf::Printable(given.name), ": there is no such setting",
                      Guess(plain, names), "/set alone shows those there are");
}

std::optional<size_t> ContextIn(const std::string& text) {
  const NameAndNumber given = Split(text);
  const std::string plain = Plain(given.name);
  if (plain != kContext && plain != "ctx_size" && plain != "c") return std::nullopt;
  const auto n = gguf::NumberIn<size_t>(given.number);
  if (!n || *n == 0 || *n > kMaxTokens) Refuse(given, true, 1, kMaxTokens);
  return n;
}

std::vector<std::string> SettingCompletions(const std::string& typed, ReadyModel& ready) {
  std::vector<std::string> lines;
  const size_t space = typed.find(' ');
  const std::string name = typed.substr(0, space);
  const auto add = [&](const std::string& one, const std::string& value) {
    if (space == std::string::npos) lines.push_back(one + " ");
    if (space != std::string::npos && one == name) lines.push_back(one + " " + value);
  };
  for (const engine::Setting& setting : ChatSettings(ready))
    add(ShownName(setting.name), Figures(setting.Get(), 7));
  add(std::string(kContext), std::to_string(ready.session->capacity()));
  for (const std::string_view level : engine::kThinkingLevels) {
    if (space != std::string::npos) add("think", std::string(level));
  }
  if (space == std::string::npos)
    lines.insert(lines.end(), {"think ", "nothink", "system ", "verbose", "quiet"});
  return lines;
}

}  // namespace cli
