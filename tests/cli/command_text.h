// Subcommands as a line of sh, made from the command line's own table.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"

namespace test {

struct CommandTable {
  CommandTable() {
    for (const auto add : cli::kCommands) add(line);
  }
  cli::CommandLine line{"", "", ""};
};

// Values of required flags.
inline const std::map<std::string, std::string> kRequired = {
    {"MODEL", "$MODEL"}, {"A", "$MODEL"}, {"B", "$MODEL"},        {"DIR", "$DIR"},
    {"OUT", "$NEW"},     {"TYPE", "F16"}, {"--ids", "1 2"},       {"SHELL", "bash"},
    {"--file", "$TEXT"}, {"-f", "$TEXT"}, {"--messages", "$JSON"}};

// "pronk COMMAND REST ..." with these values of these flags, and the values above for required
// flags. Words come last and in order.
inline std::string CommandText(const cli::Command& command,
                               const std::map<const cli::Flag*, std::string>& values,
                               const std::string& rest = "") {
  std::string flags, words;
  for (const cli::Flag& flag : command.flags) {
    const auto tried = values.find(&flag);
    std::string value = tried == values.end() ? "" : tried->second;
    // A word would take its place.
    if (value.empty() && flag.place == "MODEL" && !flag.required) value = "$MODEL";
    if (value.empty() && flag.required) {
      const auto given = kRequired.find(flag.place.empty() ? flag.Title() : flag.place);
      if (given == kRequired.end()) ADD_FAILURE() << "a value for " << flag.Title();
      if (given != kRequired.end()) value = given->second;
    }
    if (value.empty()) continue;
    const bool is_word = !flag.place.empty() && flag.required;
    (is_word ? words : flags) +=
        " \"" + (is_word ? "" : flag.names.back() + "\" \"") + value + "\"";
  }
  return "\"$PRONK\" " + command.name + rest + flags + words;
}

}  // namespace test
