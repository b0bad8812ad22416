// The flags of a text, for the subcommands that read one as `pronk run` does.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/command_line.h"

namespace cli {

struct TextOptions {
  std::optional<std::string> prompt;
  std::vector<std::string> files;  // documents

  // Adds -p, -f, and a positional argument, which follows the positional arguments added before.
  void AddFlags(Command& command, const std::string& about_prompt, const std::string& about_files);
  bool is_given() const { return prompt || !files.empty(); }
  bool reads_stdin() const;
  // The files in their order, then the prompt about them, separated by empty lines; standard input
  // if neither is given. exact: keeps the line feed that ends a file or standard input. Throws
  // UsageError if there is no text, engine::Error.
  std::string Read(bool exact = false) const;
};

}  // namespace cli
