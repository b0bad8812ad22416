// Signals: Ctrl-C stops the output, a file that is truncated while in use is reported, and however
// the program ends, it leaves no half-written file and restores the terminal.
#pragma once

namespace cli {

// Called at the start of main. Writing to a closed pipe, or beyond the file size limit, becomes a
// failed write instead of a signal. Weights are read from the mapped file as needed: if it was
// truncated meanwhile, or its disk fails, SIGBUS ends the program with one line and status 1.
//
// Libraries may end the program, too: the thread library does if it cannot start a thread. Then,
// too, no half-written file is left, the status is 1, and one line is printed.
void SetUpSignals();
// Called at the end of main: from here on exit() is intended.
void ExpectExit();
// Called by main: if Ctrl-C stopped the work, ends the program by that signal. The shell sees
// status 130, and ends a loop of such programs as well, which would ignore our own status.
void EndIfInterrupted();

// From here on the first Ctrl-C sets a flag and ends a wait for input. The next ones up to n_caught
// change nothing, and one more ends the program as usual. No effect if the parent has set Ctrl-C to
// be ignored.
void CatchInterrupts(int n_caught = 1);
bool Interrupted();

}  // namespace cli
