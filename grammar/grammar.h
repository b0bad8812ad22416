// The allowed texts, as rules of bytes that call each other: tokens may end inside characters.
//
// A rule is a small state machine. A state expects a byte in a range, or the text of another rule,
// or forks, or ends the rule. The rule  a ::= "x" b? "y"  is
//
//     0 byte x -> 1      1 fork -> 2, 3      2 call b -> 3      3 byte y -> 4      4 end
//
// Each call of a rule has a register, which is 0 at its beginning. A repetition x{2,1000} counts in
// it: fork -> (below 1000, x, count, back to the fork) or (at least 2, reset to 0, continue). A
// repetition inside of x is a rule of its own. In the rule of an object the register is the number
// of the set of written keys (Members).
//
// The machines of all rules share one array. A Builder makes them from parts (Thompson 1968), for
// grammars as text (gbnf.h) and for schemas (json_schema.h).
#pragma once

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
  enum class Kind : uint8_t {
    kFork,
    kByte,
    kCall,
    kEnd,
    kText,     // plain characters (IsPlain), after each of which the state is the same
    kCount,    // adds 1 to the register, up to `other`; `low`: see Loop::may_be_empty
    kAtLeast,  // passes if the register is at least `other`
    kBelow,    // passes if the register is below `other`
    kMember,   // between the members of an object: Grammar::members(other)
    kKey,      // before a key: Grammar::members(other)
    kSeen,     // after key SeenKey() of Grammar::members(other)
  };
  Kind kind = Kind::kFork;
  uint8_t low = 0, high = 0;  // kByte: the range, inclusive
  StateId next = kNone;       // after the byte or call; kFork: the first target
  // kFork: the second target; kCall: the rule; kText: the rule of other bytes; kByte: kOpensUnique
  // if it opens a list of unique items.
  uint32_t other = kNone;
};

inline constexpr uint32_t kOpensUnique = 1;
// The key of a kSeen, kNone for an unnamed key.
inline constexpr uint32_t kMaxKeys = 0xFFFF;
constexpr uint32_t SeenKey(const State& state) {
  const uint32_t key = state.low | uint32_t{state.high} << 8;
  return key == kMaxKeys ? kNone : key;
}

// A position in a rule: a state and the register.
struct Place {
  StateId at;
  uint32_t data;
  auto operator<=>(const Place&) const = default;
};

// A repetition of at least `min` and at most `max` times (kNone: no limit).
struct Loop {
  uint32_t min, max;
  // Its states: the repeated part's start, and the state after it (kNone: the part counts itself).
  StateId body, count = kNone, at_least = kNone;
  // The part may be empty: then fewer repetitions are allowed as well, and empty ones need not be
  // counted.
  bool may_be_empty = false;
};

// The members of an object, or unique items of an array. Each key is written once at most.
struct Members {
  struct Key {
    StateId start;
    RuleId value = kNone;  // kNone: no value follows
    bool required = false;
    bool possible = true;  // false: no value can be written for it
  };
  std::vector<Key> keys;
  StateId other = kNone;  // an unnamed key, any number of times
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> needs;  // a key, and the keys it requires
  uint32_t min = 0, max = kNone;                                  // number of members
  bool ordered = false;  // named keys come in this order, then others
  // Where members begin, continue and end, and where an empty object ends.
  StateId first = kNone, more = kNone, close = kNone, none = kNone;
};

struct Rule {
  std::string name;  // for messages; empty if unnamed
  StateId start = kNone;
  bool may_be_empty = false;
  // Lower than the order of every rule that this one may begin with: no rule begins with itself.
  uint32_t order = 0;
  std::vector<Place> first;  // bytes and calls it may begin with
  bool has_all_beyond_ascii =
      false;  // each plain character beyond ASCII but white space is a text of it
};

// A token as a grammar names it: "<think>", or "<[10]>" for the id.
struct TokenName {
  std::string name;
  bool is_wanted;  // false if named only after !, as in !<think>
};

// Immutable: any number of generations may share it.
class Grammar {
 public:
  const State& state(StateId id) const { return states_[id]; }
  const Rule& rule(RuleId id) const { return rules_[id]; }
  // The repetition in which a state is, or null.
  const Loop* LoopOf(StateId id) const {
    return loop_of_[id] == kNone ? nullptr : &loops_[loop_of_[id]];
  }
  const Members& members(uint32_t id) const { return members_[id]; }
  // The texts are JSON, and no object in them repeats a key.
  bool has_unique_keys() const { return has_unique_keys_; }
  size_t n_states() const { return states_.size(); }
  size_t n_rules() const { return rules_.size(); }
  RuleId root() const { return root_; }
  // Empty if the grammar names no tokens.
  const std::vector<TokenName>& tokens() const { return tokens_; }
  // Whether it begins with the model's thinking: it names tokens, and is not for answers alone.
  bool covers_thinking() const { return covers_thinking_; }

 private:
  friend class Builder;
  friend class Analysis;
  std::vector<State> states_;
  std::vector<Rule> rules_;
  std::vector<Loop> loops_;
  std::vector<Members> members_;
  std::vector<uint32_t> loop_of_;  // [state]
  bool has_unique_keys_ = false;
  std::vector<TokenName> tokens_;
  RuleId root_ = 0;
  bool covers_thinking_ = false;
};

// Computes Rule's fields besides its name and start, in time and memory linear in the grammar's
// size. Throws as Builder::Finish().
void Analyze(Grammar& grammar, bool prunes);

// A character that JSON strings contain unescaped, and that `.` in patterns matches.
constexpr bool IsPlain(CodePoint c) {
  return c >= 0x20 && c != '"' && c != '\\' && c != 0x7F && c != 0x2028 && c != 0x2029;
}
const CodePoints& Plain();
// Characters beyond ASCII that are not white space.
const CodePoints& TextBeyondAscii();

// A named token is spelt as two bytes: this one, which is in no text in UTF-8, and its index in
// Grammar::tokens(). All other tokens are spelt with kOtherToken.
inline constexpr uint8_t kTokenByte = 0xFF, kOtherToken = 0xFF;

// More states are refused: 16 MB. A schema of a hundred properties has a few thousand.
inline constexpr size_t kMaxStates = size_t{1} << 20;

// A piece of a rule. Its end is a fork without a target yet. Each part is used once.
struct Part {
  StateId start, end;
  bool counts = false;  // it uses the register
};

// All functions throw grammar::Error if the grammar becomes too large.
class Builder {
 public:
  Part Empty();
  Part Nothing();  // no text fits it
  Part Literal(std::string_view bytes);
  Part Characters(const CodePoints& set);  // one of them; the set is not empty
  Part Call(RuleId rule);
  Part Token(const std::string& name, bool but_this);  // that token, or any other
  Part Then(Part first, Part second) {
    Link(first.end, second.start);
    return {first.start, second.end, first.counts || second.counts};
  }
  Part Either(std::span<const Part> ways);
  // One of the parts that exist; empty if none does.
  std::optional<Part> AnyOf(const std::vector<std::optional<Part>>& ways);
  // At least `min` times, at most `max` (kNone: no limit).
  Part Repeat(Part part, uint32_t min, uint32_t max);
  // Passes if the register is below `limit`, then counts up to `most`. For automata that count all
  // their characters; AddLimit gives an automaton's start, and the count up to which none of its
  // limits matters.
  Part Counted(Part part, uint32_t limit, uint32_t most);
  void AddLimit(StateId start, uint32_t count);
  Part Text(bool once = false);  // any number of plain characters, or one

  // Forks for other shapes than sequences; the caller links them.
  StateId Fork() { return Add({}); }
  void Link(StateId fork, StateId to);
  // Members, to be filled in before Finish(), and their states kMember, kKey and kSeen.
  uint32_t AddMembers();
  Members& members(uint32_t id) { return grammar_.members_[id]; }
  StateId Member(uint32_t members) { return Add({.kind = State::Kind::kMember, .other = members}); }
  StateId Key(uint32_t members) { return Add({.kind = State::Kind::kKey, .other = members}); }
  Part Seen(uint32_t members, uint32_t key);  // kNone: an unnamed key
  Part OpenUnique();                          // the bracket of a list of unique items
  void MakeKeysUnique() { grammar_.has_unique_keys_ = true; }

  // A rule, to be defined once. Its name is for messages.
  RuleId Declare(std::string name);
  bool IsDefined(RuleId rule) const { return grammar_.rules_[rule].start != kNone; }
  void Define(RuleId rule, Part part);
  // Adds the rules of a finished grammar, and returns its root. Throws grammar::Error if the
  // grammar names tokens.
  RuleId Include(const Grammar& grammar);

  // All called rules must be defined. Throws grammar::Error, with a rule's name, if a rule that the
  // root needs begins with itself (left recursion) or can never end. If it prunes, alternatives
  // that can never end are left out instead, unless nothing is left. A grammar that names tokens
  // covers the thinking, unless it is for answers alone.
  Grammar Finish(RuleId root, bool prunes = false, bool is_answer = false) &&;

 private:
  StateId Add(const State& state);
  Part Byte(uint8_t low, uint8_t high);
  RuleId Outline(Part part);  // turns it into a rule, which can be called many times

  Grammar grammar_;
  std::map<CodePoints, RuleId> sets_;  // the rules of sets beyond ASCII
};

}  // namespace grammar
