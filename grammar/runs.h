// Runs: which characters may follow a position in any order, and how many of them.
//
// In a string any words fit; after the first letter of [a-z][a-z0-9_]* all letters, digits and
// underscores do. Of a vocabulary's tokens most are words, so a mask is mostly known once a run is:
// branches of the trie whose characters all belong to a run are taken as a whole.
//
// The successors of each state are computed once: the states that consume the next byte form its
// hub. A hub allows n characters of a set if each of them leads to a hub that allows n - 1. So the
// hubs that allow none are found first, then, backwards, the hubs that lead to them. A hub of one
// character, as in the middle of a key, allows no useful run: all such hubs are represented by one,
// and their successors are computed when a text reaches them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/item_sets.h"

namespace grammar {

// Kinds of characters, a bit for each:
//
//   0 ... 25    each small letter
//   26, 27      capitals A to F, the other capitals
//   28 ... 30   digits, the underscore, the space
//   31 ... 52   the other plain characters, some together (runs.cc)
//   61          quotes, backslashes and controls
//   62          characters beyond ASCII
//   63          white space beyond ASCII, and bytes that are not part of a complete plain character
using Kinds = uint64_t;
inline constexpr Kinds kWordKinds = (Kinds{1} << 30) - 1, kSpaceKind = Kinds{1} << 30,
                       kQuotedKinds = Kinds{1} << 61, kBeyond = Kinds{1} << 62,
                       kOdd = Kinds{1} << 63;
Kinds KindOf(CodePoint c);

struct Run {
  Kinds kinds = 0;      // kinds whose characters may follow each other
  uint32_t length = 0;  // the most characters that may follow
};

class Runs {
 public:
  static constexpr uint32_t kAny = 255;  // characters: as many as a token has

  // The grammar must outlive it.
  explicit Runs(const Grammar& grammar);
  Run Of(std::span<const Item> items);
  // Whether a rule is for single characters or their escapes.
  bool IsCharacter(RuleId rule);

 private:
  // A bit for each ASCII code. Bit 0 is unused, and bit 1 stands for all of kBeyond.
  struct Set {
    uint64_t low = 0, high = 0;
    void Add(const Set& other) {
      low |= other.low;
      high |= other.high;
    }
    bool Has(const Set& other) const {
      return (other.low & ~low) == 0 && (other.high & ~high) == 0;
    }
    bool IsEmpty() const { return low == 0 && high == 0; }
    bool IsBeyondAscii() const { return (low & 2) != 0; }
    size_t size() const;
    auto operator<=>(const Set&) const = default;
  };
  // Hubs that were found together, and the sets of characters that were tried with them.
  static constexpr size_t kMaxTried = 6;
  struct Group {
    std::vector<Set> sets;
    std::vector<Kinds> kinds;
  };
  struct Hub {
    std::vector<StateId> states;
    uint32_t group = 0;
    std::array<uint8_t, kMaxTried> lengths = {};  // lengths of the runs of the group's sets
  };

  static Set Range(uint32_t first, uint32_t last);
  static Kinds KindsIn(const Set& set);
  const Set& CharactersOf(RuleId rule, size_t depth = 0);
  Set CharactersAt(StateId state);
  bool MayEnd(StateId state);
  uint32_t HubAfter(StateId state);
  uint32_t LoopAt(StateId state) const;
  void Explore(std::span<const Item> items);
  void TrySets(uint32_t begin, uint32_t group);

  const Grammar& grammar_;
  std::vector<uint32_t> hub_after_;  // [state]; kNone: none, kNotYet: not looked up
  std::map<std::vector<StateId>, uint32_t> numbers_;  // the hubs' numbers, by their states
  static constexpr uint32_t kOneCharacter = 0;
  std::vector<Hub> hubs_ = {Hub()};
  std::vector<Group> groups_;
  std::map<RuleId, Set> rules_;
  std::vector<uint32_t> visits_;  // [state]: the last call of HubAfter() that reached it
  uint32_t n_visits_ = 0;
};

}  // namespace grammar
