// Talking to the person or program at the other end: text goes to stdout, everything else to
// stderr.
#ifndef PRONK_ENGINE_CLI_TERMINAL_H_
#define PRONK_ENGINE_CLI_TERMINAL_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

bool IsTerminal(int fd);  // 0 stdin, 1 stdout, 2 stderr

// Writes text to stdout at once. False where nobody reads any more (a closed pipe). Throws
// engine::Error where it cannot be written otherwise (a full disk).
bool WriteOut(std::string_view text);

// All of stdin, byte for byte.
std::string ReadStdin();
// All of a file. Throws engine::Error.
std::string ReadFile(const std::string& path);

// Ctrl-C: the first sets a flag, the second ends the program as usual.
void CatchInterrupts();
bool Interrupted();
// From here on Ctrl-C ends the program again.
void ReleaseInterrupts();

// A line on stderr that is overwritten as work goes on; only on a terminal, and only if it takes
// longer than `after_seconds`.
class ProgressLine {
 public:
  ProgressLine(std::string what, double after_seconds);
  ~ProgressLine() { Clear(); }
  void Update(size_t done, size_t total);
  void Clear();

 private:
  std::string what_;
  double after_seconds_;
  double start_;
  double last_ = 0;
  bool shown_ = false;
};

// "1.17 GB", "640 KB"
std::string HumanBytes(double bytes);

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_TERMINAL_H_
