// What every reader of files in this project throws: one line that says which file, where in it
// (offset or key), what was expected and what was found.
//
// What is shown of a file is a stranger's text. It goes through Quoted or Printable, in messages
// and in whatever else is printed, to a terminal or not: so that it can neither break the line, nor
// fill the screen, nor send the terminal commands, nor look like a line of ours.
#ifndef PRONK_GGUF_ERROR_H_
#define PRONK_GGUF_ERROR_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace gguf {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// "text" in double quotes, all but printable ASCII escaped (\n, \", \xNN), cut after max_bytes
// bytes of text (marked by ... after the closing quote).
std::string Quoted(std::string_view text, size_t max_bytes = 80);

// The text in one line for people to read: as it is, but what would command a terminal (control
// characters, U+007F to U+009F among them), end a line or turn the direction of writing is escaped
// (\n, \xNN), and so are bytes that are no UTF-8; cut after max_bytes bytes of text, at a
// character's edge (marked by ...).
std::string Printable(std::string_view text, size_t max_bytes = 200);

// The same uncut, for a path as the user may have typed it.
std::string PrintablePath(std::string_view path);

}  // namespace gguf

#endif  // PRONK_GGUF_ERROR_H_
