// The handlers do only what is safe in one: the program may be in the middle of anything.
#include "engine/cli/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "engine/cli/command.h"
#include "engine/cli/terminal.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;  // written by OnInterrupt

void TidyUp() {
  RestoreKeyboard();
  gguf::RemoveUnfinishedFile();
}

void OnEnd(int signal) {
  TidyUp();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void OnInterrupt(int signal) {
  if (interrupted != 0) return OnEnd(signal);
  interrupted = 1;
}

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
  TidyUp();
  // Nothing can be done about an error of this write.
  [[maybe_unused]] const auto written = write(STDERR_FILENO, kMessage.data(), kMessage.size());
  _exit(kExitFault);
}

}  // namespace

void SetUpSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    // Whoever started us may want one to be ignored, as nohup does.
    if (std::signal(signal, OnEnd) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

void CatchInterrupts() {
  interrupted = 0;
  struct sigaction action = {};  // without SA_RESTART
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace cli
