// The project's only UTF-8 decoder, for arbitrary bytes (Unicode, table 3-7: no overlong forms, no
// surrogates, nothing above U+10FFFF), and its only encoder.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace gguf {

enum class Utf8Kind : uint8_t {
  kValid,       // a character
  kInvalid,     // bytes that do not begin a character
  kIncomplete,  // a character cut off by the end of the text
};

struct Utf8Step {
  Utf8Kind kind;
  uint32_t length;            // bytes, at least 1; kInvalid: the maximal subpart
  char32_t code = U'\xFFFD';  // the character; U+FFFD unless kValid
};

// NextUtf8() if the first byte is beyond ASCII.
Utf8Step NextUtf8BeyondAscii(std::string_view bytes);

// Decodes the first character of `bytes`, which must not be empty. ASCII, most of text, is inline.
inline Utf8Step NextUtf8(std::string_view bytes) {
  const auto lead = static_cast<uint8_t>(bytes[0]);
  return lead < 0x80 ? Utf8Step{Utf8Kind::kValid, 1, lead} : NextUtf8BeyondAscii(bytes);
}

// The length of the longest prefix that is valid UTF-8.
size_t ValidUtf8Prefix(std::string_view bytes);

// The bytes of one character.
std::string ToUtf8(char32_t code);

// The characters of a text, for a range loop; U+FFFD for each step of NextUtf8 that is not valid.
class Characters {
 public:
  struct Character {
    char32_t code;
    std::string_view bytes;
  };

  class Iterator {
   public:
    explicit Iterator(std::string_view rest) : rest_(rest) { Decode(); }
    Character operator*() const { return {step_.code, rest_.substr(0, step_.length)}; }
    Iterator& operator++() {
      rest_.remove_prefix(step_.length);
      Decode();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return rest_.empty(); }

   private:
    void Decode() {
      if (!rest_.empty()) step_ = NextUtf8(rest_);
    }
    std::string_view rest_;
    Utf8Step step_{};
  };

  explicit Characters(std::string_view text) : text_(text) {}
  Iterator begin() const { return Iterator(text_); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::string_view text_;
};

}  // namespace gguf
