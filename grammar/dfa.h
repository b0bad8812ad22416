// Sets of strings as deterministic automata over characters (Rabin and Scott 1959), so that
// patterns, formats, lengths and excluded values of a schema can be joined, intersected and negated
// exactly. All operations charge a budget, since some patterns need too many states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/code_points.h"
#include "grammar/grammar.h"

namespace grammar {

// The number of steps that work on one schema may take.
class Budget {
 public:
  // Throws grammar::Error if nothing is left.
  void Charge(uint64_t n) {
    if (n > left_) throw Error("this takes more time or memory than a schema may (2 s, 64 MB)");
    left_ -= n;
  }

 private:
  uint64_t left_ = 40'000'000;
};

class Dfa {
 public:
  struct Edge {
    CodePoint low, high;
    uint32_t to;
    auto operator<=>(const Edge&) const = default;
  };
  struct State {
    bool accepts = false;
    std::vector<Edge> edges;  // ascending, not overlapping; without an edge, nothing follows
    auto operator<=>(const State&) const = default;
  };
  auto operator<=>(const Dfa&) const = default;  // minimal automata are equal for equal sets
  // The first is the initial state; without states, the set is empty. Each can reach an accepting
  // state.
  std::vector<State> states;

  bool empty() const { return states.empty(); }
  bool Has(std::string_view text) const;
  // Lengths of the shortest and longest string, in characters; kNone: no limit.
  uint32_t Shortest() const { return empty() ? 0 : Distances()[0]; }
  // For each state, the fewest characters to an accepting state.
  std::vector<uint32_t> Distances() const;
  uint32_t Longest() const;
  // All strings, if there are at most `most`; otherwise some list of more than `most`.
  std::vector<std::string> Strings(size_t most) const;
};

// All results are minimal.
enum class Both { kAnd, kOr };
Dfa Combine(const Dfa& a, const Dfa& b, Both how, Budget& budget);
Dfa Everything();
Dfa AllBut(const Dfa& dfa);
// The set of these strings.
Dfa Listed(const std::vector<std::string>& texts, Budget& budget);
// The strings of at least `min` and at most `max` characters (kNone: no limit).
Dfa OfLength(uint32_t min, uint32_t max, Budget& budget);
// Merges states that the same strings follow, and drops states that cannot reach an accepting one.
Dfa Minimal(const Dfa& dfa, Budget& budget);

}  // namespace grammar
