#include "tests/support/regex.h"

#include <map>
#include <regex>

namespace test {
namespace {

const std::regex& Compiled(const std::string& pattern) {
  static std::map<std::string, std::regex> compiled;
  const auto found = compiled.find(pattern);
  return found != compiled.end() ? found->second : compiled.emplace(pattern, pattern).first->second;
}

}  // namespace

std::vector<Match> FindAll(const std::string& text, const std::string& pattern) {
  std::vector<Match> matches;
  const std::regex& regex = Compiled(pattern);
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    matches.emplace_back(it->begin(), it->end());
  }
  return matches;
}

Match MatchAll(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_match(text, match, Compiled(pattern))) return {};
  return {match.begin(), match.end()};
}

}  // namespace test
