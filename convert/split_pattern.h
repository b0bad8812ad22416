// By what a tokenizer.json cuts text into words, and which of the rules that GGUF has names for
// (tokenizer/split.h) is the same.
#ifndef PRONK_CONVERT_SPLIT_PATTERN_H_
#define PRONK_CONVERT_SPLIT_PATTERN_H_

#include <string>
#include <string_view>

#include "convert/json.h"
#include "tokenizer/split.h"

namespace convert {

// The expression with everything that has several spellings spelt in one: two that are equal so
// match the same texts.
std::string CanonicalPattern(std::string_view pattern);

// The rule whose patterns are those of "pre_tokenizer"; of several, the one that treats words that
// are tokens likewise. Throws gguf::Error where there is none.
const tokenizer::SplitRule& FindSplitRule(const Fields& tokenizer, bool ignore_merges);

}  // namespace convert

#endif  // PRONK_CONVERT_SPLIT_PATTERN_H_
