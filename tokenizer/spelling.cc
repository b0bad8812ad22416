// GPT-2's table of bytes as characters, and SPM's <0xNN>.
#include "tokenizer/spelling.h"

#include <array>
#include <cstdint>

#include "gguf/utf8.h"

namespace tokenizer {
namespace {

constexpr int kCharacters = 256 + 68;  // the highest code point is U+0143

// Printable Latin-1 characters spell their own bytes, U+0100 and up the other 68.
struct Alphabet {
  std::array<uint16_t, 256> character;    // the character of a byte
  std::array<int16_t, kCharacters> byte;  // the byte of a character; -1: none

  constexpr Alphabet() : character(), byte() {
    byte.fill(-1);
    int next = 256;
    for (int b = 0; b < 256; ++b) {
      const bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
      const int c = printable ? b : next++;
      character[static_cast<size_t>(b)] = static_cast<uint16_t>(c);
      byte[static_cast<size_t>(c)] = static_cast<int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::string ReplaceAll(std::string_view text, std::string_view what, std::string_view with) {
  std::string out;
  out.reserve(text.size());
  for (size_t at; (at = text.find(what)) != std::string_view::npos;) {
    out += text.substr(0, at);
    out += with;
    text.remove_prefix(at + what.size());
  }
  return out += text;
}

void AppendSpelling(std::string_view text, std::string& out) {
  for (const char byte : text) {
    const unsigned c = kAlphabet.character[static_cast<uint8_t>(byte)];
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      out += gguf::ToUtf8(c);
    }
  }
}

std::optional<std::string> BytesOfSpelling(std::string_view spelling) {
  std::string bytes;
  for (const auto& [c, spelt] : gguf::Characters(spelling)) {
    const int byte = c < kCharacters ? kAlphabet.byte[c] : -1;
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::string MarkSpaces(std::string_view text) { return ReplaceAll(text, " ", kSpaceMark); }
std::string UnmarkSpaces(std::string_view spelling) {
  return ReplaceAll(spelling, kSpaceMark, " ");
}

}  // namespace tokenizer
