// Errors that end tokenizing and rendering early.
#pragma once

#include <string>

#include "gguf/error.h"

namespace tokenizer {

// Thrown by long operations (tokenizing, rendering a template) when the caller interrupts them.
class Interrupted : public gguf::Fault {
 public:
  Interrupted() : Fault("interrupted") {}
};

// Thrown by parsing and rendering a chat template. what() is one line: "chat template, line N:
// message", control characters escaped, cut at 500 bytes.
class TemplateError : public gguf::Fault {
 public:
  // `line` counts from 1; 0 if unknown: the interpreter fills it in.
  explicit TemplateError(const std::string& message, int line = 0)
      : Fault("chat template", line > 0 ? gguf::Message(", line ", line) : "", ": ",
              gguf::Printable(message, 500)),
        message_(message),
        line_(line) {}

  // Only the message: the template's argument of raise_exception, or ours. May contain any bytes.
  const std::string& message() const { return message_; }
  int line() const { return line_; }

 private:
  std::string message_;
  int line_;
};

// Throws a TemplateError with the parts, texts and numbers, as message.
template <typename... Parts>
[[noreturn]] void FailAt(int line, const Parts&... parts) {
  throw TemplateError(gguf::Message(parts...), line);
}
template <typename... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  FailAt(0, parts...);
}

// One more level of nesting during its lifetime. Throws a TemplateError beyond `most`.
class Nesting {
 public:
  Nesting(int& depth, int most, int line = 0) : depth_(depth) {
    if (depth >= most) FailAt(line, "nested more than ", most, " levels deep");
    ++depth;
  }
  ~Nesting() { --depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;

 private:
  int& depth_;
};

}  // namespace tokenizer
