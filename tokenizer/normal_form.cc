// Decomposition, order of marks and composition, over Unicode's tables.
#include "tokenizer/normal_form.h"

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gguf/utf8.h"
#include "tokenizer/characters.h"
#include "tokenizer/unicode_data.h"

namespace tokenizer {
namespace {

// Syllables of Hangul are composed by arithmetic.
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr uint32_t kNLeads = 19, kNVowels = 21, kNTails = 28;

// The lowest mark.
constexpr char32_t kFirstMark = 0x300;

class Tables {
 public:
  static const Tables& Get() {
    static const Tables tables;
    return tables;
  }

  void Decompose(char32_t c, bool compatible, std::u32string& out) const {
    if (c - kSyllables < kNLeads * kNVowels * kNTails) {
      const uint32_t i = c - kSyllables;
      out.push_back(kLeads + i / kNTails / kNVowels);
      out.push_back(kVowels + i / kNTails % kNVowels);
      if (i % kNTails != 0) out.push_back(kTails + i % kNTails);
      return;
    }
    const auto found = decompositions_.find(c);
    if (found == decompositions_.end()) {
      out += c;
      return;
    }
    const auto& [canonical, full] = found->second;
    const std::u32string& text = compatible && !full.empty() ? full : canonical;
    text.empty() ? out += c : out += text;
  }

  // The character that two compose, or 0.
  char32_t Compose(char32_t first, char32_t second) const {
    if (first - kLeads < kNLeads && second - kVowels < kNVowels) {
      return kSyllables + ((first - kLeads) * kNVowels + second - kVowels) * kNTails;
    }
    const bool is_open =
        first - kSyllables < kNLeads * kNVowels * kNTails && (first - kSyllables) % kNTails == 0;
    if (is_open && second > kTails && second < kTails + kNTails) return first + second - kTails;
    const auto found = compositions_.find(uint64_t{first} << 32 | second);
    return found == compositions_.end() ? 0 : found->second;
  }

  uint8_t ClassOf(char32_t c) const {
    if (c < kFirstMark) return 0;
    const auto found = classes_.find(c);
    return found == classes_.end() ? uint8_t{0} : found->second;
  }

  // Whether this form may change a text with this character.
  bool MayChange(char32_t c, NormalForm form) const {
    return c < may_change_.size() && (may_change_[c] >> static_cast<int>(form) & 1) != 0;
  }

 private:
  Tables() {
    constexpr char32_t kLast = 0x2FFFF;  // no normal form changes a character after it
    constexpr auto bit = [](NormalForm form) { return 1 << static_cast<int>(form); };
    constexpr int kAll = 15, kComposed = bit(NormalForm::kNfc) | bit(NormalForm::kNfkc);
    constexpr int kCompatible = bit(NormalForm::kNfkd) | bit(NormalForm::kNfkc);
    may_change_.resize(kLast + 1);
    const auto note = [&](char32_t c, int forms) {
      may_change_[c] = static_cast<uint8_t>(may_change_[c] | forms);
    };
    std::map<std::u32string, char32_t> composed;
    char32_t code = 0;
    for (HexReader reader(kDecompositions); !reader.AtEnd(); reader.Skip(' ')) {
      code = reader.IsAt("=!~") ? code + 1 : reader.Number();
      reader.Skip(':');
      auto& [canonical, full] = decompositions_[code];
      const bool composes = reader.IsAt("=");
      if (reader.Skip('=') || reader.Skip('!')) ReadParts(reader, canonical);
      if (reader.Skip('~')) ReadParts(reader, full);
      if (composes) composed[canonical] = code;
      note(code, composes ? kAll & ~kComposed : !canonical.empty() ? kAll : 0);
      if (!full.empty()) note(code, kCompatible);
    }
    for (const auto& [parts, whole] : composed) {
      // If there are more than two parts, all but the last form a composed character.
      const std::u32string first = parts.substr(0, parts.size() - 1);
      const auto before = composed.find(first);
      const char32_t left = before == composed.end() ? first[0] : before->second;
      compositions_[uint64_t{left} << 32 | parts.back()] = whole;
      note(parts.back(), kComposed);
    }
    for (char32_t c = kVowels; c < kTails + kNTails; ++c) note(c, kComposed);
    for (char32_t i = 0; i < kNLeads * kNVowels * kNTails; ++i)
      note(kSyllables + i, kAll & ~kComposed);
    for (HexReader reader(kCombiningClasses); !reader.AtEnd(); reader.Skip(' ')) {
      const char32_t first = reader.Number();
      reader.Skip('-');
      const char32_t last = reader.Number();
      reader.Skip(':');
      const auto kind = static_cast<uint8_t>(reader.Number(10));
      for (char32_t c = first; c <= last; ++c) {
        classes_[c] = kind;
        note(c, kAll);
      }
    }
  }

  static void ReadParts(HexReader& reader, std::u32string& out) {
    do {
      out += reader.Number();
    } while (reader.Skip(','));
  }

  std::unordered_map<char32_t, std::pair<std::u32string, std::u32string>> decompositions_;
  std::unordered_map<uint64_t, char32_t> compositions_;
  std::unordered_map<char32_t, uint8_t> classes_;
  std::vector<uint8_t> may_change_;  // [character]: a bit for each form
};

// Sorts the marks that follow a letter by their classes.
void Reorder(const Tables& tables, std::u32string& text) {
  const auto kind = [&](char32_t c) { return tables.ClassOf(c); };
  for (size_t begin = 0; begin < text.size(); ++begin) {
    size_t end = begin;
    while (end < text.size() && kind(text[end]) != 0) ++end;
    std::ranges::stable_sort(std::span(text).subspan(begin, end - begin), {}, kind);
    begin = end;
  }
}

// A mark composes with the last letter unless a mark of its class, or a letter, is between.
void Compose(const Tables& tables, std::u32string& text) {
  size_t n = 0, letter = 0;
  bool has_letter = false;
  uint8_t last_class = 0;
  for (const char32_t c : text) {
    const uint8_t kind = tables.ClassOf(c);
    const bool is_next = has_letter && letter + 1 == n;
    if (has_letter && (is_next || (last_class != 0 && last_class < kind))) {
      if (const char32_t whole = tables.Compose(text[letter], c); whole != 0) {
        text[letter] = whole;
        continue;
      }
    }
    if (kind == 0) {
      letter = n;
      has_letter = true;
    }
    last_class = kind;
    text[n++] = c;
  }
  text.resize(n);
}

}  // namespace

std::string ToNormalForm(std::string_view text, NormalForm form) {
  const Tables& tables = Tables::Get();
  // No form changes ASCII.
  const auto* const first =
      std::ranges::find_if(text, [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
  bool may_change = false;
  for (const auto& [c, bytes] :
       gguf::Characters(text.substr(static_cast<size_t>(first - text.begin())))) {
    may_change = may_change || tables.MayChange(c, form);
    if (may_change) break;
  }
  if (!may_change) return std::string(text);
  const bool compatible = form == NormalForm::kNfkd || form == NormalForm::kNfkc;
  std::u32string characters;
  characters.reserve(text.size());
  for (const auto& [c, bytes] : gguf::Characters(text)) {
    tables.Decompose(c, compatible, characters);
  }
  Reorder(tables, characters);
  if (form == NormalForm::kNfc || form == NormalForm::kNfkc) Compose(tables, characters);
  std::string out;
  out.reserve(text.size());
  for (const char32_t c : characters) out += gguf::ToUtf8(c);
  return out;
}

}  // namespace tokenizer
