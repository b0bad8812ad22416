// pronk, the program: reads the arguments, runs one subcommand, turns faults into one line and a
// status.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>

#include "engine/cli/charset.h"
#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/signals.h"
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
  cli::AddQuantize(line);
  cli::AddList(line);
  cli::AddCompletion(line);
  cli::AddManual(line);

  return line.Run(argc, argv);
}

}  // namespace

int main(int argc, char** argv) {
  cli::SetUpSignals();
  try {
    const int status = Main(argc, argv);
    cli::FlushOut();
    return status;
  } catch (const cli::UsageError& error) {
    cli::Complain(error.what());
    return cli::kExitUsage;
  } catch (const std::bad_alloc&) {
    std::fputs("pronk: out of memory\n", stderr);  // what needs none to be said
  } catch (const std::exception& error) {
    cli::Complain(error.what());
  }
  return cli::kExitFault;
}
