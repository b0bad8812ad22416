// The settings that /set changes: the sampler's numbers, the seed, and the lengths of answer and
// context.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cli/chat/ready_model.h"
#include "engine/sampling/settings.h"

namespace cli {

inline constexpr std::string_view kContextSetting = "num_ctx";

// The settings that are numbers; their variables belong to `ready`.
std::vector<engine::Setting> ChatSettings(ReadyModel& ready);

// "temperature 0.7 (file), ...": these, and other settings that are not the default.
std::string ChatSettingsText(const ChatOptions& options, ReadyModel& ready);

// "temperature 0.5", or "parameter temperature 0.5": sets the number and the flag that keeps it.
// Throws engine::Error if it cannot be set, with a guess at the intended name.
void ChangeSetting(const std::string& text, ReadyModel& ready);

// "num_ctx 8192", or with "parameter": returns the number; nullopt for other text. Throws
// engine::Error for a wrong number.
std::optional<size_t> ContextIn(const std::string& text);

// Completions of "/set ": names; after a name, its current value or its words.
std::vector<std::string> SettingCompletions(const std::string& typed, ReadyModel& ready);

}  // namespace cli
