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

  // -p, -f, and a place for a word, which stands after those of flags added before.
  void AddFlags(Command& command, const std::string& about_prompt, const std::string& about_files);
  bool is_given() const { return prompt || !files.empty(); }
  bool reads_stdin() const;
  // The files in their order and the prompt, which is about them, with empty lines between; what is
  // piped in if neither is given. exact: the line feed that ends a file or a pipe counts. Throws
  // UsageError if there is no text, engine::Error.
  std::string Read(bool exact = false) const;
};

}  // namespace cli
