// What signals do: Ctrl-C stops what is being written, a file that is cut off while it is in use is
// reported, and whatever ends the program, no half-written file and no silent terminal stay behind.
#ifndef PRONK_ENGINE_CLI_SIGNALS_H_
#define PRONK_ENGINE_CLI_SIGNALS_H_

namespace cli {

// For main, before all else. Writing into a closed pipe, or beyond the size that a file may have,
// shows up as a failed write instead of a signal. Weights are read from the mapped file as they are
// needed: where somebody has shortened it meanwhile, or its disk fails, there is nothing to read
// and the system sends SIGBUS; that ends the program with one line that says so, and status 1.
void SetUpSignals();

// From here on Ctrl-C sets a flag once, and a second one ends the program as usual. Waiting for
// input is cut short by it.
void CatchInterrupts();
bool Interrupted();

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_SIGNALS_H_
