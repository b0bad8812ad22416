// One step through bytes that may or may not be UTF-8 (Unicode, table 3-7: no overlong forms, no
// surrogates, nothing above U+10FFFF).
#ifndef PRONK_TOKENIZER_UTF8_H_
#define PRONK_TOKENIZER_UTF8_H_

#include <cstddef>
#include <string_view>

namespace tokenizer {

enum class Utf8Kind {
  kValid,       // a character
  kInvalid,     // bytes that no character begins with
  kIncomplete,  // the first bytes of a character, and then the text ends
};

struct Utf8Step {
  Utf8Kind kind;
  size_t length;  // bytes, at least 1; of kInvalid as many as could have begun a character
};

// What `bytes`, which must not be empty, begin with.
Utf8Step NextUtf8(std::string_view bytes);

// The length of the longest prefix that is valid UTF-8.
size_t ValidUtf8Prefix(std::string_view bytes);

}  // namespace tokenizer

#endif  // PRONK_TOKENIZER_UTF8_H_
