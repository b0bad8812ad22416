// Regular expressions of a schema's "pattern": the parts of ECMA-262's syntax that need no
// lookaround and no backreferences.
#ifndef PRONK_GRAMMAR_PATTERN_H_
#define PRONK_GRAMMAR_PATTERN_H_

#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_rules.h"

namespace grammar {

// A JSON string, in quotes, that contains the pattern; ^ and $ anchor it at its ends. Supported are
// characters, ., [classes], \d \w \s \D \W \S, groups, |, and ? * + {m} {m,} {m,n}, also lazy
// (which changes nothing). Throws grammar::Error that names what is not supported, or if a pattern
// needs characters that no string can contain.
Part PatternString(std::string_view pattern, Builder& builder, JsonRules& json);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_PATTERN_H_
