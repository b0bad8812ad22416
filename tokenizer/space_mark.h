// Vocabularies whose tokens are plain text spell a space as U+2581.
#ifndef PRONK_TOKENIZER_SPACE_MARK_H_
#define PRONK_TOKENIZER_SPACE_MARK_H_

#include <string>
#include <string_view>

namespace tokenizer {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// The text with U+2581 for every space, as tokens spell it.
std::string MarkSpaces(std::string_view text);
// The text of a token: a space for every U+2581.
std::string UnmarkSpaces(std::string_view spelling);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_SPACE_MARK_H_
