// Numbers between bounds, multiples and the like, as sets of their decimal spellings.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/dfa.h"

namespace grammar {

// A number of any size: digits without leading or trailing zeros.
struct Decimal {
  bool negative = false;
  std::string whole = "0", fraction = "";

  // Reads a number of JSON; empty if it has more than several hundred digits.
  static std::optional<Decimal> Parse(std::string_view text);
  bool IsWhole() const { return fraction.empty(); }
  bool IsZero() const { return fraction.empty() && whole == "0"; }
  friend std::strong_ordering operator<=>(const Decimal& a, const Decimal& b);
  friend bool operator==(const Decimal& a, const Decimal& b) { return (a <=> b) == 0; }
};

struct Bound {
  Decimal at;
  bool is_exclusive = false;
};

struct NumberSet {
  bool whole = true, fractions = true;  // the kinds of numbers
  std::optional<Bound> min, max;
  std::vector<Decimal> multiples, not_multiples;  // divide each number; divide none
  std::vector<Decimal> excluded;

  void AtLeast(const Bound& bound);
  void AtMost(const Bound& bound);
  bool IsFree() const {
    return !min && !max && multiples.empty() && not_multiples.empty() && excluded.empty();
  }
  bool Has(const Decimal& number) const;
  // Spellings without exponents, of at most 19 digits before the point (15 for multiples) and 17
  // after it, or as many as the bounds have.
  Dfa Spellings(Budget& budget) const;
  std::string Key() const;  // equal for equal sets
};

}  // namespace grammar
