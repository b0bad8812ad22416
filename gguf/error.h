// The exception of all file readers: one line with file, place (offset or key), expected and found.
//
// Text from a file is untrusted. It is printed only through Quoted or Printable, so that it cannot
// break the line, fill the screen, control the terminal or imitate our own messages.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace gguf {

// A message in parts: texts and numbers, one after the other.
template <class... Parts>
std::string Message(const Parts&... parts) {
  std::string text;
  const auto add = [&text](const auto& part) {
    using Part = std::decay_t<decltype(part)>;
    if constexpr (std::is_arithmetic_v<Part> && !std::is_same_v<Part, char>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  };
  (add(parts), ...);
  return text;
}

// The base of all folders' exceptions: the message is the parts.
class Fault : public std::runtime_error {
 public:
  template <class... Parts>
  explicit Fault(std::string_view first, const Parts&... more)
      : std::runtime_error(Message(first, more...)) {}
};

class Error : public Fault {
 public:
  using Fault::Fault;
};

// "text" in double quotes, everything but printable ASCII escaped (\n, \", \xNN), truncated after
// max_bytes bytes of text (marked by ... after the closing quote).
std::string Quoted(std::string_view text, size_t max_bytes = 80);

// The text as one readable line. Control characters (including U+007F to U+009F), line ends,
// changes of the writing direction and invalid UTF-8 are escaped (\n, \xNN). Truncated after
// max_bytes bytes of text, between characters (marked by ...).
std::string Printable(std::string_view text, size_t max_bytes = 200);

// Printable without truncation, for a path that the user may have typed.
std::string PrintablePath(std::string_view path);

// Throws Error about a file: its path and the message.
template <class... Parts>
[[noreturn]] void Fail(std::string_view path, const Parts&... what) {
  throw Error(PrintablePath(path), ": ", what...);
}

}  // namespace gguf
