// The arguments as they were typed, before command_line.h reads them: names that hands know from
// llama.cpp, words that are none of ours, and the order that reading them needs.
#ifndef PRONK_CLI_OPTIONS_ARGUMENTS_H_
#define PRONK_CLI_OPTIONS_ARGUMENTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command_line.h"

namespace cli {

// The arguments behind the program's name: the subcommand, its flags each with its value, then "--"
// and what stands without a flag. A flag of one dash and several letters is one name (-sys, -ctk)
// and made a long one; only a number may stand right behind a letter (-n128). Throws UsageError for
// the first word that this program has no use for, with what was probably meant.
std::vector<std::string> Arranged(const std::vector<std::string>& args,
                                  const std::vector<CommandInfo>& commands);

// What \n, \t, \r, \e, \", \', \\ and \xHH stand for; any other backslash is one.
std::string Unescaped(std::string_view text);

}  // namespace cli

#endif  // PRONK_CLI_OPTIONS_ARGUMENTS_H_
