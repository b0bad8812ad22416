// Finds special tokens (control and user-defined) in text: "<|eot_id|>" is one token, not eight.
//
// Tokens and text are untrusted, so the time per byte of text does not depend on the number of
// tokens, and only logarithmically on their lengths. The longest token at a position is found by a
// binary search over lengths, from the highest bit down (Waldvogel et al. 1997, "Scalable high
// speed IP routing lookups"): a table has the hash of every token and of its prefixes that the
// search visits, and for each prefix the longest token that is a prefix of it. Hashes of substrings
// are differences of prefix sums (Karp and Rabin 1987), with a random base, so that a file cannot
// force collisions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/byte_span.h"
#include "tokenizer/hash.h"

namespace tokenizer {

class SpecialMatcher {
 public:
  struct Entry {
    std::string_view text;  // must outlive the matcher
    int32_t id;
    bool user_defined = true;  // found in every text; other entries only with control tokens
  };
  struct Match {
    size_t begin;   // offset in the text; the text's size if nothing was found
    size_t length;  // bytes; 0 if nothing was found
    int32_t id;
  };
  class Search;

  // Entries with an empty text never match; of equal texts the last one counts.
  explicit SpecialMatcher(std::vector<Entry> entries = {});

 private:
  struct Special {
    std::string_view text;
    int32_t id;            // the last entry with this text
    int32_t user_defined;  // the last user-defined entry with this text; -1: none
    int32_t nearest = -1;  // longest user-defined special that is a prefix of this one, or itself
  };
  void AddBeginnings(const std::vector<int32_t>& chain);
  size_t Locate(uint64_t hash) const;

  std::vector<Special> specials_;  // sorted by text, no two the same
  // A table of prefixes of specials, at most three quarters full: the hash of each, and the longest
  // special that is a prefix of it.
  static constexpr int32_t kNone = -1, kFree = -2;
  std::vector<uint64_t> hashes_;
  std::vector<int32_t> bests_;
  size_t longest_ = 0;            // bytes of the longest special
  size_t top_bit_ = 0;            // the highest bit of longest_
  uint64_t base_;                 // the base of the sums
  std::vector<uint64_t> powers_;  // powers of the base, up to longest_
  SeededHash hash_;
  enum : uint8_t { kAny = 1, kUserDefined = 2 };
  std::array<uint8_t, 256> first_byte_{};  // kinds of specials that begin with this byte
};

// Finds the special tokens of one text from left to right.
class SpecialMatcher::Search {
 public:
  // control: finds control tokens too, except tokens with a byte in the ascending spans `plain`.
  // tick is called regularly, also in a long Next(), and may throw. Arguments must outlive this.
  Search(const SpecialMatcher& matcher, std::string_view text, bool control,
         std::span<const ByteSpan> plain, const std::function<void()>& tick);

  // The first match at or after `from`, which must never decrease; of several there, the longest.
  Match Next(size_t from);

 private:
  int32_t LongestAt(size_t at);
  void SumUpTo(size_t at, size_t end);
  uint64_t HashOf(size_t at, size_t length) const;

  const SpecialMatcher& matcher_;
  std::string_view text_;
  bool control_;
  std::span<const ByteSpan> plain_;
  const std::function<void()>& tick_;
  size_t first_ = 0;  // sums_[i]: the sum of the text from first_ (or before) to first_ + i
  std::vector<uint64_t> sums_;
};

}  // namespace tokenizer
