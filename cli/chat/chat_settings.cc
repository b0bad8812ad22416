// Shows and changes the settings of a chat: the command /set.
#include "cli/chat/chat_settings.h"

#include <optional>
#include <string_view>

#include "cli/options/other_programs.h"
#include "cli/output/text.h"
#include "engine/answer/thinking.h"
#include "engine/error.h"
#include "gguf/error.h"

namespace cli {
namespace {

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

[[noreturn]] void Refuse(const NameAndNumber& given, bool is_whole, double low, double high) {
  throw engine::Error("/set ", gguf::Printable(given.name), ": expected a ",
                      (is_whole ? "whole number" : "number"), " from ", Figures(low, 7), " to ",
                      Figures(high, 7), ", found '", gguf::Printable(given.number), "'");
}

// The setting's first long flag, under which it is kept.
std::string FlagOf(const engine::Setting& setting) {
  const std::string_view flags = setting.flags.substr(setting.flags.find("--"));
  return std::string(flags.substr(0, flags.find_first_of(", ")));
}

}  // namespace

std::vector<engine::Setting> ChatSettings(ReadyModel& ready) {
  std::vector<engine::Setting> settings = engine::Settings(ready.session_options.sampling);
  std::erase_if(settings, [](const engine::Setting& setting) { return !setting.is_number(); });
  settings.push_back({"num_predict", &ready.max_tokens, -2, kMaxTokens, "", kPredictFlags});
  return settings;
}

std::string ChatSettingsText(const ChatOptions& options, ReadyModel& ready) {
  const auto origin_of = [&](const engine::Setting& setting) -> std::string {
    if (ready.changed.contains(setting.name)) return "/set";
    const std::string origin = OriginName(setting);
    return origin == "flag" && !options.kept->IsTyped(FlagOf(setting)) ? "saved" : origin;
  };
  std::vector<engine::Setting> settings = ChatSettings(ready);
  for (const engine::Setting& setting : engine::Settings(ready.session_options.sampling)) {
    if (!setting.is_number()) settings.push_back(setting);
  }
  return SettingsText(settings, origin_of);
}

void ChangeSetting(const std::string& text, ReadyModel& ready) {
  const NameAndNumber given = Split(text);
  const std::vector<engine::Setting> settings = ChatSettings(ready);
  const engine::Setting* const setting = engine::FindSetting(settings, given.name);
  if (setting == nullptr) {
    std::vector<std::string> names = {std::string(kContextSetting)};
    for (const engine::Setting& one : settings) names.emplace_back(one.name);
    throw engine::Error("/set ", gguf::Printable(given.name), ": there is no such setting",
                        Guess(given.name, names), "there are ", Joined(names, ", "));
  }
  if (given.number.empty()) return;  // it is shown
  const std::string fault = setting->Read(given.number);
  if (!fault.empty() && setting->name == "mirostat") throw engine::Error("/set mirostat: ", fault);
  if (!fault.empty()) Refuse(given, setting->is_whole(), setting->low, setting->high);
  ready.changed.emplace(setting->name);
  // A whole number may have been written as 1e2, which the flag would refuse.
  ready.setup.flags[FlagOf(*setting)] = {setting->is_whole() ? Format("%.0f", setting->Get())
                                                             : given.number};
}

std::optional<size_t> ContextIn(const std::string& text) {
  const NameAndNumber given = Split(text);
  size_t n = 0;
  const std::vector<engine::Setting> context = {
      {kContextSetting, &n, 1, kMaxTokens, "", "-c,--ctx-size N"}};
  if (engine::FindSetting(context, given.name) == nullptr) return std::nullopt;
  if (!context[0].Read(given.number).empty()) Refuse(given, true, 1, kMaxTokens);
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
    add(std::string(setting.name), Figures(setting.Get(), 7));
  add(std::string(kContextSetting), std::to_string(ready.session->capacity()));
  for (const std::string_view level : engine::kThinkingLevels) {
    if (space != std::string::npos) add("think", std::string(level));
  }
  if (space == std::string::npos)
    lines.insert(lines.end(), {"think ", "nothink", "system ", "verbose", "quiet"});
  return lines;
}

}  // namespace cli
