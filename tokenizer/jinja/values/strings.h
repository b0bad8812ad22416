// Python's string methods, on texts that record the origin of their bytes. Methods and filters of
// the same name share them. The evaluator has paid for the characters that they read.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_STRINGS_H_
#define PRONK_TOKENIZER_JINJA_VALUES_STRINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tokenizer/jinja/values/text.h"

namespace tokenizer::jinja {

constexpr size_t kNotFound = std::string_view::npos;

// The offset of the first `needle` at or after `pos`, or kNotFound; in linear time, which
// std::string's find does not guarantee against a hostile template.
size_t FindBytes(std::string_view text, std::string_view needle, size_t pos = 0);

enum class Side { kLeft, kRight, kBoth };
// Strips the characters of `chars` from both ends; white space if `chars` is absent.
Text Strip(const Text& text, Side side, std::optional<std::string_view> chars);
// The text n times; empty if n is negative.
Text Repeated(const Text& text, int64_t n);
// a * b; a number that no memory has if that does not fit.
size_t Times(size_t a, size_t b);

Text UpperText(const Text& text);
Text LowerText(const Text& text);
Text Capitalize(const Text& text);
// Words begin after any non-letter (method), or after white space and - ( { [ < only (filter).
Text TitleMethod(const Text& text);
Text TitleFilter(const Text& text);

// As str.islower() and str.isupper(): there is a letter of that case, and none of the other.
bool IsLowerText(std::string_view text);
bool IsUpperText(std::string_view text);
bool IsTitleText(std::string_view text);
Text SwapCase(const Text& text);
// In the middle of `width` characters, as str.center() has it.
Text Centered(const Text& text, int64_t width, std::string_view fill = " ");

// Replaces the first `count` occurrences of `from`, or all if negative.
Text Replace(const Text& text, std::string_view from, const Text& to, int64_t count);
// Splits at `separator`, at most `limit` times (negative: always); from the end if `from_end`.
Vector<Text> Split(const Text& text, std::string_view separator, int64_t limit, bool from_end);
// Splits at runs of white space, without empty pieces at the ends.
Vector<Text> SplitSpace(const Text& text, int64_t limit, bool from_end);
Vector<Text> SplitLines(const Text& text, bool keep_ends);
Text JoinTexts(const Text& separator, const Vector<Text>& parts);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_STRINGS_H_
