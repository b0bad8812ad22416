// Numbers in texts, whole or not.
#pragma once

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace gguf {

// The text as a number. Empty if the text has other characters, or if an integer is too large for
// its type; a double that is too large is infinite, one too small is zero.
template <class Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ptr != end || result.ec == std::errc::invalid_argument) return std::nullopt;
  if (result.ec == std::errc()) return number;
  if constexpr (std::is_same_v<Number, double>)  // which from_chars has not set
    return std::strtod(std::string(text).c_str(), nullptr);
  return std::nullopt;
}

}  // namespace gguf
