#include "engine/cli/terminal.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>

#include "engine/error.h"

namespace cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;  // written by the signal handler

void OnInterrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string ReadAll(std::FILE* file, const std::string& name) {
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), file)) {
    text.append(buffer.data(), n);
  }
  if (std::ferror(file) != 0) {
    throw engine::Error(name + ": cannot be read: " + std::strerror(errno));
  }
  return text;
}

}  // namespace

bool IsTerminal(int fd) { return isatty(fd) == 1; }

bool WriteOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return true;
  }
  if (errno == EPIPE) return false;
  throw engine::Error(std::string("cannot write to the output: ") + std::strerror(errno));
}

std::string ReadStdin() { return ReadAll(stdin, "stdin"); }

std::string ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  if (!file) throw engine::Error(path + ": cannot be opened: " + std::strerror(errno));
  return ReadAll(file.get(), path);
}

void CatchInterrupts() {
  interrupted = 0;
  std::signal(SIGINT, OnInterrupt);
}

void ReleaseInterrupts() { std::signal(SIGINT, SIG_DFL); }

bool Interrupted() { return interrupted != 0; }

ProgressLine::ProgressLine(std::string what, double after_seconds)
    : what_(std::move(what)), after_seconds_(after_seconds), start_(Now()) {}

void ProgressLine::Update(size_t done, size_t total) {
  const double now = Now();
  if (!IsTerminal(STDERR_FILENO) || now - start_ < after_seconds_ || now - last_ < 0.1) return;
  last_ = now;
  shown_ = true;
  std::fprintf(stderr, "\r%s %zu of %zu tokens, %.0f t/s ", what_.c_str(), done, total,
               static_cast<double>(done) / (now - start_));
}

void ProgressLine::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

std::string HumanBytes(double bytes) {
  constexpr std::array kUnits = {"bytes", "KB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (bytes >= 1000 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  std::array<char, 32> text;
  const int digits = unit == 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2;
  std::snprintf(text.data(), text.size(), "%.*f %s", digits, bytes, kUnits[unit]);
  return text.data();
}

}  // namespace cli
