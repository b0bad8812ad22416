// pronk, the program: reads the arguments, runs one subcommand, turns faults into one line and a
// status.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/cli/command.h"
#include "engine/cli/terminal.h"
#include "kernels/cpu.h"

namespace {

// llama.cpp has flags of one dash and two letters, which CLI11 would read as two flags.
std::vector<std::string> WithLongNames(int argc, char** argv) {
  std::vector<std::string> args(argv + 1, argv + argc);
  for (std::string& arg : args) {
    if (arg == "-tb") arg = "--threads-batch";
  }
  std::reverse(args.begin(), args.end());  // the order that CLI11 takes
  return args;
}

int Main(int argc, char** argv) {
  if (!kernels::CpuIsSupported())
    throw std::runtime_error("this CPU lacks SSE4.2, which this program needs");
  CLI::App app("pronk runs LLaMA-family models from GGUF files on the CPU.", "pronk");
  app.set_version_flag("--version", "pronk " PRONK_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("pronk: ") + error.what() + "\nTry 'pronk --help'.\n";
  });

  cli::Action action;
  cli::AddRun(app, action);
  cli::AddChat(app, action);
  cli::AddInspect(app, action);
  cli::AddTokenize(app, action);
  cli::AddTemplate(app, action);
  cli::AddBench(app, action);
  cli::AddTrace(app, action);
  cli::AddLogits(app, action);

  try {
    app.parse(WithLongNames(argc, argv));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kExitDone : cli::kExitUsage;
  }
  if (!action) {
    std::fputs(app.help().c_str(), stderr);
    return cli::kExitUsage;
  }
  return action();
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe shows up as a failed write, which ends the output quietly.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return Main(argc, argv);
  } catch (const cli::UsageError& error) {
    std::fprintf(stderr, "pronk: %s\n", error.what());
    return cli::kExitUsage;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "pronk: out of memory\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pronk: %s\n", error.what());
  }
  return cli::kExitFault;
}
