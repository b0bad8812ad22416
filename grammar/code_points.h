// Sets of characters and their spelling in UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace grammar {

inline constexpr char32_t kMaxCodePoint = 0x10FFFF;

using CodePoint = char32_t;
// Inclusive ranges, ascending, not touching, without surrogates (which UTF-8 cannot encode).
using CodePoints = std::vector<std::pair<CodePoint, CodePoint>>;

// Sorts and joins ranges that are in any order.
CodePoints Normal(CodePoints ranges);
// All characters outside the set.
CodePoints Complement(const CodePoints& set);
bool IsSubset(const CodePoints& part, const CodePoints& set);
// ECMA-262's \s, which includes line ends.
const CodePoints& WhiteSpace();

struct ByteRange {
  uint8_t low, high;
};
struct ByteRanges {
  std::array<ByteRange, 4> bytes;
  size_t size;
};
// Calls `call` with sequences of byte ranges that spell the characters of the set, each once.
void ForUtf8(const CodePoints& set, const std::function<void(const ByteRanges&)>& call);

}  // namespace grammar
