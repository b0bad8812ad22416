// An index of pairs of tokens, and the search for the longest earlier match.
#include "engine/draft/lookup_drafter.h"

#include <algorithm>
#include <array>
#include <bit>

namespace engine {
namespace {

using tokenizer::TokenId;

// Limits on the number of places of the last pair that are compared, latest first, and on the
// tokens compared at each place: a text that repeats one word costs no more than any other.
constexpr size_t kMaxPlaces = 32;
constexpr size_t kMaxMatch = 32;
// The most slots; in longer texts, pairs share slots.
constexpr size_t kMaxSlots = size_t{1} << 17;
// The most tokens of each kind but the last.
constexpr std::array<size_t, 4> kKinds = {2, 3, 5, 9};

// How many tokens before `a` and before `b` are the same, both excluded.
size_t SameBefore(std::span<const TokenId> text, size_t a, size_t b) {
  size_t n = 0;
  while (n < kMaxMatch && n < a && text[a - 1 - n] == text[b - 1 - n]) ++n;
  return n;
}

}  // namespace

LookupDrafter::LookupDrafter(size_t capacity)
    : last_(std::bit_ceil(std::min(capacity, kMaxSlots)), 0) {
  before_.reserve(std::min(capacity, kMaxSlots));
}

uint32_t& LookupDrafter::LastOf(std::span<const TokenId> text, size_t end) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15u;  // 2^64 divided by the golden ratio
  const auto pair = (static_cast<uint64_t>(static_cast<uint32_t>(text[end - 1])) << 32) |
                    static_cast<uint32_t>(text[end]);
  return last_[((pair * kOdd) >> 32) & (last_.size() - 1)];
}

void LookupDrafter::Index(std::span<const TokenId> text) {
  if (before_.empty() && !text.empty()) before_.push_back(0);  // no pair ends here
  for (size_t end = before_.size(); end < text.size(); ++end) {
    uint32_t& last = LastOf(text, end);
    before_.push_back(last);
    last = static_cast<uint32_t>(end + 1);
  }
}

std::optional<size_t> LookupDrafter::FindDrafts(std::span<const TokenId> text) {
  Index(text);
  if (text.size() < 2) return {};
  size_t longest = 1;
  size_t place = before_[text.size() - 1];
  for (size_t i = 0; i < kMaxPlaces && place != 0; ++i, place = before_[place - 1]) {
    const size_t n = SameBefore(text, place, text.size());
    if (n <= longest) continue;
    longest = n;
    begin_ = place;
  }
  if (longest < 2) return {};
  return std::lower_bound(kKinds.begin(), kKinds.end(), longest) - kKinds.begin();
}

void LookupDrafter::Draft(std::span<const TokenId> text, size_t n, std::vector<TokenId>& drafts) {
  // A repetition that reaches the end of the text continues into the drafts.
  const size_t first = drafts.size();
  for (size_t i = begin_; i < begin_ + n; ++i) {
    drafts.push_back(i < text.size() ? text[i] : drafts[first + i - text.size()]);
  }
}

void LookupDrafter::Truncate(size_t n) {
  if (n >= before_.size()) return;
  before_.clear();  // Index() builds it anew
  std::fill(last_.begin(), last_.end(), 0);
}

}  // namespace engine
