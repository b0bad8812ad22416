// Quoting of untrusted text for error messages.
#include "gguf/error.h"

namespace gguf {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }

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

std::string PrintablePath(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (IsControl(c)) {
      AppendEscaped(c, out);
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace gguf
