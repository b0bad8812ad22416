// Quoting of untrusted text for error messages.
#include "gguf/error.h"

#include "gguf/utf8.h"

namespace gguf {
namespace {

// Controls a terminal, ends a line, or changes the writing direction.
bool IsControl(char32_t code) {
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
    const Utf8Step c = NextUtf8(text.substr(at));
    const bool valid = c.kind == Utf8Kind::kValid;
    const size_t n = valid ? c.length : 1;
    if (at + n > max_bytes) return out + "...";
    if (!valid || IsControl(c.code)) {
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
