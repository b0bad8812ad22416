// pronk, the program: reads the arguments, runs one subcommand, turns faults into one line and a
// status.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "engine/cli/charset.h"
#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/mapping_fault.h"
#include "engine/cli/terminal.h"
#include "kernels/cpu.h"

namespace {

int Main(int argc, char** argv) {
  if (!kernels::CpuIsSupported())
    throw std::runtime_error("this CPU lacks SSE4.2, which this program needs");
  cli::SetUpCharset();
  cli::CommandLine line("pronk", "pronk runs LLaMA-family models from GGUF files on the CPU.",
                        PRONK_VERSION);
  cli::AddRun(line);
  cli::AddChat(line);
  cli::AddInspect(line);
  cli::AddTokenize(line);
  cli::AddTemplate(line);
  cli::AddBench(line);
  cli::AddTrace(line);
  cli::AddLogits(line);
  cli::AddPerplexity(line);
  cli::AddList(line);
  cli::AddCompletion(line);
  cli::AddManual(line);

  return line.Run(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  // A closed pipe shows up as a failed write, which ends the output quietly.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // likewise a file that may not grow further
  cli::ExplainMappingFaults();
  try {
    const int status = Main(argc, argv);
    cli::FlushOut();
    return status;
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
