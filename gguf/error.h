// The error of all readers of files: one line that says which file, where in it (offset or key),
// what was expected and what was found.
//
// Text from a file is untrusted. Wherever it is printed it goes through Quoted or Printable, so
// that it cannot break the line, fill the screen, command the terminal or imitate a line of ours.
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

// The text as one readable line. Escaped (\n, \xNN) are control characters (U+007F to U+009F among
// them), line ends, changes of the writing direction, and bytes that are no UTF-8. Cut after
// max_bytes bytes of text, between characters (marked by ...).
std::string Printable(std::string_view text, size_t max_bytes = 200);

// The same uncut, for a path as the user may have typed it.
std::string PrintablePath(std::string_view path);

}  // namespace gguf

#endif  // PRONK_GGUF_ERROR_H_
