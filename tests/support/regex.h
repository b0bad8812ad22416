// The standard library's regular expressions, whose header takes seconds to compile in each file.
#pragma once

#include <string>
#include <vector>

namespace test {

// The match and its groups; a group that took no part is empty.
using Match = std::vector<std::string>;

// All matches in a text; they do not overlap.
std::vector<Match> FindAll(const std::string& text, const std::string& pattern);
// The match of the whole text; empty if it does not match.
Match MatchAll(const std::string& text, const std::string& pattern);

}  // namespace test
