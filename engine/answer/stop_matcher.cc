// Stop texts, which may begin in one piece of the text and end in a later one.
#include "engine/answer/stop_matcher.h"

#include <algorithm>
#include <utility>

#include "engine/answer/thinking.h"

namespace engine {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, "");
}

std::string StopMatcher::Push(std::string_view text) {
  if (matched_) return "";
  held_ += text;
  size_t match = std::string::npos;
  for (const std::string& stop : stops_) match = std::min(match, held_.find(stop));
  if (match != std::string::npos) {
    matched_ = true;
    return std::exchange(held_, "").substr(0, match);
  }
  // Hold back the longest tail that a stop text begins with.
  size_t keep = 0;
  for (const std::string& stop : stops_) keep = std::max(keep, BegunMark(held_, stop));
  std::string safe = held_.substr(0, held_.size() - keep);
  held_.erase(0, safe.size());
  return safe;
}

std::string StopMatcher::Finish() { return std::exchange(held_, ""); }

}  // namespace engine
