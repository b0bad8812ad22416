// A terminal for a program, used as by a person: tests send keys and see the screen. Needs tmux;
// Tmux::IsThere() says whether it is installed.
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

  // Sends keys by tmux's names ("Enter", "C-c", "Up"), and other texts literally.
  void Keys(const std::vector<std::string>& keys);
  void Paste(const std::string& text);  // as a terminal does: bracketed if the program wants it
  void Resize(int columns, int rows);

  // The screen and the lines that have scrolled off it, without the spaces at lines' ends.
  std::string Screen();
  // Waits until is_wanted(screen); returns false after half a minute.
  bool WaitUntil(const std::function<bool(const std::string& screen)>& is_wanted);
  // Waits until the screen has the text `times` times.
  bool WaitFor(const std::string& text, int times = 1);
  // Waits until the program has ended. Returns its status, or -1 after half a minute.
  int WaitForEnd();

 private:
  std::string Run(std::vector<std::string> args);  // runs tmux with these, returns its output

  TempDir dir_;  // has its own socket, so that no other tmux is touched
};

}  // namespace test
