// The standard library's regular expressions, whose header takes seconds to compile in each file.
#pragma once

#include <string>
#include <vector>

namespace test {

// What matched, and its groups; those that did not take part are empty.
using Match = std::vector<std::string>;

// All matches in a text, none of which overlap.
std::vector<Match> FindAll(const std::string& text, const std::string& pattern);
// Of the whole text; empty if it does not match.
Match MatchAll(const std::string& text, const std::string& pattern);

}  // namespace test
