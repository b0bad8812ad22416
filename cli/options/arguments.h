// Splits the typed arguments into flags and values. Names known from llama.cpp and Ollama, and
// unknown words, get an answer in a sentence.
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
  // In the order given, words without a flag last. "" for a switch.
  std::vector<std::pair<const Flag*, std::string>> values;
};

// args: without the program's name. One dash and several letters are one name (-sys, -ctk); only a
// number may directly follow a letter (-n128). Throws UsageError for the first word that is
// unknown, with a guess at what was meant.
GivenArguments CutArguments(const std::vector<std::string>& args, const CommandLine& line);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_ARGUMENTS_H_
