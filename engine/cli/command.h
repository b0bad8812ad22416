// What every subcommand gives to main(): one function that adds it, with its flags, to the command
// line.
#ifndef PRONK_ENGINE_CLI_COMMAND_H_
#define PRONK_ENGINE_CLI_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>

namespace cli {

// Set by the subcommand that was chosen; runs after all arguments are read and returns the exit
// status.
using Action = std::function<int()>;

// Wrong usage that CLI11 cannot see (exit status 2).
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

inline constexpr int kExitDone = 0;
inline constexpr int kExitFault = 1;  // the input or the machine
inline constexpr int kExitUsage = 2;

void AddRun(CLI::App& app, Action& action);
void AddChat(CLI::App& app, Action& action);
void AddInspect(CLI::App& app, Action& action);
void AddTokenize(CLI::App& app, Action& action);
void AddTemplate(CLI::App& app, Action& action);
void AddLogits(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddTrace(CLI::App& app, Action& action);

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_COMMAND_H_
