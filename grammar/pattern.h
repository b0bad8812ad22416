// Regular expressions of a schema's "pattern": ECMA-262's without backreferences and lookbehind.
#pragma once

#include <string_view>

#include "grammar/dfa.h"

namespace grammar {

// The strings that contain the pattern; ^ and $ anchor it. Supported are characters, ., [classes],
// \d \w \s \D \W \S, groups (named ones, too), |, ? * + {m} {m,} {m,n}, also lazy (which changes
// nothing), ^ $ \b \B anywhere, and (?=...) and (?!...) outside unbounded repetitions. Throws
// grammar::Error that names the unsupported part.
Dfa PatternStrings(std::string_view pattern, Budget& budget);

}  // namespace grammar
