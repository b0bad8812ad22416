#include "tokenizer/errors.h"

#include "gguf/error.h"

namespace tokenizer {
namespace {

constexpr size_t kMaxMessage = 500;  // bytes shown

std::string OneLine(const std::string& message, int line) {
  std::string out = "chat template";
  if (line > 0) out += ", line " + std::to_string(line);
  return out + ": " + gguf::Printable(message, kMaxMessage);
}

}  // namespace

TemplateError::TemplateError(std::string message, int line)
    : std::runtime_error(OneLine(message, line)), message_(std::move(message)), line_(line) {}

}  // namespace tokenizer
