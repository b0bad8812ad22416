// Bytes as base64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace test {

inline std::string Base64(std::string_view text) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < text.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (i + k < text.size() ? static_cast<uint8_t>(text[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k)
      out += i + k > text.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace test
