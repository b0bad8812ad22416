#include "cli/terminal/charset.h"

#include <charconv>
#include <clocale>
#include <cwchar>

#include "gguf/utf8.h"

namespace cli {
namespace {

// Same as nl_langinfo(CODESET), without its header: checks the Euro sign's bytes.
bool LocaleIsUtf8() {
  std::mbstate_t state{};
  wchar_t c = 0;
  return std::mbrtowc(&c, "\xE2\x82\xAC", 3, &state) == 3;
}

// A locale that knows only ASCII: no language was chosen.
bool LocaleIsAscii() {
  const std::string_view name = std::setlocale(LC_CTYPE, nullptr);
  return name == "C" || name == "POSIX";
}

bool IsControl(char32_t c) {
  return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0);
}

}  // namespace

void SetUpCharset() {
  std::setlocale(LC_CTYPE, "");
  if (!LocaleIsAscii()) return;
  for (const char* name : {"C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, name) != nullptr) return;
  }
}

std::string FromTerminal(std::string_view text) {
  if (LocaleIsUtf8() || LocaleIsAscii()) return std::string(text);
  std::string utf8;
  std::mbstate_t state{};
  while (!text.empty()) {
    wchar_t c = 0;
    const size_t n = std::mbrtowc(&c, text.data(), text.size(), &state);
    if (n == 0 || n > text.size()) {  // a NUL, or an invalid character
      state = {};
      text.remove_prefix(1);
      continue;
    }
    utf8 += gguf::ToUtf8(static_cast<char32_t>(c));
    text.remove_prefix(n);
  }
  return utf8;
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
  const bool as_it_is = LocaleIsUtf8() || LocaleIsAscii();
  std::string shown;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (IsControl(code)) {
      shown += gguf::ToUtf8(0xFFFD);
    } else if (as_it_is || code < 0x80) {
      shown += bytes;
    } else {
      std::string spelt(MB_CUR_MAX, '\0');
      std::mbstate_t state{};
      const size_t n = std::wcrtomb(spelt.data(), static_cast<wchar_t>(code), &state);
      shown += n <= spelt.size() ? spelt.substr(0, n) : "?";
    }
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
