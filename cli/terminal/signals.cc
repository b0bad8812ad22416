// Handles signals. The handlers call only async-signal-safe functions.
#include "cli/terminal/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/command.h"
#include "cli/terminal/terminal.h"
#include "gguf/mapped_file.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;  // a count, written by OnInterrupt
volatile std::sig_atomic_t most_interrupts = 1;
bool exit_expected = false;

void TidyUp() {
  RestoreKeyboard();
  gguf::RemoveUnfinishedFile();
}

// An error of this write cannot be handled.
void Say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

void OnEnd(int signal) {
  TidyUp();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void OnInterrupt(int signal) {
  if (interrupted >= most_interrupts) return OnEnd(signal);
  interrupted = interrupted + 1;
}

void OnBusError(int signal, siginfo_t* info, void* /*context*/) {
  if (info->si_code != BUS_ADRERR) {  // not a mapping: the instruction reruns and ends the program
    std::signal(signal, SIG_DFL);
    return;
  }
  constexpr std::string_view kMessage =
      ": can no longer be read: it was shortened, or its disk failed\n";
  const char* const name = gguf::MappedFileAt(info->si_addr);
  // Several threads may come here at once; the first one prints the message.
  static std::atomic_flag said = ATOMIC_FLAG_INIT;
  while (said.test_and_set()) pause();
  TidyUp();
  Say("pronk: ");
  Say(name != nullptr ? name : "a file in use");
  Say(kMessage);
  _exit(kExitFault);
}

void OnExit() {
  if (exit_expected) return;
  TidyUp();
  Say("pronk: ended by a library, most likely for lack of memory for threads: choose fewer with "
      "-t, or look at OMP_STACKSIZE and ulimit -v\n");
  _exit(kExitFault);
}

}  // namespace

void SetUpSignals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int signal :
       {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU, SIGALRM, SIGVTALRM, SIGPROF, SIGUSR1, SIGUSR2}) {
    // The parent may have set a signal to be ignored, as nohup does.
    if (std::signal(signal, OnEnd) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  struct sigaction action = {};
  action.sa_sigaction = OnBusError;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
  std::atexit(OnExit);
}

void ExpectExit() { exit_expected = true; }

void EndIfInterrupted() {
  if (interrupted == 0) return;
  std::fflush(nullptr);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

void CatchInterrupts(int n_caught) {
  most_interrupts = n_caught;
  interrupted = 0;
  struct sigaction action = {};  // without SA_RESTART
  if (sigaction(SIGINT, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  action = {};
  action.sa_handler = OnInterrupt;
  sigaction(SIGINT, &action, nullptr);
}

bool Interrupted() { return interrupted != 0; }

}  // namespace cli
