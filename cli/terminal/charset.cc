// The locale, escape sequences, and characters with their columns.
#include "cli/terminal/charset.h"

#include <charconv>
#include <clocale>
#include <cwchar>

#include "gguf/utf8.h"

namespace cli {
namespace {

bool IsControl(char32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
}

}  // namespace

void SetUpCharset() {
  std::setlocale(LC_CTYPE, "");
  const std::string_view name = std::setlocale(LC_CTYPE, nullptr);
  if (name != "C" && name != "POSIX") return;  // these know only ASCII: no language was chosen
  for (const char* utf8 : {"C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, utf8) != nullptr) return;
  }
}

std::string Unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "ntre\"'\\", kMeaning = "\n\t\r\033\"'\\";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const size_t letter = next == '\0' ? std::string_view::npos : kLetters.find(next);
    unsigned char byte = 0;
    const char* const hex = text.data() + i + 2;
    if (letter != std::string_view::npos) {
      out += kMeaning[letter];
      ++i;
    } else if (next == 'x' && i + 3 < text.size() &&
               std::from_chars(hex, hex + 2, byte, 16).ptr == hex + 2) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string ForTerminal(std::string_view text) {
  std::string shown;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    shown += IsControl(code) ? gguf::ToUtf8(0xFFFD) : std::string(bytes);
  }
  return shown;
}

size_t CharColumns(char32_t c) {
  const int width = wcwidth(static_cast<wchar_t>(c));
  return width < 0 ? 1 : static_cast<size_t>(width);
}

std::wstring ToWide(std::string_view utf8) {
  std::wstring wide;
  for (const auto& [code, bytes] : gguf::Characters(utf8)) wide += static_cast<wchar_t>(code);
  return wide;
}

std::string FromWide(std::wstring_view text) {
  std::string utf8;
  for (const wchar_t c : text) utf8 += gguf::ToUtf8(static_cast<char32_t>(c));
  return utf8;
}

}  // namespace cli
