// Formats of strings ("format": "date") as patterns.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace grammar {

// Empty for an unknown format, which is an annotation.
std::optional<std::string> PatternOfFormat(std::string_view format);

}  // namespace grammar
