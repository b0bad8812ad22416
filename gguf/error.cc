// Quoting of untrusted text for error messages.
#include "gguf/error.h"

#include <algorithm>
#include <cstdint>

namespace gguf {
namespace {

// The character that a text begins with, and its bytes; 0 bytes where it is no UTF-8.
struct Character {
  uint32_t code;
  size_t bytes;
};
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t n = first >= 0xC2 && first < 0xE0 ? 2 : (first & 0xF0) == 0xE0 ? 3 : 4;
  if (first < 0xC2 || first > 0xF4 || text.size() < n) return {0, 0};
  uint32_t code = first & (0x7Fu >> n);
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool is_short = (n == 3 && code < 0x800) || (n == 4 && code < 0x10000);
  const bool is_surrogate = code >= 0xD800 && code < 0xE000;
  if (is_short || is_surrogate || code > 0x10FFFF) return {0, 0};
  return {code, n};
}

// Commands a terminal, ends a line, or turns the direction of what follows.
bool IsControl(uint32_t code) {
  return code < ' ' || (code >= 0x7F && code < 0xA0) || code == 0x200E || code == 0x200F ||
         (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

void AppendEscaped(char c, std::string& out) {
  constexpr std::string_view kHex = "0123456789abcdef";
  if (c == '\n') {
    out += "\\n";
  } else if (c == '"' || c == '\\') {
    out += {'\\', c};
  } else {
    const auto byte = static_cast<unsigned char>(c);
    out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
}

}  // namespace

std::string Quoted(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  for (const char c : text.substr(0, max_bytes)) {
    if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
      out += c;
    } else {
      AppendEscaped(c, out);
    }
  }
  out += text.size() > max_bytes ? "\"..." : "\"";
  return out;
}

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Character c = FirstOf(text.substr(at));
    const size_t n = std::max<size_t>(c.bytes, 1);
    if (at + n > max_bytes) return out + "...";
    if (c.bytes == 0 || IsControl(c.code)) {
      for (const char byte : text.substr(at, n)) AppendEscaped(byte, out);
    } else {
      out += text.substr(at, n);
    }
    at += n;
  }
  return out;
}

std::string PrintablePath(std::string_view path) { return Printable(path, std::string_view::npos); }

}  // namespace gguf
