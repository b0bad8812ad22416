// Writes what a model says, to a person or a program.
#ifndef PRONK_CLI_TERMINAL_TEXT_OUTPUT_H_
#define PRONK_CLI_TERMINAL_TEXT_OUTPUT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace cli {

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

}  // namespace cli

#endif  // PRONK_CLI_TERMINAL_TEXT_OUTPUT_H_
