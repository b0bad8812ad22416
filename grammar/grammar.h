// The allowed texts, as rules of bytes that call each other: tokens may end inside characters.
//
// A rule is a small state machine. A state expects a byte in a range, or the text of another rule,
// or forks, or ends the rule. The rule  a ::= "x" b? "y"  is
//
//     0 byte x -> 1      1 fork -> 2, 3      2 call b -> 3      3 byte y -> 4      4 end
//
// The machines of all rules share one array. A Builder makes them from parts (Thompson 1968), for
// grammars as text (gbnf.h) and for schemas (json_schema.h).
#ifndef PRONK_GRAMMAR_GRAMMAR_H_
#define PRONK_GRAMMAR_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/error.h"
#include "grammar/code_points.h"

namespace grammar {

// A grammar or a schema is refused, or a text violates one: a line with the place and the reason.
class Error : public gguf::Fault {
 public:
  using Fault::Fault;
};

using StateId = uint32_t;
using RuleId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

struct State {
  enum class Kind : uint8_t { kFork, kByte, kCall, kEnd };
  Kind kind = Kind::kFork;
  uint8_t low = 0, high = 0;  // kByte: the range, inclusive
  StateId next = kNone;       // after the byte or call; kFork: the first target
  uint32_t other = kNone;     // kFork: the second target; kCall: the rule
};

struct Rule {
  std::string name;  // for messages; empty if the source has none
  StateId start = kNone;
  bool may_be_empty = false;
  // Lower than that of every rule that this one may begin with: no rule begins with itself.
  uint32_t order = 0;
  std::vector<StateId> first;  // bytes and calls it may begin with
};

// One of many calls of the same rule in a row, as in x{0,1000}. For the next `left` bytes, the text
// that may follow this call may also follow `first`, the first call of the row.
struct Repetition {
  StateId call, first;
  uint32_t left;  // calls of the row from this one on; none of them is empty
};

// A token as a grammar names it: "<think>", or "<[10]>" for the id.
struct TokenName {
  std::string name;
  bool is_wanted;  // not only left out, as in !<think>
};

// Immutable: any number of generations may share it.
class Grammar {
 public:
  // Null if the state is not a call of a row.
  const Repetition* FindRepetition(StateId call) const;
  const State& state(StateId id) const { return states_[id]; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  size_t n_states() const { return states_.size(); }
  size_t n_rules() const { return rules_.size(); }
  RuleId root() const { return root_; }
  // Empty if it is of text alone.
  const std::vector<TokenName>& tokens() const { return tokens_; }
  // Whether it begins with the model's thinking: it names tokens, and is not for answers alone.
  bool covers_thinking() const { return covers_thinking_; }

 private:
  friend class Builder;
  friend class Analysis;
  std::vector<State> states_;
  std::vector<Rule> rules_;
  std::vector<Repetition> repetitions_;  // sorted by call
  std::vector<TokenName> tokens_;
  RuleId root_ = 0;
  bool covers_thinking_ = false;
};

// Computes Rule's fields besides its name and start, in time and memory linear in the grammar's
// size. Throws as Builder::Finish().
void Analyze(Grammar& grammar);

// A named token is spelt as two bytes: this one, which is in no text in UTF-8, and its index in
// Grammar::tokens(). All others are spelt with kOtherToken.
inline constexpr uint8_t kTokenByte = 0xFF, kOtherToken = 0xFF;

// More states are refused: 3 MB. A schema of a hundred properties has a few thousand.
inline constexpr size_t kMaxStates = size_t{1} << 18;

// A piece of a rule. Its end is a fork without a target yet. Each part is used once.
struct Part {
  StateId start, end;
};

// All throw grammar::Error if the grammar becomes too large.
class Builder {
 public:
  Part Empty();
  Part Literal(std::string_view bytes);
  Part Characters(const CodePoints& set);  // one of them; the set is not empty
  Part Call(RuleId rule);
  Part Token(const std::string& name, bool but_this);  // that one, or any other
  Part Then(Part first, Part second) {
    Link(first.end, second.start);
    return {first.start, second.end};
  }
  Part Either(std::span<const Part> ways);
  // Of those that are there; empty if none is.
  std::optional<Part> AnyOf(const std::vector<std::optional<Part>>& ways);
  // At least `min` times, at most `max` (kNone: no limit).
  Part Repeat(Part part, uint32_t min, uint32_t max);

  // For shapes other than sequences: forks that the caller links.
  StateId Fork() { return Add({}); }
  void Link(StateId fork, StateId to);

  // A rule, to be defined once. Its name is for messages.
  RuleId Declare(std::string name);
  bool IsDefined(RuleId rule) const { return grammar_.rules_[rule].start != kNone; }
  void Define(RuleId rule, Part part);
  // Adds the rules of a finished grammar, and returns its root. Throws grammar::Error if the
  // grammar names tokens.
  RuleId Include(const Grammar& grammar);

  // All called rules must be defined. Throws grammar::Error, with a rule's name, if a rule that the
  // root needs begins with itself (left recursion) or can never end. A grammar that names tokens
  // covers the thinking, unless it is for answers alone.
  Grammar Finish(RuleId root, bool is_answer = false) &&;

 private:
  StateId Add(const State& state);
  Part Byte(uint8_t low, uint8_t high);
  RuleId Outline(Part part);  // turns it into a rule, which can be called many times

  Grammar grammar_;
  std::map<CodePoints, RuleId> sets_;  // the rules of sets beyond ASCII
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_GRAMMAR_H_
