// Thrown by parsing and rendering a chat template: one line, with the line of the template.
#ifndef PRONK_TOKENIZER_TEMPLATE_ERROR_H_
#define PRONK_TOKENIZER_TEMPLATE_ERROR_H_

#include <stdexcept>
#include <string>

namespace tokenizer {

class TemplateError : public std::runtime_error {
 public:
  // `line` counts from 1; 0 where it is unknown: the interpreter fills it in.
  explicit TemplateError(std::string message, int line = 0);

  // The message alone: what the template passed to raise_exception, or ours. May hold any bytes.
  const std::string& message() const { return message_; }
  int line() const { return line_; }
  // what() is one line: "chat template, line N: message", control characters escaped, cut at 500
  // bytes.

 private:
  std::string message_;
  int line_;
};

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_TEMPLATE_ERROR_H_
