// Sets of characters, and how UTF-8 spells them.
#ifndef PRONK_GRAMMAR_CODE_POINTS_H_
#define PRONK_GRAMMAR_CODE_POINTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace grammar {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

using CodePoint = char32_t;
// Ranges with both ends, ascending, apart from each other, without surrogates (which no text has).
using CodePoints = std::vector<std::pair<CodePoint, CodePoint>>;

// Ranges in any order, brought into that form.
CodePoints Normal(CodePoints ranges);
// All characters but these.
CodePoints Complement(const CodePoints& set);

struct ByteRange {
  uint8_t low, high;
};
struct ByteRanges {
  std::array<ByteRange, 4> bytes;
  size_t size;
};
// Calls with sequences of byte ranges that spell the characters of the set, each exactly once.
void ForUtf8(const CodePoints& set, const std::function<void(const ByteRanges&)>& call);

std::string ToUtf8(CodePoint c);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_CODE_POINTS_H_
