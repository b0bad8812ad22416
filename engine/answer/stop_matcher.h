// Finds the texts that end a generation (pronk run -r).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace engine {

// Holds back text that may begin a stop text.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops);
  // Takes more text and returns the part that is safe to show: no text after a match.
  std::string Push(std::string_view text);
  std::string Finish();  // the text still held back
  const std::string& held() const { return held_; }
  bool matched() const { return matched_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool matched_ = false;
};

}  // namespace engine
