// Tables of many short texts, as one: test::Texts("true | [1, 2] | x").
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace test {

// The texts between " | "; "" has none.
inline std::vector<std::string> Texts(const std::string& all) {
  std::vector<std::string> texts;
  for (size_t begin = 0, end = 0; end < all.size(); begin = end + 3) {
    end = std::min(all.find(" | ", begin), all.size());
    texts.push_back(all.substr(begin, end - begin));
  }
  return texts;
}

}  // namespace test
