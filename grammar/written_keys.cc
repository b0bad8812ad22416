#include "grammar/written_keys.h"

#include <algorithm>
#include <utility>

namespace grammar {

using tokenizer::TokenId;

void WrittenKeys::Write(std::string_view text) {
  for (const char c : text) {
    if (place_.in_string) {
      if (c == '"' && !place_.escaped) {
        if (place_.in_key && !levels_.empty()) levels_.back().keys.insert(std::move(key_));
        key_.clear();
        place_ = {};
        continue;
      }
      place_.escaped = c == '\\' && !place_.escaped;
      if (place_.in_key) key_ += c;
    } else if (c == '{' || c == '[') {
      levels_.push_back({.is_object = c == '{'});
      place_.before_key = c == '{';
    } else if (levels_.empty()) {
      continue;
    } else if (c == '}' || c == ']') {
      levels_.pop_back();
      place_.before_key = false;
    } else if (c == ',') {
      place_.before_key = levels_.back().is_object;
    } else if (c == '"') {
      place_ = {.in_string = true, .in_key = place_.before_key};
    }
  }
}

// As Write(), on copies of what changes.
bool WrittenKeys::Repeats(std::string_view text) const {
  size_t n_kept = levels_.size();  // levels of the text so far that are still open
  std::vector<Level> more;         // opened since
  std::vector<std::pair<size_t, std::string>> added;  // keys of levels that are kept
  Place place = place_;
  std::string key = key_;
  for (const char c : text) {
    if (place.in_string) {
      if (c == '"' && !place.escaped) {
        if (place.in_key && !more.empty()) {
          if (!more.back().keys.insert(key).second) return true;
        } else if (place.in_key && n_kept > 0) {
          const std::pair<size_t, std::string> one = {n_kept, key};
          if (levels_[n_kept - 1].keys.contains(key) ||
              std::ranges::find(added, one) != added.end())
            return true;
          added.push_back(one);
        }
        key.clear();
        place = {};
        continue;
      }
      place.escaped = c == '\\' && !place.escaped;
      if (place.in_key) key += c;
    } else if (c == '{' || c == '[') {
      more.push_back({.is_object = c == '{'});
      place.before_key = c == '{';
    } else if (more.empty() && n_kept == 0) {
      continue;
    } else if (c == '}' || c == ']') {
      if (!more.empty()) {
        more.pop_back();
      } else {
        --n_kept;
        std::erase_if(added, [&](const auto& one) { return one.first > n_kept; });
      }
      place.before_key = false;
    } else if (c == ',') {
      place.before_key = more.empty() ? levels_[n_kept - 1].is_object : more.back().is_object;
    } else if (c == '"') {
      place = {.in_string = true, .in_key = place.before_key};
    }
  }
  return false;
}

bool WrittenKeys::MayRepeat() const {
  return std::ranges::any_of(levels_, [](const Level& level) { return !level.keys.empty(); });
}

void WrittenKeys::Exclude(const TokenTrie& trie, TokenMasks::Mask& mask) const {
  const auto clear = [&](TokenId id) {
    const auto bit = static_cast<size_t>(id);
    mask[bit / 64] &= ~(uint64_t{1} << (bit % 64));
  };
  // The key that is being written, completed as one that is there.
  if (place_.in_key && !levels_.empty()) {
    const auto& keys = levels_.back().keys;
    for (auto key = keys.lower_bound(key_); key != keys.end() && key->starts_with(key_); ++key) {
      for (const TokenId id : trie.BeginningWith(key->substr(key_.size()) + '"')) clear(id);
    }
  }
  // A key that begins in a token.
  for (const auto& [id, text] : trie.quoted()) {
    const auto bit = static_cast<size_t>(id);
    if ((mask[bit / 64] >> (bit % 64) & 1) != 0 && Repeats(text)) clear(id);
  }
}

}  // namespace grammar
