// Formats of strings ("format": "date") as patterns.
#ifndef PRONK_GRAMMAR_FORMATS_H_
#define PRONK_GRAMMAR_FORMATS_H_

#include <optional>
#include <string>
#include <string_view>

namespace grammar {

// Empty for an unknown format, which is an annotation.
std::optional<std::string> PatternOfFormat(std::string_view format);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_FORMATS_H_
