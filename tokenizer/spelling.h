// The spelling of tokens' bytes in vocabularies.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tokenizer {

// GPT-2's byte alphabet: byte-level BPE spells its tokens with one printable character per byte, so
// that a vocabulary is readable text. A space is U+0120, a line end U+010A.

// Appends the bytes of `text`, spelt in this alphabet.
void AppendSpelling(std::string_view text, std::string& out);
// The bytes that `spelling` spells; empty if it has other characters.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

// Vocabularies whose tokens are plain text spell a space as U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// Replaces each `what`, which must not be empty, by `with`.
std::string ReplaceAll(std::string_view text, std::string_view what, std::string_view with);

// The text with U+2581 for every space, as tokens spell it.
std::string MarkSpaces(std::string_view text);
// The text of a token: a space for every U+2581.
std::string UnmarkSpaces(std::string_view spelling);

}  // namespace tokenizer
