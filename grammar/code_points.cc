// Sets of characters, and their bytes in UTF-8.
#include "grammar/code_points.h"

#include <algorithm>

#include "gguf/utf8.h"

namespace grammar {
namespace {

constexpr CodePoint kFirstSurrogate = 0xD800, kLastSurrogate = 0xDFFF;

// The last characters of one, two and three bytes.
constexpr std::array<CodePoint, 3> kLastOfLength = {0x7F, 0x7FF, 0xFFFF};

// Both ends have the same number of bytes. Where they differ in one byte, the bytes after it must
// take all values for the range to be one sequence; otherwise the range is cut there.
void Split(CodePoint low, CodePoint high, const std::function<void(const ByteRanges&)>& call) {
  const std::string first = gguf::ToUtf8(low), last = gguf::ToUtf8(high);
  for (size_t i = 1; i < first.size(); ++i) {
    const CodePoint mask = (CodePoint{1} << (6 * i)) - 1;  // mask of the last i bytes
    if ((low & ~mask) == (high & ~mask)) continue;
    if ((low & mask) != 0) {
      Split(low, low | mask, call);
      return Split((low | mask) + 1, high, call);
    }
    if ((high & mask) != mask) {
      Split(low, (high & ~mask) - 1, call);
      return Split(high & ~mask, high, call);
    }
  }
  ByteRanges ranges = {{}, first.size()};
  for (size_t i = 0; i < first.size(); ++i) {
    ranges.bytes[i] = {static_cast<uint8_t>(first[i]), static_cast<uint8_t>(last[i])};
  }
  call(ranges);
}

}  // namespace

CodePoints Normal(CodePoints ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodePoints joined;
  for (const auto& [low, high] : ranges) {
    if (!joined.empty() && low <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, high);
    } else {
      joined.emplace_back(low, high);
    }
  }
  CodePoints normal;
  const auto add = [&](CodePoint low, CodePoint high) {
    if (low <= high) normal.emplace_back(low, high);
  };
  for (const auto& [low, high] : joined) {
    add(low, std::min<CodePoint>(high, kFirstSurrogate - 1));
    add(std::max<CodePoint>(low, kLastSurrogate + 1), std::min(high, kMaxCodePoint));
  }
  return normal;
}

CodePoints Complement(const CodePoints& set) {
  CodePoints rest;
  CodePoint from = 0;
  for (const auto& [low, high] : set) {
    if (from < low) rest.emplace_back(from, low - 1);
    from = high + 1;
  }
  if (from <= kMaxCodePoint) rest.emplace_back(from, kMaxCodePoint);
  return Normal(std::move(rest));
}

bool IsSubset(const CodePoints& part, const CodePoints& set) {
  return std::ranges::all_of(part, [&](const auto& range) {
    const auto at =
        std::ranges::lower_bound(set, range.second, {}, &std::pair<CodePoint, CodePoint>::second);
    return at != set.end() && at->first <= range.first;
  });
}

// White space and line ends of ECMA-262.
const CodePoints& WhiteSpace() {
  constexpr CodePoint kAlone[] = {0x20, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF};
  static const CodePoints set = [&] {
    CodePoints all = {{0x9, 0xD}, {0x2000, 0x200A}, {0x2028, 0x2029}};
    for (const CodePoint c : kAlone) all.emplace_back(c, c);
    return Normal(std::move(all));
  }();
  return set;
}
void ForUtf8(const CodePoints& set, const std::function<void(const ByteRanges&)>& call) {
  for (const auto& [low, high] : set) {
    CodePoint from = low;
    for (const CodePoint last : kLastOfLength) {
      if (from > last || from > high) continue;
      Split(from, std::min(high, last), call);
      from = last + 1;
    }
    if (from <= high) Split(from, high, call);
  }
}

}  // namespace grammar
