// Reading and writing of streams, word wrapping, and the progress line.
#include "cli/terminal/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "cli/terminal/charset.h"
#include "engine/error.h"
#include "gguf/error.h"
#include "gguf/utf8.h"

namespace cli {
namespace {

// The terminal's original mode, while it is changed. Signal handlers read this, too.
termios original;
const char* original_undo = "";
volatile std::sig_atomic_t changed = 0;

std::string ReadAll(std::FILE* file, const std::string& name, size_t most) {
  std::string text;
  const auto check = [&](size_t size) {
    if (size > most) throw engine::Error(name, ": is longer than ", most, " bytes");
  };
  struct stat status = {};
  if (fstat(fileno(file), &status) == 0 && S_ISREG(status.st_mode)) {
    const auto left = static_cast<size_t>(std::max<off_t>(status.st_size - ftello(file), 0));
    check(left);
    text.reserve(left);
  }
  std::array<char, 1 << 16> buffer;
  // Memory doubles up to exactly the limit: a longer text takes no more memory, since the old half
  // and its copy are as much as the new whole.
  unsigned n_doublings = 12;
  // Not until fread returns 0: after a terminal's Ctrl-D it would continue to read.
  while (std::feof(file) == 0 && std::ferror(file) == 0) {
    const size_t n = std::fread(buffer.data(), 1, buffer.size(), file);
    check(text.size() + n);
    while (text.size() + n > text.capacity()) text.reserve((most + buffer.size()) >> n_doublings--);
    text.append(buffer.data(), n);
  }
  if (std::ferror(file) != 0) {
    throw engine::Error(name, ": cannot be read: ", std::strerror(errno));
  }
  return text;
}

[[noreturn]] void ThrowCannotWrite() {
  throw engine::Error("cannot write to the output: ", std::strerror(errno));
}

constexpr size_t kTab = 8;  // columns from stop to stop

// Prepares a text for stderr: if that is a terminal, lines break between words.
std::string Wrapped(std::string_view text) {
  const size_t columns = Columns(STDERR_FILENO);
  WordWrapper wrapper;
  const std::string lines = wrapper.Push(ForTerminal(text), columns);
  return lines + wrapper.Finish(columns);
}

void ShowThinking(const std::string& text) {
  if (text.empty()) return;
  const char* const form = HasColour(STDERR_FILENO) ? "\033[2m%s\033[0m" : "%s";
  std::fprintf(stderr, form, ForTerminal(text).c_str());
}

}  // namespace

std::optional<std::string> FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::optional<std::string>(value) : std::nullopt;
}

bool IsTerminal(int fd) { return isatty(fd) == 1; }

bool HasEscapes(int fd) {
  return IsTerminal(fd) && FromEnvironment("TERM").value_or("dumb") != "dumb";
}

bool HasUnreadInput() {
  struct stat status = {};
  int n_bytes = 0;
  return fstat(STDIN_FILENO, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISREG(status.st_mode)) &&
         ioctl(STDIN_FILENO, FIONREAD, &n_bytes) == 0 && n_bytes > 0;
}

size_t Columns(int fd) {
  winsize size = {};
  return IsTerminal(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool HasColour(int fd) { return HasEscapes(fd) && !FromEnvironment("NO_COLOR"); }

void Note(const std::string& text) {
  const char* const form = HasColour(STDERR_FILENO) ? "\033[2m%s\033[0m\n" : "%s\n";
  std::fprintf(stderr, form, Wrapped(text).c_str());
}

void Complain(std::string_view text) {
  constexpr size_t kMax = 2000;  // bytes
  std::fprintf(stderr, "%s\n", Wrapped("pronk: " + gguf::Printable(text, kMax)).c_str());
}

bool WriteOut(std::string_view text) {
  const std::string shown = IsTerminal(STDOUT_FILENO) ? ForTerminal(text) : std::string(text);
  for (size_t at = 0; at < shown.size();) {
    const ssize_t n = write(STDOUT_FILENO, shown.data() + at, shown.size() - at);
    if (n >= 0) {
      at += static_cast<size_t>(n);
    } else if (errno == EPIPE) {
      return false;
    } else if (errno == EAGAIN) {  // another process made it non-blocking
      pollfd ready = {STDOUT_FILENO, POLLOUT, 0};
      poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      ThrowCannotWrite();
    }
  }
  return true;
}

void Output::Add(std::string_view text) {
  constexpr size_t kPiece = size_t{1} << 16;
  text_ += text;
  if (text_.size() >= kPiece) Flush();
}

void Output::Flush() { open_ = open_ && WriteOut(std::exchange(text_, "")); }

void FlushOut() {
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!written && errno != EPIPE) ThrowCannotWrite();
}

void WordWrapper::Place(size_t columns, std::string& out) {
  if (word_.empty()) return;
  size_t end = column_;
  for (const char c : spaces_) end += c == '\t' ? kTab - end % kTab : 1;
  // A word longer than a line is broken anyway.
  if (column_ > 0 && end + word_width_ > columns && word_width_ <= columns) {
    out += '\n';
    end = 0;
  } else {
    out += spaces_;
  }
  out += word_;
  column_ = end + word_width_;
  if (column_ > columns) column_ %= columns;  // the terminal has wrapped it
  spaces_.clear();
  word_.clear();
  word_width_ = 0;
}

std::string WordWrapper::Push(std::string_view text, size_t columns) {
  std::string out;
  if (columns == 0) {
    out = std::exchange(spaces_, "") + std::exchange(word_, "");
    return out.append(text);
  }
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (code == ' ' || code == '\t' || code == '\n') {
      Place(columns, out);
      if (code != '\n') {
        spaces_ += bytes;
        continue;
      }
      out += std::exchange(spaces_, "") + '\n';
      column_ = 0;
      continue;
    }
    const size_t width = CharColumns(code);
    if (width == 2) Place(columns, out);  // a line may break between Chinese characters
    word_ += bytes;
    word_width_ += width;
    if (width == 2 || word_width_ > columns) Place(columns, out);
  }
  return out;
}

std::string WordWrapper::Finish(size_t columns) {
  std::string out;
  if (columns != 0) Place(columns, out);
  return out + std::exchange(spaces_, "") + std::exchange(word_, "");
}

void TextOutput::EndThinking() {
  if (!std::exchange(is_thinking_, false)) return;
  ShowThinking(thinking_.Finish(Columns(STDERR_FILENO)));
  std::fputs(HasColour(STDERR_FILENO) ? "\n\n" : "\n(done thinking)\n\n", stderr);
}

void TextOutput::WriteThinking(std::string_view text) {
  if (!IsTerminal(STDERR_FILENO)) return;
  if (!std::exchange(is_thinking_, true) && !HasColour(STDERR_FILENO)) {
    std::fputs("(thinking)\n", stderr);
  }
  ShowThinking(thinking_.Push(text, Columns(STDERR_FILENO)));
}

bool TextOutput::Write(std::string_view text) {
  EndThinking();
  if (!text.empty()) last_ = text.back();
  return WriteOut(text_.Push(text, Columns(STDOUT_FILENO)));
}

bool TextOutput::Finish() {
  EndThinking();
  const std::string end = text_.Finish(Columns(STDOUT_FILENO));
  return WriteOut(end + (last_ == '\n' ? "" : "\n") + (IsTerminal(STDOUT_FILENO) ? "\n" : ""));
}

// Opening a pipe would wait for its writer, perhaps forever: instead the writer has a second to
// appear.
std::string ReadFile(const std::string& path, size_t most) {
  constexpr int kTries = 100;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(fd < 0 ? nullptr : fdopen(fd, "rb"),
                                                             std::fclose);
  if (!file) throw engine::Error(path, ": cannot be opened: ", std::strerror(errno));
  struct stat status = {};
  fstat(fd, &status);
  char first = 0;
  ssize_t n = -1;  // 0: a pipe without a writer
  for (int i = 0; S_ISFIFO(status.st_mode) && (n = read(fd, &first, 1)) == 0; ++i) {
    if (i == kTries) throw engine::Error(path, ": is a pipe (FIFO) that nothing is written to");
    usleep(10'000);
  }
  if (n == 1) std::ungetc(first, file.get());
  fcntl(fd, F_SETFL, O_RDONLY);
  return ReadAll(file.get(), path, most);
}

void DropByteOrderMark(const std::string& name, std::string& text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (!text.starts_with("\xFF\xFE") && !text.starts_with("\xFE\xFF")) return;
  throw engine::Error(name, ": expected UTF-8, found UTF-16, by the first two bytes");
}

std::string ReadText(const std::string& path, size_t most) {
  const bool is_stdin = path == "-";
  std::string text = is_stdin ? ReadAll(stdin, "stdin", most) : ReadFile(path, most);
  DropByteOrderMark(is_stdin ? "stdin" : path, text);
  return text;
}

std::vector<std::filesystem::path> Entries(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    entries.push_back(it->path());
  }
  std::ranges::sort(entries);
  return entries;
}

// The streams are opened for the wrong direction, so reading and writing fail as if they were
// closed.
void ReserveStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free number.
    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

KeyboardGuard::KeyboardGuard(const char* undo) {
  if (!IsTerminal(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &original) != 0) return;
  original_undo = undo;
  std::atomic_signal_fence(std::memory_order_release);
  changed = 1;
}

KeyboardGuard::~KeyboardGuard() {
  RestoreKeyboard();
  changed = 0;
}

void RestoreKeyboard() {
  if (changed == 0) return;
  // In the background the terminal belongs to another process, which has already restored it.
  const pid_t owner = tcgetpgrp(STDIN_FILENO);
  if (owner != -1 && owner != getpgrp()) return;
  tcsetattr(STDIN_FILENO, TCSANOW, &original);
  // An error of this write cannot be handled.
  [[maybe_unused]] const auto n = write(STDERR_FILENO, original_undo, std::strlen(original_undo));
}

QuietKeyboard::QuietKeyboard() {
  termios silent;
  if (!IsTerminal(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &silent) != 0) return;
  silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &silent);
}

ProgressLine::ProgressLine(std::string what, std::string unit, size_t size, double piped_step)
    : what_(std::move(what)), unit_(" " + std::move(unit)), size_(size), piped_step_(piped_step) {}

std::string ProgressLine::Text(size_t done, size_t total, double now) const {
  std::string line = gguf::Message(what_, " ", done / size_, " of ", total / size_, unit_);
  if (done == 0) return line;
  const auto left = static_cast<size_t>(std::ceil(std::max(expected_ - now, 0.0)));
  line += ", " + std::to_string(left / 60) + (left % 60 < 10 ? ":0" : ":");
  return line + std::to_string(left % 60) + " left";
}

void ProgressLine::Update(size_t done, size_t total) {
  const double now = watch_.Seconds();
  if (done > done_) {
    done_ = done;
    expected_ = now * (static_cast<double>(total) / static_cast<double>(done));
  }
  if (!HasEscapes(STDERR_FILENO)) {
    if (piped_step_ == 0 || now - drawn_ < piped_step_) return;
    drawn_ = now;
    return Note(Text(done, total, now));
  }
  constexpr double kFirst = 0.4, kStep = 0.1;  // seconds
  if (now < kFirst || now - drawn_ < kStep) return;
  drawn_ = now;
  shown_ = true;
  std::string line = Text(done, total, now);
  // A line that wraps could not be overwritten.
  if (const size_t n = Columns(STDERR_FILENO); n > 2) line.resize(std::min(line.size(), n - 2));
  std::fprintf(stderr, "\r%s \033[K", line.c_str());
}

void ProgressLine::Clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

}  // namespace cli
