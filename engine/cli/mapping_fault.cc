#include "engine/cli/mapping_fault.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "engine/cli/command.h"
#include "engine/cli/output_file.h"

namespace cli {
namespace {

// Only what is safe in a signal handler: the program may be in the middle of anything.
void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code != BUS_ADRERR) {  // not of a mapping: back to the instruction, to die of it
    std::signal(signal, SIG_DFL);
    return;
  }
  constexpr std::string_view kMessage =
      "pronk: a file in use can no longer be read: it was shortened, or its disk failed\n";
  // Several threads may come here at once; the first one speaks for all.
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  while (said.test_and_set()) pause();
  RemoveUnfinishedFile();
  // Nothing can be done about an error of this write.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitFault);
}

}  // namespace

void ExplainMappingFaults() {
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace cli
