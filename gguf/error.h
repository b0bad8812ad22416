// What every reader of files in this project throws: one line that says which file, where in it
// (offset or key), what was expected and what was found.
//
// What a message quotes from a file is a stranger's text: it goes through Quoted, so that it can
// neither break the line, nor fill the screen, nor send the terminal commands.
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

// A path as the user may have typed it: only control characters are escaped, nothing is cut.
std::string PrintablePath(std::string_view path);

}  // namespace gguf

#endif  // PRONK_GGUF_ERROR_H_
