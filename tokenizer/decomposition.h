// Letters without their accents.
#ifndef PRONK_TOKENIZER_DECOMPOSITION_H_
#define PRONK_TOKENIZER_DECOMPOSITION_H_

namespace tokenizer {

// The first character of Unicode's decomposition (NFD): e for é, of Hangul the first consonant.
char32_t WithoutAccents(char32_t c);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_DECOMPOSITION_H_
