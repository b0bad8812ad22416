// Reads lines: from a terminal with editing and a history; from a pipe or a file without the byte
// order mark, and without carriage returns at line ends.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cli {

// Entries with more bytes are refused: the input may never end.
inline constexpr size_t kMaxEntryBytes = size_t{64} << 20;

class LineEditor {
 public:
  // Returns the lines that Tab may complete `typed` to.
  using Completions = std::function<std::vector<std::string>(const std::string& typed)>;
  explicit LineEditor(Completions completions);
  ~LineEditor();

  enum class Result { kLine, kInterrupted, kEnd };
  // Reads a line from stdin, without the line feed that ends it; it contains line feeds if several
  // lines were pasted at once. The prompt is shown on stderr, and only on a terminal. kInterrupted:
  // Ctrl-C (which must be caught, see signals.h), and `line` is the text typed before it, "" where
  // the terminal cannot tell; kEnd: Ctrl-D on an empty line, or the end of the input. Throws
  // engine::Error if the line is too long.
  Result Read(const std::string& prompt, std::string& line);
  // Adds an entry to the history.
  void Remember(const std::string& entry);

 private:
  class Terminal;
  std::unique_ptr<Terminal> terminal_;  // nullptr: no editing
  bool is_first_ = true;                // the next line is the first
};

}  // namespace cli
