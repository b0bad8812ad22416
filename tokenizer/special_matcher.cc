#include "tokenizer/special_matcher.h"

#include <algorithm>

namespace tokenizer {
namespace {

uint8_t ByteAt(const std::string& text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

SpecialMatcher::SpecialMatcher(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.text.empty(); });
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return a.text < b.text; });
  first_byte_.fill(0);
  for (const Entry& entry : entries_) ++first_byte_[ByteAt(entry.text, 0) + size_t{1}];
  for (size_t byte = 0; byte < 256; ++byte) first_byte_[byte + 1] += first_byte_[byte];
}

const SpecialMatcher::Entry* SpecialMatcher::LongestAt(std::string_view text) const {
  const auto first = static_cast<uint8_t>(text[0]);
  auto low = entries_.begin() + first_byte_[first];
  auto high = entries_.begin() + first_byte_[first + size_t{1}];
  const Entry* longest = nullptr;
  // [low, high) are the entries whose first `length` bytes are those of the text. Sorted as they
  // are, the one that ends there is the first, and the next byte narrows the range.
  for (size_t length = 1; low != high; ++length) {
    for (; low != high && low->text.size() == length; ++low) longest = &*low;
    if (length == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[length]);
    low = std::partition_point(low, high,
                               [&](const Entry& e) { return ByteAt(e.text, length) < byte; });
    high = std::partition_point(low, high,
                                [&](const Entry& e) { return ByteAt(e.text, length) == byte; });
  }
  return longest;
}

SpecialMatcher::Match SpecialMatcher::Find(std::string_view text, size_t from) const {
  for (size_t at = from; at < text.size() && !entries_.empty(); ++at) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (first_byte_[byte] == first_byte_[byte + size_t{1}]) continue;
    if (const Entry* entry = LongestAt(text.substr(at))) return {at, entry->text.size(), entry->id};
  }
  return {text.size(), 0, -1};
}

}  // namespace tokenizer
