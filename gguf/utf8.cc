// Decoding and encoding of UTF-8, by Unicode's table of well-formed sequences.
#include "gguf/utf8.h"

#include <cstring>

namespace gguf {

Utf8Step NextUtf8BeyondAscii(std::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Kind::kInvalid, 1};
  const uint32_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The range of the second byte excludes overlong forms, surrogates and codes above U+10FFFF.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code = lead & (0x7Fu >> length);
  for (uint32_t i = 1; i < length; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kIncomplete, i};
    const auto byte = static_cast<uint8_t>(bytes[i]);
    if (byte < low || byte > high) return {Utf8Kind::kInvalid, i};
    code = code << 6 | (byte & 0x3Fu);
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Kind::kValid, length, code};
}

size_t ValidUtf8Prefix(std::string_view bytes) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t word = kHighBits;
    if (bytes.size() - at >= sizeof(word)) std::memcpy(&word, bytes.data() + at, sizeof(word));
    if ((word & kHighBits) == 0) {  // eight ASCII characters at once
      at += sizeof(word);
      continue;
    }
    const Utf8Step step = NextUtf8(bytes.substr(at));
    if (step.kind != Utf8Kind::kValid) break;
    at += step.length;
  }
  return at;
}

std::string ToUtf8(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | code >> 18), tail(12), tail(6), tail(0)};
}

}  // namespace gguf
