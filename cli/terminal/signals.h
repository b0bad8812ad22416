// What signals do: Ctrl-C stops what is being written, a file that is cut off while it is in use is
// reported, and however the program ends, no half-written file and no silent terminal remain.
#ifndef PRONK_CLI_TERMINAL_SIGNALS_H_
#define PRONK_CLI_TERMINAL_SIGNALS_H_

namespace cli {

// For main, before all else. Writing into a closed pipe, or beyond the size that a file may have,
// shows up as a failed write instead of a signal. Weights are read from the mapped file as they are
// needed: where somebody has shortened it meanwhile, or its disk fails, there is nothing to read
// and the system sends SIGBUS; that ends the program with one line that says so, and status 1.
//
// Libraries may end the program, too: the one for threads does where it cannot start one. Then,
// too, nothing half-written is left, the status is 1, and a line says so.
void SetUpSignals();
// For main, after all else: from here on exit() is what was meant.
void ExpectExit();

// From here on Ctrl-C sets a flag once, and a second one ends the program as usual. Waiting for
// input is cut short by it. Nothing happens where whoever started us wants Ctrl-C to be ignored.
void CatchInterrupts();
bool Interrupted();

}  // namespace cli

#endif  // PRONK_CLI_TERMINAL_SIGNALS_H_
