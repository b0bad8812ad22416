// Characters (code points) of a text: their classes, their two cases, sets of them.
//
// Cases and sets are data (unicode_data.h), so that a text gives the same tokens and prompts
// everywhere. The classes that only methods of a template's strings ask for are PCRE2's.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/utf8.h"

namespace tokenizer {

// The character that ends before byte `pos`, which must not be 0; U+FFFD for invalid UTF-8.
gguf::Characters::Character CharBefore(std::string_view text, size_t pos);
size_t CountChars(std::string_view text);
// The byte at which character number `index` begins; the text's size if it has fewer.
size_t ByteOfChar(std::string_view text, size_t index);

bool IsSpace(char32_t c);       // as Python's str.isspace
bool IsWhiteSpace(char32_t c);  // Unicode's White_Space: without U+1C to U+1F
bool IsLetter(char32_t c);      // as Python's str.isalpha
bool IsDecimal(char32_t c);     // Python's str.isdecimal: 0-9 of every script
bool IsNumeric(char32_t c);     // Python's str.isnumeric, except for ideographs
bool IsPrintable(char32_t c);   // Python's str.isprintable, except for unassigned characters
bool IsUpper(char32_t c);       // c has a lower case
bool IsLower(char32_t c);       // c has an upper case

// One character in the other case: itself if it has none, or several characters ("SS").
std::string_view UpperCase(const gguf::Characters::Character& c);
std::string_view LowerCase(const gguf::Characters::Character& c);
// Lower case of each character alone. Invalid UTF-8 is kept.
std::string ToLowerCase(std::string_view text);

// Bytes at the start and at the end of a text, valid UTF-8 or not, whose characters are of a class.
size_t Leading(bool (*is)(char32_t), std::string_view text);
size_t Trailing(bool (*is)(char32_t), std::string_view text);

// Reads hexadecimal numbers and the delimiters between them.
class HexReader {
 public:
  explicit HexReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool AtEnd() const { return at_ == end_; }
  bool IsAt(std::string_view signs) const {
    return !AtEnd() && signs.find(*at_) != std::string_view::npos;
  }
  bool Skip(char sign) {
    if (AtEnd() || *at_ != sign) return false;
    ++at_;
    return true;
  }
  char32_t Number(int base = 16) {
    uint32_t value = 0;
    at_ = std::from_chars(at_, end_, value, base).ptr;
    return value;
  }

 private:
  const char* at_;
  const char* end_;
};

class CharacterSet {
 public:
  explicit CharacterSet(std::string_view runs) {
    for (HexReader reader(runs); !reader.AtEnd(); reader.Skip(' ')) {
      const char32_t first = reader.Number();
      runs_.push_back({first, reader.Skip('-') ? reader.Number() : first});
    }
  }
  bool Has(char32_t c) const {
    const auto run = std::ranges::lower_bound(runs_, c, {}, &Run::last);
    return run != runs_.end() && run->first <= c;
  }

 private:
  struct Run {
    char32_t first, last;
  };
  std::vector<Run> runs_;  // ascending
};

}  // namespace tokenizer
