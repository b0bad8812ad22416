// The expressions with which a tokenizer.json splits text, as rules that GGUF names (split.h).
#ifndef PRONK_CONVERT_SPLIT_PATTERN_H_
#define PRONK_CONVERT_SPLIT_PATTERN_H_

#include <string>
#include <string_view>

#include "convert/json.h"
#include "tokenizer/split.h"

namespace convert {

// The expression in a canonical spelling: if two are equal, they match the same texts.
std::string CanonicalPattern(std::string_view pattern);

// The rule with the patterns of "pre_tokenizer"; of several, the one that also treats whole words
// in the vocabulary the same. Throws gguf::Error if there is none.
const tokenizer::SplitRule& FindSplitRule(const Fields& tokenizer, bool ignore_merges);

}  // namespace convert

#endif  // PRONK_CONVERT_SPLIT_PATTERN_H_
