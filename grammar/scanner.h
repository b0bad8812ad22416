// Shared by the readers of grammars (gbnf.cc) and of regular expressions (pattern.cc): a position
// in a text, and reading characters, numbers and escapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gguf/utf8.h"
#include "grammar/code_points.h"
#include "grammar/grammar.h"

namespace grammar {

class Scanner {
 protected:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ >= text_.size(); }
  // NUL after the end.
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool Take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  bool AtDigit() const { return Peek() >= '0' && Peek() <= '9'; }
  // The number here; empty if it is above kMaxStates.
  std::optional<uint32_t> TakeNumber() {
    uint64_t number = 0;
    for (; AtDigit(); ++at_) {
      number = number * 10 + static_cast<uint64_t>(Peek() - '0');
      if (number > kMaxStates) return std::nullopt;
    }
    return static_cast<uint32_t>(number);
  }

  // A character; empty if the bytes are not UTF-8.
  std::optional<CodePoint> TakeCharacter() {
    const gguf::Utf8Step step = gguf::NextUtf8(text_.substr(at_));
    if (step.kind != gguf::Utf8Kind::kValid) return std::nullopt;
    at_ += step.length;
    return step.code;
  }

  // A number of that many hexadecimal digits; empty if there are fewer.
  std::optional<CodePoint> TakeHex(size_t n_digits) {
    constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
    CodePoint code = 0;
    for (size_t i = 0; i < n_digits; ++i, ++at_) {
      const size_t digit = AtEnd() ? kDigits.npos : kDigits.find(text_[at_]);
      if (digit == kDigits.npos) return std::nullopt;
      code = code << 4 | static_cast<CodePoint>(digit % 16);
    }
    return code;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace grammar
