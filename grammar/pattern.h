// Regular expressions of a schema's "pattern": those parts of ECMA-262's language that describe a
// text from left to right.
#ifndef PRONK_GRAMMAR_PATTERN_H_
#define PRONK_GRAMMAR_PATTERN_H_

#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_rules.h"

namespace grammar {

// A string of JSON, in its quotes, in which the pattern is found; ^ and $ say that it is all of it.
// Known are characters, ., [classes], \d \w \s \D \W \S, groups, |, and ? * + {m} {m,} {m,n}, also
// with a ? behind, which changes nothing. Throws grammar::Error, which names what is not known, and
// where a pattern wants characters that no string holds.
Part PatternString(std::string_view pattern, Builder& builder, JsonRules& json);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_PATTERN_H_
