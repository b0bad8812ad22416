// A terminal for a program to run in, driven as a person would: keys go in, and what is on the
// screen can be seen. By tmux; Tmux::IsThere() says whether it is installed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace test {

class Tmux {
 public:
  static bool IsThere();

  // Runs a line of sh on a screen of 80 x 24.
  explicit Tmux(const std::string& command);
  ~Tmux();

  // Keys by tmux's names ("Enter", "C-c", "Up"), anything else as it is.
  void Keys(const std::vector<std::string>& keys);
  void Paste(const std::string& text);  // as a terminal pastes, bracketed where asked for
  void Resize(int columns, int rows);

  // The screen and what has scrolled off it, lines without the spaces at their ends.
  std::string Screen();
  // Waits until the screen is as wanted; false after half a minute.
  bool WaitUntil(const std::function<bool(const std::string& screen)>& is_wanted);
  // ... until it holds the text `times` times.
  bool WaitFor(const std::string& text, int times = 1);
  // Waits until the program has ended; its status, or -1 after half a minute.
  int WaitForEnd();

 private:
  std::string Run(std::vector<std::string> args);  // tmux with these, what it prints

  TempDir dir_;  // of the socket, so that nobody else's tmux is touched
};

}  // namespace test
