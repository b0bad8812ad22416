// llama.cpp's and Ollama's names of our flags and subcommands, and answers to unknown words.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_line.h"

namespace cli {

// Our name of another program's flag; any other name is returned as it is.
std::string OurFlag(const std::string& name);

// llama-cli also converses: "chat" if run has a flag that asks for a conversation, else args[0].
// Throws UsageError for "pull", with the line to type instead.
std::string OurCommand(const CommandLine& line, std::span<const std::string> args);
// True for a flag that only says whether the command is "run" or "chat".
bool IsImplied(const Command& command, const std::string& flag);

// Consumes the flag args[0], with its value, if it is a flag of another program that changes
// nothing here and the command runs a model. Returns the number of arguments consumed, 0 for any
// other flag.
size_t TakeIdleFlag(std::span<const std::string> args, Command& command);

// ": did you mean WORD? " if a word is close to what was typed, else ": ".
std::string Guess(std::string_view typed, const std::vector<std::string>& words);

// Both throw UsageError, with the replacement or the word that was probably meant.
[[noreturn]] void RefuseFlag(const CommandLine& line, const Command& command,
                             const std::string& name);
[[noreturn]] void RefuseCommand(const CommandLine& line, const std::string& name);

}  // namespace cli
