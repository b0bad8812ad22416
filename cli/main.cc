// pronk, the program: reads the arguments, runs one subcommand, turns faults into an exit status.
#include <sys/resource.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/terminal/charset.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "kernels/threads/cpu.h"

namespace {

int Main(int argc, char** argv) {
  if (!kernels::CpuIsSupported())
    throw engine::Error("this CPU lacks SSE4.2, which this program needs");
  cli::SetUpCharset();
  cli::CommandLine line(
      "pronk runs language models from GGUF files on the CPU: more than fifty families, among\n"
      "them Llama, Mistral, Qwen, Gemma, Phi, Granite, gpt-oss and DeepSeek.",
      PRONK_VERSION,
      "'pronk COMMAND --help' lists a subcommand's options, and 'pronk help COMMAND all' "
      "describes\n"
      "each of them. 'pronk-pull OWNER/REPO' downloads a model; in a checkout, './pronk pull' "
      "does.\n"
      "There './pronk test' builds and runs the tests, './pronk fuzz NAME' tries damaged inputs,\n"
      "and './pronk clean' removes what was built.");
  for (const auto add : cli::kCommands) add(line);
  return line.Run({argv + 1, argv + argc});
}

constexpr size_t kUsedStack = size_t{1} << 20;  // bytes, more than any operation needs

// Not inlined, since the array would become the caller's.
[[gnu::noinline]] void GrowStack() {
  [[maybe_unused]] volatile char used[kUsedStack];
  used[0] = 0;
}

// Templates and libraries recurse, and threads get stacks as large as this one may grow. If it is
// too small, or no memory is left when it grows, the system ends the program without a message: so
// it grows now.
void PrepareStack() {
  constexpr rlim_t kLeast = rlim_t{2} << 20;
  rlimit limit = {};
  if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kLeast) {
    throw engine::Error("expected a stack of at least ", kLeast >> 10, " KB, found a limit of ",
                        limit.rlim_cur >> 10, " KB (ulimit -s)");
  }
  ::operator delete(::operator new(kUsedStack));  // throws if there is not enough memory
  GrowStack();
}

// Runs the program, and turns every exception into a message and an exit status.
int Guarded(int argc, char** argv) {
  try {
    PrepareStack();
    const int status = Main(argc, argv);
    cli::FlushOut();
    return status;
  } catch (const cli::UsageError& error) {
    cli::Complain(error.what());
    return cli::kExitUsage;
  } catch (const engine::TooLong& error) {
    cli::Complain(std::string(error.what()) + "; -c makes it larger");
  } catch (const std::bad_alloc&) {
    // fputs allocates no memory.
    std::fputs("pronk: out of memory: the machine or ulimit -v allows no more\n", stderr);
  } catch (const std::exception& error) {
    cli::Complain(cli::MessageOf(error));
  }
  return cli::kExitFault;
}

}  // namespace

int main(int argc, char** argv) {
  cli::ReserveStandardStreams();
  cli::SetUpSignals();
  const int status = Guarded(argc, argv);
  cli::ExpectExit();
  cli::EndIfInterrupted();
  return status;
}
