// Regular expressions of a schema's "pattern": ECMA-262's without lookaround and backreferences.
#ifndef PRONK_GRAMMAR_PATTERN_H_
#define PRONK_GRAMMAR_PATTERN_H_

#include <string>
#include <string_view>

#include "grammar/grammar.h"
#include "grammar/json_rules.h"

namespace grammar {

// A JSON string, in quotes, that contains the pattern; ^ and $ anchor it. Supported are characters,
// ., [classes], \d \w \s \D \W \S, groups, |, and ? * + {m} {m,} {m,n}, also lazy (which changes
// nothing). Throws grammar::Error that names what is not supported, or characters that no
// string can have.
Part PatternString(std::string_view pattern, Builder& builder, JsonRules& json);

// The same as a grammar.
Grammar PatternStrings(std::string_view pattern);
// Whether a key of this name is one of them; true also of names that only escapes can write.
bool FitsKey(const Grammar& strings, const std::string& name);
// Whether a string is in both; true also if that takes long to say.
bool MayOverlap(const Grammar& a, const Grammar& b);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_PATTERN_H_
