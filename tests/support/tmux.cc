#include "tests/support/tmux.h"

#include <chrono>
#include <fstream>
#include <thread>

#include "tests/support/process.h"

namespace test {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(30);

template <class Condition>
bool Eventually(Condition condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(kPause);
  }
  return false;
}

}  // namespace

bool Tmux::IsThere() { return RunProgram({"/bin/sh", "-c", "command -v tmux"}).status == 0; }

std::string Tmux::Run(std::vector<std::string> args) {
  args.insert(args.begin(),
              {"/usr/bin/env", "tmux", "-f", "/dev/null", "-u", "-S", dir_.Path("socket")});
  return RunProgram(args).out;
}

Tmux::Tmux(const std::string& command) {
  Run({"new-session", "-d", "-x", "80", "-y", "24", "-s", "test", "sleep 60"});
  Run({"set-option", "-g", "remain-on-exit", "on"});
  Run({"set-option", "-g", "history-limit", "10000"});
  // The status goes through a file: tmux sometimes misses it. The shell must survive Ctrl-C.
  Run({"respawn-pane", "-k", "-t", "test",
       "trap : INT; " + command + "; echo $? > '" + dir_.Path("status") + "'"});
}

Tmux::~Tmux() { Run({"kill-server"}); }

void Tmux::Keys(const std::vector<std::string>& keys) {
  std::vector<std::string> args = {"send-keys", "-t", "test", "--"};
  args.insert(args.end(), keys.begin(), keys.end());
  Run(args);
}

void Tmux::Paste(const std::string& text) {
  Run({"set-buffer", "--", text});
  Run({"paste-buffer", "-p", "-t", "test"});
}

void Tmux::Resize(int columns, int rows) {
  Run({"resize-window", "-t", "test", "-x", std::to_string(columns), "-y", std::to_string(rows)});
}

std::string Tmux::Screen() { return Run({"capture-pane", "-p", "-S", "-", "-t", "test"}); }

bool Tmux::WaitUntil(const std::function<bool(const std::string& screen)>& is_wanted) {
  return Eventually([&] { return is_wanted(Screen()); });
}

bool Tmux::WaitFor(const std::string& text, int times) {
  return WaitUntil([&](const std::string& screen) {
    int n = 0;
    for (size_t at = screen.find(text); at != std::string::npos; at = screen.find(text, at + 1)) {
      ++n;
    }
    return n >= times;
  });
}

int Tmux::WaitForEnd() {
  std::string status;
  const bool ended = Eventually([&] {
    std::ifstream in(dir_.Path("status"));
    return std::getline(in, status) && !in.eof();
  });
  return ended ? std::stoi(status) : -1;
}

}  // namespace test
