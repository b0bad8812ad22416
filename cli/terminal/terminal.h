// Talking to the person or program at the other end: text goes to stdout, everything else to
// stderr.
#ifndef PRONK_CLI_TERMINAL_TERMINAL_H_
#define PRONK_CLI_TERMINAL_TERMINAL_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "engine/stopwatch.h"

namespace cli {

// A variable of the environment; nothing where it is empty.
std::optional<std::string> FromEnvironment(const char* name);

bool IsTerminal(int fd);  // 0 stdin, 1 stdout, 2 stderr
// A terminal that knows escape codes (not TERM=dumb), so that lines can be edited and overwritten.
bool HasEscapes(int fd);

// A pipe or a file: who gave it meant it to be read. Not a terminal, a socket or /dev/null.
bool IsPiped(int fd);
// Whether there is something to read, or nothing more will come, within this time.
bool HasInput(int fd, int milliseconds);

// How many columns this terminal has; 0 where it is none, or does not say.
size_t Columns(int fd);

// HasEscapes, and NO_COLOR is not set.
bool HasColour(int fd);

// What we say about the text, on stderr: dim where there is colour. As all that goes there it may
// quote files, so nothing in it commands the terminal.
void Note(const std::string& text);
// "pronk: TEXT" in one line on stderr, whatever the text holds and however long it is: what went
// wrong, or should be known.
void Complain(std::string_view text);

// Writes UTF-8 text to stdout at once; on a terminal as it can show it. False where nobody reads
// any more (a closed pipe). Throws engine::Error where it cannot be written otherwise (a full
// disk).
bool WriteOut(std::string_view text);
// Hands text on to WriteOut() in large pieces, until nobody reads any more.
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
// What printf has left in its buffer. Throws as WriteOut().
void FlushOut();

// Breaks lines between words where a terminal would break them inside. Text comes in pieces; a word
// is held back until its end has come.
class WordWrapper {
 public:
  // What can be shown now, in lines of this many columns (0: as it is).
  std::string Push(std::string_view text, size_t columns);
  std::string Finish(size_t columns);  // what was held back

 private:
  void Place(size_t columns, std::string& out);

  std::string spaces_, word_;  // held back: the word, and the spaces before it
  size_t word_width_ = 0;      // in columns
  size_t column_ = 0;          // where what was shown ends
};

// The text goes to stdout: to a terminal in whole words, elsewhere byte for byte. Thinking is no
// part of the text: it goes to stderr, dim, where that is a terminal, and nowhere else. So a person
// sees it, and a pipe or a file gets the answer only.
class TextOutput {
 public:
  // Returns false where nobody reads any more. Throws as WriteOut().
  bool Write(std::string_view text);
  void WriteThinking(std::string_view text);
  // The text is over: exactly what sets it apart from what comes next. A terminal gets an empty
  // line, a pipe the line feed that ends a text, and an empty line where another text `follows`.
  bool Finish(bool follows);

 private:
  void EndThinking();

  WordWrapper text_, thinking_;
  bool is_thinking_ = false;
  char last_ = '\0';  // byte written to stdout
};

// More bytes of text are refused: what is read may never end.
inline constexpr size_t kMaxTextBytes = size_t{256} << 20;
// Of JSON, a schema or a grammar; no context holds more text.
inline constexpr size_t kMaxDocumentBytes = size_t{16} << 20;
// All of stdin, byte for byte. Throws engine::Error, also where there are more bytes than `most`.
std::string ReadStdin(size_t most);
// All of a file, likewise.
std::string ReadFile(const std::string& path, size_t most);
// A text of at most kMaxTextBytes: "-" is stdin.
std::string ReadText(const std::string& path);

// For main, before all else: what was closed (stdin, stdout, stderr) stays so for us, but no file
// that is opened takes its number, and with that what was not meant for it.
void ReserveStandardStreams();

// For whoever changes how the keyboard is read: at the end of the scope, or when a signal ends the
// program, it is as it was. Nothing happens where stdin is no terminal. One at a time.
class KeyboardGuard {
 public:
  // undo: what is also sent to the terminal; the string must outlive the guard.
  explicit KeyboardGuard(const char* undo = "");
  ~KeyboardGuard();
  KeyboardGuard(const KeyboardGuard&) = delete;
  KeyboardGuard& operator=(const KeyboardGuard&) = delete;
};
// Does what the present guard, if any, will do. For handlers of signals.
void RestoreKeyboard();

// While this lives, what is typed is kept for later but not shown: it would appear in the middle of
// what is being written.
class QuietKeyboard {
 public:
  QuietKeyboard();

 private:
  KeyboardGuard guard_;
};

// A line on stderr that is overwritten as work goes on; only on a terminal with escape codes, and
// only if it takes longer than `after_seconds`.
class ProgressLine {
 public:
  ProgressLine(std::string what, double after_seconds, std::string unit = "tokens");
  ~ProgressLine() { Clear(); }
  void Update(size_t done, size_t total);
  void Clear();

 private:
  std::string what_;
  std::string unit_;
  double after_seconds_;
  engine::Stopwatch watch_;
  double last_ = 0;
  bool shown_ = false;
};

}  // namespace cli

#endif  // PRONK_CLI_TERMINAL_TERMINAL_H_
