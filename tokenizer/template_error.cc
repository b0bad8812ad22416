#include "tokenizer/template_error.h"

#include "gguf/error.h"
#include "tokenizer/utf8.h"

namespace tokenizer {
namespace {

constexpr size_t kMaxMessage = 500;  // bytes shown

std::string OneLine(const std::string& message, int line) {
  std::string out = "chat template";
  if (line > 0) out += ", line " + std::to_string(line);
  out += ": ";
  if (message.size() <= kMaxMessage) return out + gguf::PrintablePath(message);
  std::string_view head = std::string_view(message).substr(0, kMaxMessage);
  if (const size_t whole = ValidUtf8Prefix(head); head.size() - whole < 4) {
    head = head.substr(0, whole);  // not half a character
  }
  return out + gguf::PrintablePath(head) + "...";
}

}  // namespace

TemplateError::TemplateError(std::string message, int line)
    : std::runtime_error(OneLine(message, line)), message_(std::move(message)), line_(line) {}

}  // namespace tokenizer
