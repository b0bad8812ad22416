// Letters without their accents.
#ifndef PRONK_TOKENIZER_DECOMPOSITION_H_
#define PRONK_TOKENIZER_DECOMPOSITION_H_

namespace tokenizer {

// The first character of the canonical decomposition (Unicode's NFD): e for é, a syllable's first
// consonant for Hangul.
char32_t WithoutAccents(char32_t c);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_DECOMPOSITION_H_
