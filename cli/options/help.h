// --help: a subcommand's flags and examples, within a width and a number of lines.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "cli/options/command_line.h"

namespace cli {

inline constexpr size_t kMaxHelpLines = 60, kMaxHelpColumns = 100;

// One or more lines of a shell that do something useful with a subcommand.
struct Example {
  std::string_view command, line;
};

// The examples of all subcommands, in the order of --help.
std::span<const Example> Examples();

// "pronk bench [OPTIONS] [MODEL...]"
std::string UsageOf(const Command& command);

// "  NAME   what it is", in lines of at most kMaxHelpColumns. A name that is too long gets a line
// of its own.
std::string HelpLine(const std::string& name, const std::string& what);

// The subcommand's own flags, then the shared ones. While there are more than max_lines, the
// largest group of shared flags is cut down to their names.
std::string HelpOf(const Command& command, size_t max_lines);

}  // namespace cli
