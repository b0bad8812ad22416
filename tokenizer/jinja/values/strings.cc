#include "tokenizer/jinja/values/strings.h"

#include <algorithm>
#include <set>
#include <string>

#include "tokenizer/errors.h"
#include "tokenizer/jinja/values/format.h"
#include "tokenizer/jinja/values/unicode.h"

namespace tokenizer::jinja {
namespace {

// Knuth-Morris-Pratt: for each prefix of the needle, its longest proper suffix that is a prefix.
std::vector<size_t> Borders(std::string_view needle) {
  std::vector<size_t> borders(needle.size(), 0);
  for (size_t i = 1, length = 0; i < needle.size(); ++i) {
    while (length > 0 && needle[i] != needle[length]) length = borders[length - 1];
    if (needle[i] == needle[length]) ++length;
    borders[i] = length;
  }
  return borders;
}

size_t FindLong(Runtime& rt, std::string_view text, std::string_view needle, size_t pos) {
  if (pos > text.size() || needle.size() > text.size() - pos) return kNotFound;
  rt.PayBytes(needle.size() * sizeof(size_t));
  const std::vector<size_t> borders = Borders(needle);
  for (size_t matched = 0; pos < text.size(); ++pos) {
    while (matched > 0 && text[pos] != needle[matched]) matched = borders[matched - 1];
    if (text[pos] == needle[matched]) ++matched;
    if (matched == needle.size()) return pos + 1 - matched;
  }
  return kNotFound;
}

constexpr size_t kShortNeedle = 16;  // bytes: up to here the plain search costs little more

// Applies map(std::string_view) to each run of one origin.
template <typename Fn>
Text MapRuns(Runtime& rt, const Text& text, Fn map) {
  rt.PayBytes(2 * text.Cost());
  Text out;
  text.ForEachRun([&](std::string_view run, bool foreign) { out.Append(map(run), foreign); });
  return out;
}

// Applies map(char32_t, std::string_view bytes), which returns new bytes, to each character.
template <typename Fn>
Text MapChars(Runtime& rt, const Text& text, Fn map) {
  return MapRuns(rt, text, [&](std::string_view run) {
    std::string out;
    for (const auto& [code, bytes] : gguf::Characters(run)) out += map(code, bytes);
    return out;
  });
}

bool IsCased(char32_t c) { return IsUpper(c) || IsLower(c); }

// Adds a piece of a text and pays for it: a long text can have more pieces than fit into memory,
// and a growing vector takes up to twice as much.
void AddSpan(Runtime& rt, ByteSpan span, std::vector<ByteSpan>& spans) {
  rt.PaySteps();
  rt.PayBytes(2 * sizeof(ByteSpan) + sizeof(Text));
  spans.push_back(span);
}

std::vector<Text> Pieces(Runtime& rt, const Text& text, const std::vector<ByteSpan>& spans) {
  rt.PayBytes(text.Cost());
  std::vector<Text> out;
  out.reserve(spans.size());
  for (const ByteSpan& span : spans) out.push_back(text.Sub(span.begin, span.end - span.begin));
  return out;
}

bool Contains(std::string_view chars, std::string_view c) { return chars.find(c) != kNotFound; }

size_t CountBytes(Runtime& rt, std::string_view text, std::string_view needle, int64_t limit) {
  size_t count = 0;
  for (size_t at = 0; count < static_cast<uint64_t>(limit); ++count) {
    at = FindBytes(rt, text, needle, at);
    if (at == kNotFound) break;
    at += needle.size();
  }
  return count;
}

// "-a-b-" of "ab": Python's replacement of the empty string.
Text Intersperse(Runtime& rt, const Text& text, const Text& to, int64_t count) {
  rt.PayBytes(text.Cost() + (text.size() + 1) * to.Cost());
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

size_t FindBytes(Runtime& rt, std::string_view text, std::string_view needle, size_t pos) {
  if (needle.size() <= kShortNeedle) return text.find(needle, pos);
  return FindLong(rt, text, needle, pos);
}

Text Strip(Runtime& rt, const Text& text, Side side, std::optional<std::string_view> chars) {
  std::set<std::string_view> stripped;
  for (const auto& [code, bytes] : gguf::Characters(chars.value_or(""))) {
    if (stripped.insert(bytes).second) rt.PayBytes(64);
  }
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

Text Blanks(Runtime& rt, int64_t n) {
  const size_t size = n > 0 ? static_cast<size_t>(n) : 0;
  rt.PayBytes(size);
  return Text(std::string(size, ' '));
}

Text UpperText(Runtime& rt, const Text& text) { return MapRuns(rt, text, Upper); }
Text LowerText(Runtime& rt, const Text& text) { return MapRuns(rt, text, Lower); }

Text Capitalize(Runtime& rt, const Text& text) {
  bool first = true;
  return MapChars(rt, text, [&](char32_t, std::string_view bytes) {
    return std::exchange(first, false) ? Upper(bytes) : Lower(bytes);
  });
}

Text TitleMethod(Runtime& rt, const Text& text) {
  bool in_word = false;
  return MapChars(rt, text, [&](char32_t c, std::string_view bytes) {
    return std::exchange(in_word, IsCased(c)) ? Lower(bytes) : Upper(bytes);
  });
}

Text TitleFilter(Runtime& rt, const Text& text) {
  bool in_word = false;
  return MapChars(rt, text, [&](char32_t c, std::string_view bytes) {
    const bool between = IsSpace(c) || Contains("-({[<", bytes);
    return std::exchange(in_word, !between) ? Lower(bytes) : Upper(bytes);
  });
}

bool IsLowerText(std::string_view text) {
  bool has_cased = false;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (IsUpper(code)) return false;
    has_cased = has_cased || IsLower(code);
  }
  return has_cased;
}

bool IsUpperText(std::string_view text) {
  bool has_cased = false;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (IsLower(code)) return false;
    has_cased = has_cased || IsUpper(code);
  }
  return has_cased;
}

bool IsTitleText(std::string_view text) {
  bool has_cased = false, in_word = false;
  for (const auto& [code, bytes] : gguf::Characters(text)) {
    if (IsUpper(code) ? in_word : IsLower(code) && !in_word) return false;
    in_word = IsCased(code);
    has_cased = has_cased || in_word;
  }
  return has_cased;
}

Text SwapCase(Runtime& rt, const Text& text) {
  return MapChars(rt, text, [&](char32_t c, std::string_view bytes) {
    return IsUpper(c) ? Lower(bytes) : Upper(bytes);
  });
}

Text Centered(Runtime& rt, const Text& text, int64_t width, std::string_view fill) {
  // Python puts an odd blank to the left if the width is odd, too.
  const auto size = static_cast<int64_t>(CountChars(text.view()));
  if (width <= size) return text;
  const int64_t blanks = width - size, left = blanks / 2 + (blanks & width & 1);
  return Padded(rt, Padded(rt, text, '>', size + left, fill), '<', width, fill);
}

Text Replace(Runtime& rt, const Text& text, std::string_view from, const Text& to, int64_t count) {
  if (from.empty()) return Intersperse(rt, text, to, count);
  const size_t matches = CountBytes(rt, text.view(), from, count);
  rt.PaySteps(matches);
  size_t added = 0;
  if (__builtin_mul_overflow(matches, to.Cost(), &added)) added = SIZE_MAX;
  rt.PayBytes(added);
  rt.PayBytes(text.Cost());
  Text out;
  size_t pos = 0;
  for (size_t i = 0; i < matches; ++i) {
    const size_t at = FindBytes(rt, text.view(), from, pos);
    out.Append(text, pos, at - pos);
    out.Append(to);
    pos = at + from.size();
  }
  out.Append(text, pos);
  return out;
}

std::vector<Text> Split(Runtime& rt, const Text& text, std::string_view separator, int64_t limit,
                        bool from_end) {
  if (separator.empty()) Fail("empty separator");
  // From the end: the same with text and separator reversed.
  const size_t size = text.size();
  const std::string_view forward = text.view();
  const std::string reversed(forward.rbegin(), from_end ? forward.rend() : forward.rbegin());
  const std::string_view searched = from_end ? reversed : forward;
  std::string wanted(separator);
  if (from_end) std::reverse(wanted.begin(), wanted.end());
  std::vector<ByteSpan> spans;
  size_t begin = 0;
  while (spans.size() < static_cast<uint64_t>(limit)) {
    const size_t at = FindBytes(rt, searched, wanted, begin);
    if (at == kNotFound) break;
    AddSpan(rt, {begin, at}, spans);
    begin = at + wanted.size();
  }
  AddSpan(rt, {begin, size}, spans);
  if (from_end) {
    std::reverse(spans.begin(), spans.end());
    for (ByteSpan& span : spans) span = {size - span.end, size - span.begin};
  }
  return Pieces(rt, text, spans);
}

std::vector<Text> SplitSpace(Runtime& rt, const Text& text, int64_t limit, bool from_end) {
  const std::string_view all = text.view();
  std::vector<ByteSpan> words;
  for (size_t pos = LeadingSpace(all); pos < all.size(); pos += LeadingSpace(all.substr(pos))) {
    const size_t begin = pos;
    for (const auto& [code, bytes] : gguf::Characters(all.substr(pos))) {
      if (IsSpace(code)) break;
      pos += bytes.size();
    }
    AddSpan(rt, {begin, pos}, words);
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
  return Pieces(rt, text, words);
}

std::vector<Text> SplitLines(Runtime& rt, const Text& text, bool keep_ends) {
  const std::string_view all = text.view();
  std::vector<ByteSpan> lines;
  size_t begin = 0;
  for (size_t pos = 0; pos < all.size();) {
    const gguf::Utf8Step c = gguf::NextUtf8(all.substr(pos));
    const size_t end = pos;
    pos += c.length;
    const bool breaks = (c.code >= 10 && c.code <= 13) || (c.code >= 28 && c.code <= 30) ||
                        c.code == 0x85 || c.code == 0x2028 || c.code == 0x2029;
    if (!breaks) continue;
    if (c.code == '\r' && pos < all.size() && all[pos] == '\n') ++pos;
    AddSpan(rt, {begin, keep_ends ? pos : end}, lines);
    begin = pos;
  }
  if (begin < all.size()) AddSpan(rt, {begin, all.size()}, lines);
  return Pieces(rt, text, lines);
}

Text JoinTexts(Runtime& rt, const Text& separator, const std::vector<Text>& parts) {
  Text out;
  for (size_t i = 0; i < parts.size(); ++i) {
    rt.PayBytes(separator.Cost() + parts[i].Cost());
    if (i > 0) out.Append(separator);
    out.Append(parts[i]);
  }
  return out;
}

}  // namespace tokenizer::jinja
