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

// The numbers, whose variables are the model's.
std::vector<engine::Setting> ChatSettings(ReadyModel& ready);

// "temperature 0.7 (file), ...": these and what else is not the default.
std::string ChatSettingsText(const ChatOptions& options, ReadyModel& ready);

// "temperature 0.5", or "parameter temperature 0.5": sets the number and the flag that keeps it.
// Throws engine::Error if it cannot be set, with a guess at what was meant.
void ChangeSetting(const std::string& text, ReadyModel& ready);

// "num_ctx 8192", or with "parameter": the number, else nothing. Throws engine::Error for a wrong
// number.
std::optional<size_t> ContextIn(const std::string& text);

// Completions of "/set ": names, and after a name its value of now, or its words.
std::vector<std::string> SettingCompletions(const std::string& typed, ReadyModel& ready);

}  // namespace cli
