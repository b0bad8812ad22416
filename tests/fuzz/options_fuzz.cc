// Parses the program's arguments, one a line, without running a subcommand.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<std::string> args;
  while (!input.empty()) {
    std::string word(input.Line().substr(0, size));
    word.resize(word.find('\0') == std::string::npos ? word.size() : word.find('\0'));
    // These words would print help.
    if (word != "help" && word != "-h" && word != "--help") args.push_back(std::move(word));
  }
  if (args.empty()) return 0;
  cli::CommandLine line("Fuzzed", "0", "");
  for (const auto add : cli::kCommands) add(line);
  // Flags write into options that the actions own, so the actions are kept.
  std::vector<std::function<int()>> actions;
  for (const cli::Command& command : line.commands()) {
    std::function<int()>& action = const_cast<cli::Command&>(command).action;
    actions.push_back(std::move(action));
    action = [] { return 0; };
  }
  try {
    line.Run(args);
  } catch (const cli::UsageError&) {
  } catch (const gguf::Error&) {
  } catch (const engine::Error&) {
  }
  return 0;
}
