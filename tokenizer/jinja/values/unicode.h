// Properties of characters (code points), as in Python's str methods, with Unicode's two cases.
#ifndef PRONK_TOKENIZER_JINJA_VALUES_UNICODE_H_
#define PRONK_TOKENIZER_JINJA_VALUES_UNICODE_H_

#include <cstddef>
#include <string_view>

#include "gguf/utf8.h"
#include "tokenizer/jinja/values/budget.h"

namespace tokenizer::jinja {

// The character that ends before byte `pos`, which must not be 0; U+FFFD for invalid UTF-8.
gguf::Characters::Character CharBefore(std::string_view text, size_t pos);

size_t CountChars(std::string_view text);
// The byte at which character number `index` begins; the size of the text if there is none.
size_t ByteOfChar(std::string_view text, size_t index);
bool IsSpace(char32_t c);      // as str.isspace and \s of regular expressions
bool IsLetter(char32_t c);     // as str.isalpha
bool IsDecimal(char32_t c);    // as str.isdecimal: 0-9 of all scripts
bool IsNumeric(char32_t c);    // as str.isnumeric, but for ideographs
bool IsPrintable(char32_t c);  // as str.isprintable, except in private and unassigned planes
char32_t ToUpper(char32_t c);  // simple mappings: one character for one
char32_t ToLower(char32_t c);
inline bool IsUpper(char32_t c) { return ToLower(c) != c; }
inline bool IsLower(char32_t c) { return ToUpper(c) != c; }

// Whole texts. ToUpper turns the sharp s into "SS", as Python does; invalid UTF-8 is kept.
String Upper(std::string_view text);
String Lower(std::string_view text);

// Bytes of white space at the start and at the end of a text.
size_t LeadingSpace(std::string_view text);
size_t TrailingSpace(std::string_view text);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_VALUES_UNICODE_H_
