// What /set changes in a conversation: how the next tokens are picked, by the names that Ollama
// has.
#ifndef PRONK_CLI_CHAT_SETTINGS_H_
#define PRONK_CLI_CHAT_SETTINGS_H_

#include <cstdint>
#include <string>

#include "engine/sampling/sampler.h"

namespace cli {

// "temperature 0.5", or "parameter temperature 0.5". Throws engine::Error where there is no such
// setting, or no such value of it.
void ChangeSetting(const std::string& text, engine::SamplerOptions& sampler, int64_t& max_tokens);

// "temperature 0.8, top_k 40, ...": all of them.
std::string SettingsText(const engine::SamplerOptions& sampler, int64_t max_tokens);

}  // namespace cli

#endif  // PRONK_CLI_CHAT_SETTINGS_H_
