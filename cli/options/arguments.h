// The arguments as they were typed, cut into flags and their values: names known from llama.cpp and
// Ollama, and words that are no name here, are answered in a sentence.
#ifndef PRONK_CLI_OPTIONS_ARGUMENTS_H_
#define PRONK_CLI_OPTIONS_ARGUMENTS_H_

#include <string>
#include <utility>
#include <vector>

#include "cli/options/command_line.h"

namespace cli {

struct GivenArguments {
  bool Has(const Flag& flag) const;

  const Command* command = nullptr;
  // In the order given, words without a flag last. Of a switch that is simply on: "".
  std::vector<std::pair<const Flag*, std::string>> values;
};

// args: without the program's name. A flag of one dash and several letters is one name (-sys,
// -ctk); only a number may follow a letter at once (-n128). Throws UsageError for the first word
// that this program has no use for, with what was probably meant.
GivenArguments CutArguments(const std::vector<std::string>& args, const CommandLine& line);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_ARGUMENTS_H_
