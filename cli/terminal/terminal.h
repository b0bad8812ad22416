// Output to a person or another program: text goes to stdout, everything else to stderr.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/stopwatch.h"

namespace cli {

// An environment variable; empty if unset or empty.
std::optional<std::string> FromEnvironment(const char* name);

bool IsTerminal(int fd);  // 0 stdin, 1 stdout, 2 stderr
// A terminal with escape codes (not TERM=dumb), so that lines can be edited and overwritten.
bool HasEscapes(int fd);

// Whether the standard input is a pipe or a file with unread bytes.
bool HasUnreadInput();

// Columns of this terminal; 0 if it is not a terminal or does not report them.
size_t Columns(int fd);

// HasEscapes, and NO_COLOR is not set.
bool HasColour(int fd);

// A remark on stderr, dim if there is colour. It may quote files, so control characters are
// escaped. On a terminal, lines break between words.
void Note(const std::string& text);
// An error or a warning on stderr: "pronk: TEXT", not dim. Control characters are escaped, line
// feeds included; on a terminal, lines break between words.
void Complain(std::string_view text);

// Writes UTF-8 text to stdout at once, converted for a terminal. False if the reader has closed the
// pipe. Throws engine::Error on other failures (a full disk).
bool WriteOut(std::string_view text);
// Passes text to WriteOut() in large pieces, until the reader has closed the pipe.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Add(std::string_view text);
  void Flush();
  bool is_open() const { return open_; }

 private:
  std::string text_;
  bool open_ = true;
};
// Writes printf's buffer. Throws as WriteOut().
void FlushOut();

// Breaks lines between words where a terminal would break inside a word. Text comes in pieces; a
// word is held back until its end has come.
class WordWrapper {
 public:
  // The text that can be shown now, in lines of this many columns (0: unchanged).
  std::string Push(std::string_view text, size_t columns);
  std::string Finish(size_t columns);  // returns the held-back text

 private:
  void Place(size_t columns, std::string& out);

  std::string spaces_, word_;  // held back: the word, and the spaces before it
  size_t word_width_ = 0;      // width in columns
  size_t column_ = 0;          // the column after the shown text
};

// Writes the text to stdout: to a terminal in whole words, elsewhere byte for byte. Thinking is not
// part of the text: it goes to stderr, dim, and only if that is a terminal. So a person sees it,
// and a pipe or a file gets only the answer.
class TextOutput {
 public:
  // Returns false if the reader has closed the pipe. Throws as WriteOut().
  bool Write(std::string_view text);
  void WriteThinking(std::string_view text);
  // Ends the text. A terminal gets an empty line, a pipe the line feed that ends a text.
  bool Finish();

 private:
  void EndThinking();

  WordWrapper text_, thinking_;
  bool is_thinking_ = false;
  char last_ = '\0';  // last byte written to stdout
};

// Longer texts are refused: the input may never end.
inline constexpr size_t kMaxTextBytes = size_t{256} << 20;
// The limit for JSON, a schema or a grammar: no context has room for more text.
inline constexpr size_t kMaxDocumentBytes = size_t{16} << 20;
// Reads a whole file. Throws engine::Error, also if there are more bytes than `most`.
std::string ReadFile(const std::string& path, size_t most);
// Removes a byte order mark, which editors put before UTF-8. Throws engine::Error if it is
// UTF-16's.
void DropByteOrderMark(const std::string& name, std::string& text);
// A text in a file, "-" for stdin, without its byte order mark.
std::string ReadText(const std::string& path, size_t most = kMaxTextBytes);

// The entries of a folder, sorted; empty if it cannot be read.
std::vector<std::filesystem::path> Entries(const std::filesystem::path& folder);

// Called at the start of main: a closed stdin, stdout or stderr stays closed to the program, but
// its number is reserved, so that no opened file gets it and receives output by mistake.
void ReserveStandardStreams();

// Restores the terminal's input mode at the end of the scope, or when a signal ends the program. No
// effect if stdin is not a terminal. Only one may exist at a time.
class KeyboardGuard {
 public:
  // undo: text also sent to the terminal then; it must outlive the guard.
  explicit KeyboardGuard(const char* undo = "");
  ~KeyboardGuard();
  KeyboardGuard(const KeyboardGuard&) = delete;
  KeyboardGuard& operator=(const KeyboardGuard&) = delete;
};
// Does the work of the current guard, if there is one. For signal handlers.
void RestoreKeyboard();

// Keeps typed text for later without echoing it, which would mix it with the output.
class QuietKeyboard {
 public:
  QuietKeyboard();

 private:
  KeyboardGuard guard_;
};

inline constexpr double kPipedStep = 10;  // seconds

// A line on stderr that is overwritten as work progresses, with the time left; only on a terminal
// with escape codes, and only if it takes longer than half a second.
class ProgressLine {
 public:
  // Update()'s counts are shown in units of `size`. piped_step: seconds between lines if
  // there is no such terminal; 0: no lines.
  explicit ProgressLine(std::string what, std::string unit = "tokens", size_t size = 1,
                        double piped_step = 0);
  ~ProgressLine() { Clear(); }
  void Update(size_t done, size_t total);
  void Clear();

 private:
  std::string Text(size_t done, size_t total, double now) const;

  std::string what_;
  std::string unit_;
  size_t size_;
  double piped_step_;
  engine::Stopwatch watch_;
  double drawn_ = 0;  // time of the last line, in seconds
  size_t done_ = 0;
  double expected_ = 0;  // total seconds, estimated when done_ last changed
  bool shown_ = false;
};

}  // namespace cli
