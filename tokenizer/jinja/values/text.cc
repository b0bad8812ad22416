// Texts with the origin of their bytes, and Python's string methods on them.
#include "tokenizer/jinja/values/text.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "tokenizer/errors.h"

namespace tokenizer::jinja {
namespace {

using Character = gguf::Characters::Character;

// map(const Character&) gives the new bytes of each character.
template <typename Fn>
Text MapChars(const Text& text, Fn map) {
  Text out;
  out.AppendMapped(text, [&](char32_t code, std::string_view bytes, String& mapped) {
    mapped += map(Character{code, bytes});
  });
  return out;
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c); }

Vector<Text> Pieces(const Text& text, const Vector<ByteSpan>& spans) {
  Vector<Text> out;
  out.reserve(spans.size());
  for (const ByteSpan& span : spans) out.push_back(text.Sub(span.begin, span.end - span.begin));
  return out;
}

// Whether the text has a character of the wanted case, and no character of the other.
bool HasOnly(bool (*wanted)(char32_t), bool (*other)(char32_t), std::string_view text) {
  bool found = false;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (other(code)) return false;
    found = found || wanted(code);
  }
  return found;
}

bool Contains(std::string_view chars, std::string_view c) { return chars.find(c) != kNotFound; }

// "-a-b-" of "ab": Python's replacement of the empty string.
Text Intersperse(const Text& text, const Text& to, int64_t count) {
  Text out;
  size_t pos = 0;
  for (; count != 0; --count) {
    out.Append(to);
    if (pos == text.size()) return out;
    const size_t size = gguf::NextUtf8(text.view().substr(pos)).length;
    out.Append(text, pos, size);
    pos += size;
  }
  out.Append(text, pos);
  return out;
}

}  // namespace

void Text::MarkForeign(size_t begin, size_t end) {
  if (begin == end) return;
  if (!foreign_.empty() && foreign_.back().end == begin) {
    foreign_.back().end = end;
  } else {
    foreign_.push_back({begin, end});
  }
}

void Text::Reserve(size_t n_bytes, size_t n_spans) {
  bytes_.reserve(n_bytes);
  foreign_.reserve(n_spans);
}

void Text::Append(std::string_view bytes, bool foreign) {
  const size_t begin = size();
  bytes_ += bytes;
  if (foreign) MarkForeign(begin, size());
}

void Text::Append(const Text& text, size_t pos, size_t n) {
  n = std::min(n, text.size() - pos);
  const size_t begin = size();
  bytes_.append(text.bytes_, pos, n);
  auto span = std::ranges::upper_bound(text.foreign_, pos, {}, &ByteSpan::end);
  for (; span != text.foreign_.end() && span->begin < pos + n; ++span) {
    MarkForeign(begin + std::max(span->begin, pos) - pos,
                begin + std::min(span->end, pos + n) - pos);
  }
}

Text Text::Sub(size_t pos, size_t n) const {
  Text out;
  out.Append(*this, pos, n);
  return out;
}

size_t FindBytes(std::string_view text, std::string_view needle, size_t pos) {
  if (pos > text.size()) return kNotFound;
  const void* const found =
      memmem(text.data() + pos, text.size() - pos, needle.data(), needle.size());
  return found == nullptr ? kNotFound
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

Text Strip(const Text& text, Side side, std::optional<std::string_view> chars) {
  std::set<std::string_view, std::less<>, Counted<std::string_view>> stripped;
  for (const auto& [code, bytes] : gguf::Characters(chars.value_or(""))) stripped.insert(bytes);
  std::string_view rest = text.view();
  const auto goes = [&](char32_t code, std::string_view bytes) {
    return chars ? stripped.contains(bytes) : IsSpace(code);
  };
  while (side != Side::kRight && !rest.empty()) {
    const auto [code, bytes] = *gguf::Characters(rest).begin();
    if (!goes(code, bytes)) break;
    rest.remove_prefix(bytes.size());
  }
  while (side != Side::kLeft && !rest.empty()) {
    const auto [code, bytes] = CharBefore(rest, rest.size());
    if (!goes(code, bytes)) break;
    rest.remove_suffix(bytes.size());
  }
  return text.Sub(static_cast<size_t>(rest.data() - text.view().data()), rest.size());
}

size_t Times(size_t a, size_t b) {
  size_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX / 2 : product;
}

Text Repeated(const Text& text, int64_t n) {
  constexpr size_t kPart = size_t{1} << 16;  // bytes copied at once
  const auto times = static_cast<size_t>(std::max<int64_t>(n, 0));
  const size_t size = Times(text.size(), times);
  Text out;
  out.Reserve(size, Times(text.foreign().size(), times));  // growing would triple the memory
  Text part = text;
  while (out.size() < size) {
    out.Append(part, 0, size - out.size());
    if (part.size() < kPart) part = out;  // doubles
  }
  return out;
}

Text UpperText(const Text& text) { return MapChars(text, UpperCase); }
Text LowerText(const Text& text) { return MapChars(text, LowerCase); }

Text Capitalize(const Text& text) {
  bool first = true;
  return MapChars(text, [&](const Character& c) {
    return std::exchange(first, false) ? UpperCase(c) : LowerCase(c);
  });
}

Text TitleMethod(const Text& text) {
  bool in_word = false;
  return MapChars(text, [&](const Character& c) {
    return std::exchange(in_word, IsCased(c.code)) ? LowerCase(c) : UpperCase(c);
  });
}

Text TitleFilter(const Text& text) {
  bool in_word = false;
  return MapChars(text, [&](const Character& c) {
    const bool between = IsSpace(c.code) || Contains("-({[<", c.bytes);
    return std::exchange(in_word, !between) ? LowerCase(c) : UpperCase(c);
  });
}

bool IsLowerText(std::string_view text) { return HasOnly(IsLower, IsUpper, text); }
bool IsUpperText(std::string_view text) { return HasOnly(IsUpper, IsLower, text); }

bool IsTitleText(std::string_view text) {
  bool has_cased = false, in_word = false;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (IsUpper(code) ? in_word : IsLower(code) && !in_word) return false;
    in_word = IsCased(code);
    has_cased = has_cased || in_word;
  }
  return has_cased;
}

Text SwapCase(const Text& text) {
  return MapChars(text,
                  [](const Character& c) { return IsUpper(c.code) ? LowerCase(c) : UpperCase(c); });
}

Text Padded(const Text& text, char align, int64_t width, std::string_view fill) {
  const auto size = static_cast<int64_t>(CountChars(text.view()));
  if (width <= size) return text;
  const int64_t blanks = width - size;
  const int64_t before = align == '<' ? 0 : align == '>' ? blanks : blanks / 2;
  Text out = Repeated(Text(fill), before);
  out.Append(text);
  out.Append(Repeated(Text(fill), blanks - before));
  return out;
}

Text Centered(const Text& text, int64_t width, std::string_view fill) {
  // Python puts an odd blank to the left if the width is odd, too.
  const auto size = static_cast<int64_t>(CountChars(text.view()));
  if (width <= size) return text;
  const int64_t blanks = width - size, left = blanks / 2 + (blanks & width & 1);
  return Padded(Padded(text, '>', size + left, fill), '<', width, fill);
}

Text Replace(const Text& text, std::string_view from, const Text& to, int64_t count) {
  if (from.empty()) return Intersperse(text, to, count);
  Text out;
  size_t pos = 0;
  for (int64_t i = 0; i != count; ++i) {  // a negative count never ends it
    const size_t at = FindBytes(text.view(), from, pos);
    if (at == kNotFound) break;
    out.Append(text, pos, at - pos);
    out.Append(to);
    pos = at + from.size();
  }
  out.Append(text, pos);
  return out;
}

Vector<Text> Split(const Text& text, std::string_view separator, int64_t limit, bool from_end) {
  if (separator.empty()) Fail("empty separator");
  // From the end: splits the reversed text at the reversed separator.
  const size_t size = text.size();
  const std::string_view forward = text.view();
  const String reversed(forward.rbegin(), from_end ? forward.rend() : forward.rbegin());
  const std::string_view searched = from_end ? reversed : forward;
  String wanted(separator);
  if (from_end) std::reverse(wanted.begin(), wanted.end());
  Vector<ByteSpan> spans;
  size_t begin = 0;
  while (spans.size() < static_cast<uint64_t>(limit)) {
    const size_t at = FindBytes(searched, wanted, begin);
    if (at == kNotFound) break;
    spans.push_back({begin, at});
    begin = at + wanted.size();
  }
  spans.push_back({begin, size});
  if (from_end) {
    std::reverse(spans.begin(), spans.end());
    for (ByteSpan& span : spans) span = {size - span.end, size - span.begin};
  }
  return Pieces(text, spans);
}

Vector<Text> SplitSpace(const Text& text, int64_t limit, bool from_end) {
  const std::string_view all = text.view();
  Vector<ByteSpan> words;
  for (size_t pos = Leading(IsSpace, all); pos < all.size();
       pos += Leading(IsSpace, all.substr(pos))) {
    const size_t begin = pos;
    for (const auto& [code, bytes] : gguf::Characters(all.substr(pos))) {
      if (IsSpace(code)) break;
      pos += bytes.size();
    }
    words.push_back({begin, pos});
  }
  const auto splits = static_cast<uint64_t>(limit);
  if (words.size() > splits + 1 && limit >= 0) {
    if (from_end) {  // text before the last `limit` words is one piece, with blanks before it
      const size_t merged = words.size() - splits;
      words[merged - 1].begin = 0;
      words.erase(words.begin(), words.begin() + static_cast<ptrdiff_t>(merged - 1));
    } else {  // text after the first `limit` words is one piece, with blanks at its end
      words.resize(splits + 1);
      words.back().end = all.size();
    }
  }
  return Pieces(text, words);
}

Vector<Text> SplitLines(const Text& text, bool keep_ends) {
  const std::string_view all = text.view();
  Vector<ByteSpan> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < all.size();) {
    const gguf::Utf8Step c = gguf::NextUtf8(all.substr(pos));
    const size_t end = pos;
    pos += c.length;
    const bool breaks = (c.code >= 10 && c.code <= 13) || (c.code >= 28 && c.code <= 30) ||
                        c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    if (!breaks) continue;
    if (c.code == '\r' && pos < all.size() && all[pos] == '\n') ++pos;
    lines.push_back({begin, keep_ends ? pos : end});
    begin = pos;
  }
  if (begin < all.size()) lines.push_back({begin, all.size()});
  return Pieces(text, lines);
}

Text JoinTexts(const Text& separator, const Vector<Text>& parts) {
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out.Append(separator);
    out.Append(parts[i]);
  }
  return out;
}

}  // namespace tokenizer::jinja
