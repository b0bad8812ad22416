#include "tokenizer/jinja/values/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <unordered_map>

namespace tokenizer::jinja {
namespace {

// Characters first, first + stride, ..., last, or one alone, and the difference to the other case.
struct CaseRow {
  constexpr CaseRow(int32_t one, int32_t to_other) : CaseRow(one, one, 1, to_other) {}
  constexpr CaseRow(int32_t from, int32_t to, int32_t step, int32_t to_other)
      : first(from), last(to), stride(step), delta(to_other) {}
  int32_t first, last, stride, delta;
};

// Upper-case characters and their lower-case partners, in both directions. From the Unicode
// Character Database 14, without ASCII.
// clang-format off
constexpr CaseRow kPairs[] = {
    {0xC0, 0xD6, 1, 32}, {0xD8, 0xDE, 1, 32}, {0x100, 0x12E, 2, 1}, {0x132, 0x136, 2, 1},
    {0x139, 0x147, 2, 1}, {0x14A, 0x176, 2, 1}, {0x178, -121}, {0x179, 0x17D, 2, 1}, {0x181, 210},
    {0x182, 0x184, 2, 1}, {0x186, 206}, {0x187, 1}, {0x189, 0x18A, 1, 205}, {0x18B, 1}, {0x18E, 79},
    {0x18F, 202}, {0x190, 203}, {0x191, 1}, {0x193, 205}, {0x194, 207}, {0x196, 211}, {0x197, 209},
    {0x198, 1}, {0x19C, 211}, {0x19D, 213}, {0x19F, 214}, {0x1A0, 0x1A4, 2, 1}, {0x1A6, 218},
    {0x1A7, 1}, {0x1A9, 218}, {0x1AC, 1}, {0x1AE, 218}, {0x1AF, 1}, {0x1B1, 0x1B2, 1, 217},
    {0x1B3, 0x1B5, 2, 1}, {0x1B7, 219}, {0x1B8, 1}, {0x1BC, 1}, {0x1C4, 2}, {0x1C7, 2}, {0x1CA, 2},
    {0x1CD, 0x1DB, 2, 1}, {0x1DE, 0x1EE, 2, 1}, {0x1F1, 2}, {0x1F4, 1}, {0x1F6, -97}, {0x1F7, -56},
    {0x1F8, 0x21E, 2, 1}, {0x220, -130}, {0x222, 0x232, 2, 1}, {0x23A, 10795}, {0x23B, 1},
    {0x23D, -163}, {0x23E, 10792}, {0x241, 1}, {0x243, -195}, {0x244, 69}, {0x245, 71},
    {0x246, 0x24E, 2, 1}, {0x370, 0x372, 2, 1}, {0x376, 1}, {0x37F, 116}, {0x386, 38},
    {0x388, 0x38A, 1, 37}, {0x38C, 64}, {0x38E, 0x38F, 1, 63}, {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32}, {0x3CF, 8}, {0x3D8, 0x3EE, 2, 1}, {0x3F7, 1}, {0x3F9, -7}, {0x3FA, 1},
    {0x3FD, 0x3FF, 1, -130}, {0x400, 0x40F, 1, 80}, {0x410, 0x42F, 1, 32}, {0x460, 0x480, 2, 1},
    {0x48A, 0x4BE, 2, 1}, {0x4C0, 15}, {0x4C1, 0x4CD, 2, 1}, {0x4D0, 0x52E, 2, 1},
    {0x531, 0x556, 1, 48}, {0x10A0, 0x10C5, 1, 7264}, {0x10C7, 7264}, {0x10CD, 7264},
    {0x13A0, 0x13EF, 1, 38864}, {0x13F0, 0x13F5, 1, 8}, {0x1C90, 0x1CBA, 1, -3008},
    {0x1CBD, 0x1CBF, 1, -3008}, {0x1E00, 0x1E94, 2, 1}, {0x1EA0, 0x1EFE, 2, 1},
    {0x1F08, 0x1F0F, 1, -8}, {0x1F18, 0x1F1D, 1, -8}, {0x1F28, 0x1F2F, 1, -8},
    {0x1F38, 0x1F3F, 1, -8}, {0x1F48, 0x1F4D, 1, -8}, {0x1F59, 0x1F5F, 2, -8},
    {0x1F68, 0x1F6F, 1, -8}, {0x1FB8, 0x1FB9, 1, -8}, {0x1FBA, 0x1FBB, 1, -74},
    {0x1FC8, 0x1FCB, 1, -86}, {0x1FD8, 0x1FD9, 1, -8}, {0x1FDA, 0x1FDB, 1, -100},
    {0x1FE8, 0x1FE9, 1, -8}, {0x1FEA, 0x1FEB, 1, -112}, {0x1FEC, -7}, {0x1FF8, 0x1FF9, 1, -128},
    {0x1FFA, 0x1FFB, 1, -126}, {0x2132, 28}, {0x2160, 0x216F, 1, 16}, {0x2183, 1},
    {0x24B6, 0x24CF, 1, 26}, {0x2C00, 0x2C2F, 1, 48}, {0x2C60, 1}, {0x2C62, -10743},
    {0x2C63, -3814}, {0x2C64, -10727}, {0x2C67, 0x2C6B, 2, 1}, {0x2C6D, -10780}, {0x2C6E, -10749},
    {0x2C6F, -10783}, {0x2C70, -10782}, {0x2C72, 1}, {0x2C75, 1}, {0x2C7E, 0x2C7F, 1, -10815},
    {0x2C80, 0x2CE2, 2, 1}, {0x2CEB, 0x2CED, 2, 1}, {0x2CF2, 1}, {0xA640, 0xA66C, 2, 1},
    {0xA680, 0xA69A, 2, 1}, {0xA722, 0xA72E, 2, 1}, {0xA732, 0xA76E, 2, 1}, {0xA779, 0xA77B, 2, 1},
    {0xA77D, -35332}, {0xA77E, 0xA786, 2, 1}, {0xA78B, 1}, {0xA78D, -42280}, {0xA790, 0xA792, 2, 1},
    {0xA796, 0xA7A8, 2, 1}, {0xA7AA, -42308}, {0xA7AB, -42319}, {0xA7AC, -42315}, {0xA7AD, -42305},
    {0xA7AE, -42308}, {0xA7B0, -42258}, {0xA7B1, -42282}, {0xA7B2, -42261}, {0xA7B3, 928},
    {0xA7B4, 0xA7C2, 2, 1}, {0xA7C4, -48}, {0xA7C5, -42307}, {0xA7C6, -35384},
    {0xA7C7, 0xA7C9, 2, 1}, {0xA7D0, 1}, {0xA7D6, 0xA7D8, 2, 1}, {0xA7F5, 1},
    {0xFF21, 0xFF3A, 1, 32}, {0x10400, 0x10427, 1, 40}, {0x104B0, 0x104D3, 1, 40},
    {0x10570, 0x1057A, 1, 39}, {0x1057C, 0x1058A, 1, 39}, {0x1058C, 0x10592, 1, 39},
    {0x10594, 0x10595, 1, 39}, {0x10C80, 0x10CB2, 1, 64}, {0x118A0, 0x118BF, 1, 32},
    {0x16E40, 0x16E5F, 1, 32}, {0x1E900, 0x1E921, 1, 34},
};
// Characters whose lower case has another upper case, and vice versa.
constexpr CaseRow kOnlyToLower[] = {
    {0x1C5, 1}, {0x1C8, 1}, {0x1CB, 1}, {0x1F2, 1}, {0x3F4, -60}, {0x1E9E, -7615},
    {0x1F88, 0x1F8F, 1, -8}, {0x1F98, 0x1F9F, 1, -8}, {0x1FA8, 0x1FAF, 1, -8}, {0x1FBC, -9},
    {0x1FCC, -9}, {0x1FFC, -9}, {0x2126, -7517}, {0x212A, -8383}, {0x212B, -8262},
};
constexpr CaseRow kOnlyToUpper[] = {
    {0xB5, 743}, {0x131, -232}, {0x17F, -300}, {0x1C5, -1}, {0x1C8, -1}, {0x1CB, -1}, {0x1F2, -1},
    {0x345, 84}, {0x3C2, -31}, {0x3D0, -62}, {0x3D1, -57}, {0x3D5, -47}, {0x3D6, -54}, {0x3F0, -86},
    {0x3F1, -80}, {0x3F5, -96}, {0x1C80, -6254}, {0x1C81, -6253}, {0x1C82, -6244},
    {0x1C83, 0x1C84, 1, -6242}, {0x1C85, -6243}, {0x1C86, -6236}, {0x1C87, -6181}, {0x1C88, 35266},
    {0x1E9B, -59}, {0x1FBE, -7205},
};
// clang-format on

bool Between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

// The other case of each character in the rows; of two rows the first counts.
class CaseMap {
 public:
  CaseMap(std::span<const CaseRow> pairs, bool is_inverse, std::span<const CaseRow> more) {
    for (const CaseRow& row : pairs) {
      for (int32_t c = row.first; c <= row.last; c += row.stride)
        is_inverse ? Add(c + row.delta, c) : Add(c, c + row.delta);
    }
    for (const CaseRow& row : more) {
      for (int32_t c = row.first; c <= row.last; c += row.stride) Add(c, c + row.delta);
    }
  }
  char32_t operator()(char32_t c) const {
    const auto found = map_.find(c);
    return found == map_.end() ? c : found->second;
  }

 private:
  void Add(int32_t from, int32_t to) {
    map_.try_emplace(static_cast<char32_t>(from), static_cast<char32_t>(to));
  }
  std::unordered_map<char32_t, char32_t> map_;
};

template <typename Fn>
String MapText(std::string_view text, Fn map) {
  String out;
  out.reserve(text.size());
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    const char32_t mapped = map(code);
    out += mapped == code ? bytes : std::string_view(gguf::ToUtf8(mapped));
  }
  return out;
}

// A class of characters as PCRE2 knows it.
class CharacterClass {
 public:
  explicit CharacterClass(std::string_view pattern) {
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

}  // namespace

gguf::Characters::Character CharBefore(std::string_view text, size_t pos) {
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

bool IsSpace(char32_t c) {
  constexpr char32_t kOthers[] = {' ', 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000};
  return Between(c, 9, 13) || Between(c, 28, 31) || Between(c, 0x2000, 0x200A) ||
         std::find(std::begin(kOthers), std::end(kOthers), c) != std::end(kOthers);
}

bool IsLetter(char32_t c) {
  static const CharacterClass letters("\\p{L}");
  return c < 0x80 ? Between(c | 0x20, 'a', 'z') : letters.Has(c);
}

bool IsDecimal(char32_t c) {
  static const CharacterClass decimals("\\p{Nd}");
  return c < 0x80 ? Between(c, '0', '9') : decimals.Has(c);
}

bool IsNumeric(char32_t c) {
  static const CharacterClass numbers("\\p{N}");
  return c < 0x80 ? Between(c, '0', '9') : numbers.Has(c);
}

bool IsPrintable(char32_t c) {
  if (c == ' ') return true;
  return !(IsSpace(c) || c < 0x20 || Between(c, 0x7F, 0xA0) || c == 0xAD ||
           Between(c, 0x200B, 0x200F) || Between(c, 0x202A, 0x202E) || Between(c, 0x2060, 0x206F) ||
           Between(c, 0xD800, 0xF8FF) || c == 0xFEFF || Between(c, 0xFFF0, 0xFFFB));
}

char32_t ToUpper(char32_t c) {
  static const CaseMap map(kPairs, /*is_inverse=*/true, kOnlyToUpper);
  return c < 0x80 ? Between(c, 'a', 'z') ? c - 32 : c : map(c);
}

char32_t ToLower(char32_t c) {
  static const CaseMap map(kPairs, /*is_inverse=*/false, kOnlyToLower);
  return c < 0x80 ? Between(c, 'A', 'Z') ? c + 32 : c : map(c);
}

String Upper(std::string_view text) {
  String out = MapText(text, ToUpper);
  for (size_t at = 0; (at = out.find("ß", at)) != String::npos;) out.replace(at, 2, "SS");
  return out;
}

String Lower(std::string_view text) { return MapText(text, ToLower); }

size_t LeadingSpace(std::string_view text) {
  size_t n = 0;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (!IsSpace(code)) break;
    n += bytes.size();
  }
  return n;
}

size_t TrailingSpace(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    const auto [code, bytes] = CharBefore(text, end);
    if (!IsSpace(code)) break;
    end -= bytes.size();
  }
  return text.size() - end;
}

}  // namespace tokenizer::jinja
