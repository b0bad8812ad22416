// Sets of characters, and the reader of their lists (unicode_data.h).
#ifndef PRONK_TOKENIZER_CHARACTER_SET_H_
#define PRONK_TOKENIZER_CHARACTER_SET_H_

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer {

// Reads hexadecimal numbers and the signs between them.
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

// Unicode's White_Space.
inline bool IsWhiteSpace(char32_t c) { return jinja::IsSpace(c) && (c < 28 || c > 31); }

// Bytes of white space at the start and at the end of a text, valid UTF-8 or not.
inline size_t LeadingWhiteSpace(std::string_view text) {
  size_t n = 0;
  for (const auto& [c, bytes] : gguf::Characters(text)) {
    if (!IsWhiteSpace(c)) break;
    n += bytes.size();
  }
  return n;
}
inline size_t TrailingWhiteSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const auto [c, bytes] = jinja::CharBefore(text, end);
    if (!IsWhiteSpace(c)) break;
    end -= bytes.size();
  }
  return text.size() - end;
}

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

#endif  // PRONK_TOKENIZER_CHARACTER_SET_H_
