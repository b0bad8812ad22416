// Classes and cases of characters, from the tables in unicode_data.cc and from PCRE2.
#include "tokenizer/characters.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <iterator>
#include <memory>
#include <unordered_map>

#include "tokenizer/unicode_data.h"

namespace tokenizer {
namespace {

using Character = gguf::Characters::Character;

// The other case of each character that has one.
class CaseMap {
 public:
  // `rows` as in unicode_data.cc: FIRST[-LAST][/STRIDE]:CASE
  explicit CaseMap(std::string_view rows) {
    for (size_t i = 0; i < ascii_.size(); ++i) ascii_[i] = static_cast<char>(i);
    for (HexReader reader(rows); !reader.AtEnd(); reader.Skip(' ')) {
      const char32_t first = reader.Number();
      const char32_t last = reader.Skip('-') ? reader.Number() : first;
      const char32_t stride = reader.Skip('/') ? reader.Number() : 1;
      reader.Skip(':');
      const char32_t other = reader.Number();
      std::string more;
      while (reader.Skip(',')) more += gguf::ToUtf8(reader.Number());
      for (char32_t c = first; c <= last; c += stride)
        Add(c, gguf::ToUtf8(other + c - first) + more);
    }
  }
  bool Has(char32_t c) const { return c < 0x80 ? ascii_[c] != char(c) : map_.contains(c); }
  std::string_view operator()(const Character& c) const {
    if (c.code < 0x80) return {&ascii_[c.code], 1};
    const auto found = map_.find(c.code);
    return found == map_.end() ? c.bytes : found->second;
  }

 private:
  void Add(char32_t c, std::string other) {
    if (c < 0x80) ascii_[c] = other[0];
    map_.emplace(c, std::move(other));
  }
  std::array<char, 0x80> ascii_;
  std::unordered_map<char32_t, std::string> map_;
};

const CaseMap& UpperMap() {
  static const CaseMap map(kUpperCase);
  return map;
}

const CaseMap& LowerMap() {
  static const CaseMap map(kLowerCase);
  return map;
}

// A class of characters as PCRE2 knows it.
class PatternClass {
 public:
  explicit PatternClass(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_ANCHORED, &error, &at, nullptr));
  }
  bool Has(char32_t c) const {
    const std::string bytes = gguf::ToUtf8(c);
    const std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create(1, nullptr));
    return code_ && match &&
           pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(bytes.data()), bytes.size(), 0, 0,
                       match.get(), nullptr) > 0;
  }

 private:
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
};

bool Between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

}  // namespace

Character CharBefore(std::string_view text, size_t pos) {
  for (size_t size = 1; size <= std::min<size_t>(4, pos); ++size) {
    if ((text[pos - size] & 0xC0) == 0x80) continue;  // not the start of a character
    const std::string_view bytes = text.substr(pos - size, size);
    const gguf::Utf8Step step = gguf::NextUtf8(bytes);
    if (step.length == size) return {step.code, bytes};
    break;
  }
  return {0xFFFD, text.substr(pos - 1, 1)};
}

size_t CountChars(std::string_view text) {
  size_t count = 0;
  for ([[maybe_unused]] const auto& c : gguf::Characters(text)) ++count;
  return count;
}

size_t ByteOfChar(std::string_view text, size_t index) {
  size_t pos = 0;
  for (; index > 0 && pos < text.size(); --index) pos += gguf::NextUtf8(text.substr(pos)).length;
  return pos;
}

bool IsWhiteSpace(char32_t c) {
  constexpr char32_t kOthers[] = {' ', 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  return Between(c, 9, 13) || Between(c, 0x2000, 0x200A) ||
         std::find(std::begin(kOthers), std::end(kOthers), c) != std::end(kOthers);
}

bool IsSpace(char32_t c) { return IsWhiteSpace(c) || Between(c, 28, 31); }

bool IsLetter(char32_t c) {
  static const PatternClass letters("\\p{L}");
  return c < 0x80 ? Between(c | 0x20, 'a', 'z') : letters.Has(c);
}

bool IsDecimal(char32_t c) {
  static const PatternClass decimals("\\p{Nd}");
  return c < 0x80 ? Between(c, '0', '9') : decimals.Has(c);
}

bool IsNumeric(char32_t c) {
  static const PatternClass numbers("\\p{N}");
  return c < 0x80 ? Between(c, '0', '9') : numbers.Has(c);
}

bool IsPrintable(char32_t c) {
  static const PatternClass hidden("[\\p{Cc}\\p{Cf}\\p{Co}\\p{Z}]");
  return c < 0x80 ? Between(c, 0x20, 0x7E) : !hidden.Has(c);
}

bool IsUpper(char32_t c) { return LowerMap().Has(c); }
bool IsLower(char32_t c) { return UpperMap().Has(c); }
std::string_view UpperCase(const Character& c) { return UpperMap()(c); }
std::string_view LowerCase(const Character& c) { return LowerMap()(c); }

std::string ToLowerCase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const Character& c : gguf::Characters(text)) out += LowerCase(c);
  return out;
}

size_t Leading(bool (*is)(char32_t), std::string_view text) {
  size_t n = 0;
  for (const Character& c : gguf::Characters(text)) {
    if (!is(c.code)) break;
    n += c.bytes.size();
  }
  return n;
}

size_t Trailing(bool (*is)(char32_t), std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const Character c = CharBefore(text, end);
    if (!is(c.code)) break;
    end -= c.bytes.size();
  }
  return text.size() - end;
}

}  // namespace tokenizer
