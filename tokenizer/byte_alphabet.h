// The byte alphabet of GPT-2: byte-level BPE spells its tokens with one printable character per
// byte, so that a vocabulary is readable text. A space is U+0120, a line end U+010A.
#ifndef PRONK_TOKENIZER_BYTE_ALPHABET_H_
#define PRONK_TOKENIZER_BYTE_ALPHABET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tokenizer {

// Appends the bytes of `text`, spelt in the alphabet.
void AppendSpelling(std::string_view text, std::string& out);

// The bytes that `spelling` spells, or nothing where it has other characters.
std::optional<std::string> BytesOfSpelling(std::string_view spelling);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_BYTE_ALPHABET_H_
