// Properties of characters as text, hexadecimal: lists of characters ("41") and of runs ("41-5A").
// They match Hugging Face's library, whose normalizers know an older Unicode than its expressions.
// tests/data/make_unicode.py writes unicode_data.cc.
#pragma once

#include <string_view>

namespace tokenizer {

extern const std::string_view kDecompositions, kCombiningClasses;        // normal_form.cc
extern const std::string_view kLowerCase, kUpperCase;                    // characters.cc
extern const std::string_view kMarks, kAccents, kRemoved, kPunctuation;  // sets of characters
extern const std::string_view kNewerCharacters;                          // split.cc

}  // namespace tokenizer
