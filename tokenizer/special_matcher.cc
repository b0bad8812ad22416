// Hashes of prefixes, and a binary search for the longest token.
#include "tokenizer/special_matcher.h"

#include <algorithm>
#include <bit>
#include <random>

namespace tokenizer {
namespace {

// Sums are computed modulo this prime.
constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t Reduced(uint64_t x) { return x >= kPrime ? x - kPrime : x; }

uint64_t Product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return Reduced((static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61));
}

// A text's sum with one more byte, which counts as at least 1: texts of other lengths differ.
uint64_t Longer(uint64_t sum, uint64_t base, char c) {
  return Reduced(Product(sum, base) + static_cast<uint8_t>(c) + 1);
}

// True if one of the ascending spans has a byte of [begin, end).
bool Touches(std::span<const ByteSpan> spans, size_t begin, size_t end) {
  const auto it = std::ranges::upper_bound(spans, begin, {}, &ByteSpan::end);
  return it != spans.end() && it->begin < end;
}

// The number of prefixes in the table for a text of this length: one per set bit.
size_t Bits(size_t length) { return static_cast<size_t>(std::popcount(length)); }

}  // namespace

SpecialMatcher::SpecialMatcher(std::vector<Entry> entries) {
  std::erase_if(entries, [](const Entry& entry) { return entry.text.empty(); });
  std::ranges::stable_sort(entries, {}, &Entry::text);
  size_t n_slots = 0;
  specials_.reserve(entries.size());
  for (const auto& [text, id, user_defined] : entries) {
    first_byte_[static_cast<uint8_t>(text[0])] |= user_defined ? kAny | kUserDefined : kAny;
    if (specials_.empty() || specials_.back().text != text) {
      specials_.push_back({text, id, -1});
      longest_ = std::max(longest_, text.size());
      n_slots += Bits(text.size());
    }
    specials_.back().id = id;
    if (user_defined) specials_.back().user_defined = id;
  }
  specials_.shrink_to_fit();
  top_bit_ = std::bit_floor(longest_);
  hashes_.resize(n_slots + n_slots / 3 + 1);
  bests_.assign(hashes_.size(), kFree);
  std::random_device random;
  base_ = ((uint64_t{random()} << 32 | random()) % (kPrime - 512)) + 256;
  powers_.assign(1, 1);
  while (powers_.size() <= longest_) powers_.push_back(Product(powers_.back(), base_));

  std::vector<int32_t> chain;  // the specials that are its prefixes, itself last
  for (size_t i = 0; i < specials_.size(); ++i) {
    const auto text_of = [&](int32_t which) { return specials_[static_cast<size_t>(which)].text; };
    while (!chain.empty() && !specials_[i].text.starts_with(text_of(chain.back()))) {
      chain.pop_back();
    }
    if (specials_[i].user_defined >= 0) {
      specials_[i].nearest = static_cast<int32_t>(i);
    } else if (!chain.empty()) {
      specials_[i].nearest = specials_[static_cast<size_t>(chain.back())].nearest;
    }
    chain.push_back(static_cast<int32_t>(i));
    AddBeginnings(chain);
  }
}

// Adds prefixes of the chain's last special: their lengths are its length's highest bit, its two
// highest bits, and so on up to the whole.
void SpecialMatcher::AddBeginnings(const std::vector<int32_t>& chain) {
  const std::string_view text = specials_[static_cast<size_t>(chain.back())].text;
  uint64_t sum = 0;
  size_t length = 0;
  for (size_t left = text.size(); left > 0; left -= std::bit_floor(left)) {
    for (const size_t end = length + std::bit_floor(left); length < end; ++length) {
      sum = Longer(sum, base_, text[length]);
    }
    const size_t at = Locate(sum);
    // The slot may belong to another special with the same prefix: its best is the same.
    if (bests_[at] != kFree) continue;
    const auto longer = std::ranges::upper_bound(chain, length, {}, [&](int32_t i) {
      return specials_[static_cast<size_t>(i)].text.size();
    });
    hashes_[at] = sum;
    bests_[at] = longer == chain.begin() ? kNone : *(longer - 1);
  }
}

// The slot of this hash, or the free one for it.
size_t SpecialMatcher::Locate(uint64_t hash) const {
  __extension__ using Wide = unsigned __int128;
  size_t at = static_cast<size_t>(static_cast<Wide>(hash_(hash)) * hashes_.size() >> 64);
  while (bests_[at] != kFree && hashes_[at] != hash) at = at + 1 < hashes_.size() ? at + 1 : 0;
  return at;
}

SpecialMatcher::Search::Search(const SpecialMatcher& matcher, std::string_view text, bool control,
                               std::span<const ByteSpan> plain, const std::function<void()>& tick)
    : matcher_(matcher), text_(text), control_(control), plain_(plain), tick_(tick), sums_(1, 0) {}

// The sums of all prefixes from `at` to `end`, kept while needed again: each byte is added once.
void SpecialMatcher::Search::SumUpTo(size_t at, size_t end) {
  constexpr size_t kKept = size_t{1} << 14;
  if (at >= first_ + sums_.size()) {
    first_ = at;
    sums_.assign(1, 0);
  } else if (at - first_ > kKept + matcher_.longest_) {
    sums_.erase(sums_.begin(), sums_.begin() + static_cast<std::ptrdiff_t>(at - first_));
    first_ = at;
  }
  for (size_t i = first_ + sums_.size() - 1; i < end; ++i) {
    sums_.push_back(Longer(sums_.back(), matcher_.base_, text_[i]));
  }
}

uint64_t SpecialMatcher::Search::HashOf(size_t at, size_t length) const {
  const uint64_t before = Product(sums_[at - first_], matcher_.powers_[length]);
  return Reduced(sums_[at - first_ + length] + kPrime - before);
}

// The longest special at this position by its hash, or -1; the caller compares the text.
int32_t SpecialMatcher::Search::LongestAt(size_t at) {
  const size_t most = std::min(matcher_.longest_, text_.size() - at);
  SumUpTo(at, at + most);
  int32_t best = -1;
  size_t length = 0;
  for (size_t bit = matcher_.top_bit_; bit > 0; bit /= 2) {
    if (length + bit > most) continue;
    const int32_t found = matcher_.bests_[matcher_.Locate(HashOf(at, length + bit))];
    if (found == kFree) continue;
    length += bit;
    if (found != kNone) best = found;
  }
  return best;
}

SpecialMatcher::Match SpecialMatcher::Search::Next(size_t from) {
  constexpr size_t kTick = size_t{1} << 16;  // positions
  const uint8_t wanted = control_ ? kAny : kUserDefined;
  for (size_t at = from; at < text_.size(); ++at) {
    if (at % kTick == 0) tick_();
    if ((matcher_.first_byte_[static_cast<uint8_t>(text_[at])] & wanted) == 0) continue;
    const int32_t best = LongestAt(at);
    if (best < 0) continue;
    const Special* special = &matcher_.specials_[static_cast<size_t>(best)];
    int32_t id = special->id;
    if (id != special->user_defined &&
        (!control_ || Touches(plain_, at, at + special->text.size()))) {
      if (special->nearest < 0) continue;
      special = &matcher_.specials_[static_cast<size_t>(special->nearest)];
      id = special->user_defined;
    }
    if (text_.substr(at).starts_with(special->text)) return {at, special->text.size(), id};
  }
  return {text_.size(), 0, -1};
}

}  // namespace tokenizer
