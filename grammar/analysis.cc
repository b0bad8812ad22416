// Finds which rules may be empty, how they begin, and whether each text can reach an end.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar.h"

namespace grammar {

using Kind = State::Kind;

namespace {

std::string Called(const std::string& name) {
  return name.empty() ? "a rule" : "the rule '" + name + "'";
}

}  // namespace

class Analysis {
 public:
  explicit Analysis(Grammar& grammar)
      : grammar_(grammar),
        needed_(grammar.n_rules()),
        visit_(grammar.n_states()),
        at_least_(grammar.n_states(), kNone) {
    for (const Loop& loop : grammar.loops_) {
      if (loop.count != kNone) at_least_[loop.count] = loop.at_least;
    }
  }

  void Run(bool prunes) {
    SkipPlainForks();
    FindNeeded();
    std::vector<bool> ends = Ending(/*through_bytes=*/true);
    if (prunes) {
      const Rule& root = grammar_.rule(grammar_.root());
      if (!ends[root.start]) throw Error(root.name, ": no value fits this schema");
      Prune(ends);
      needed_.assign(grammar_.n_rules(), false);
      FindNeeded();
    }
    const std::vector<bool> empty = Ending(/*through_bytes=*/false);
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      Rule& rule = grammar_.rules_[r];
      if (!needed_[r]) continue;
      if (!ends[rule.start]) {
        throw Error("no text can ever end ", Called(rule.name), ": it always needs more");
      }
      rule.may_be_empty = empty[rule.start];
    }
    FindEmptyLoops();
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      if (needed_[r]) FindFirst(grammar_.rules_[r]);
    }
    Order();
    FindLoops();
  }

 private:
  void Push(StateId s) {
    if (s != kNone && std::exchange(visit_[s], n_visits_) != n_visits_) todo_.push_back(s);
  }
  StateId Pop() {
    const StateId s = todo_.back();
    todo_.pop_back();
    return s;
  }

  // Joining parts leaves forks with a single target; links skip them.
  void SkipPlainForks() {
    std::vector<State>& states = grammar_.states_;
    const auto skip = [&](StateId& to) {
      StateId last = to;
      const auto plain = [&](StateId s) {
        return s != kNone && states[s].kind == Kind::kFork && states[s].other == kNone &&
               states[s].next != kNone;
      };
      while (plain(last)) last = states[last].next;
      // The skipped forks now point there directly, so long chains are walked once.
      for (StateId s = to; s != last;) s = std::exchange(states[s].next, last);
      to = last;
    };
    for (Loop& loop : grammar_.loops_) skip(loop.body);
    for (Members& members : grammar_.members_) {
      for (Members::Key& key : members.keys) skip(key.start);
      for (StateId* const s :
           {&members.other, &members.first, &members.more, &members.close, &members.none}) {
        if (*s != kNone) skip(*s);
      }
    }
    for (State& state : states) {
      if (state.next != kNone) skip(state.next);
      if (state.kind == Kind::kFork && state.other != kNone) skip(state.other);
    }
    for (Rule& rule : grammar_.rules_) {
      if (rule.start != kNone) skip(rule.start);
    }
  }

  void FindNeeded() {
    std::vector<RuleId> rules;
    const auto need = [&](RuleId r) {
      if (!needed_[r]) rules.push_back(r);
      needed_[r] = true;
    };
    ++n_visits_;
    for (need(grammar_.root()); !rules.empty();) {
      const RuleId r = rules.back();
      rules.pop_back();
      for (Push(grammar_.rule(r).start); !todo_.empty();) {
        const StateId s = Pop();
        const State& state = grammar_.state(s);
        Push(state.next);
        if (state.kind == Kind::kFork) Push(state.other);
        if (state.kind == Kind::kCall || state.kind == Kind::kText) need(state.other);
        if (state.kind == Kind::kMember) {
          const Members& members = grammar_.members(state.other);
          for (const StateId t : {members.close, members.none, members.first, members.more})
            Push(t);
        } else if (state.kind == Kind::kKey) {
          const Members& members = grammar_.members(state.other);
          for (const Members::Key& key : members.keys) {
            if (key.possible) Push(key.start);
          }
          Push(members.other);
        }
      }
    }
  }

  // Calls `call` with the states on which Ending() depends for a state.
  template <class Call>
  void ForNeeds(StateId s, bool through_bytes, const Call& call) const {
    const State& state = grammar_.state(s);
    const auto one = [&](StateId t) {
      if (t != kNone) call(t);
    };
    switch (state.kind) {
      case Kind::kEnd:
        return;
      case Kind::kFork:
        one(state.next);
        return one(state.other);
      case Kind::kCall:
        one(state.next);
        return one(grammar_.rule(state.other).start);
      case Kind::kCount: {  // without a byte so far: the repeated part may be empty, and as often
                            // as needed
        const StateId enough = at_least_[s];
        return one(through_bytes || enough == kNone ? state.next : grammar_.state(enough).next);
      }
      case Kind::kMember: {
        const Members& members = grammar_.members(state.other);
        one(members.close);
        for (const Members::Key& key : members.keys) {
          if (key.required && key.value != kNone) one(grammar_.rule(key.value).start);
        }
        return;
      }
      case Kind::kKey: {
        const Members& members = grammar_.members(state.other);
        for (const Members::Key& key : members.keys) one(key.start);
        return one(members.other);
      }
      default:
        return one(state.next);
    }
  }
  // The states from which the end of their rule can be reached, by any bytes or by none.
  std::vector<bool> Ending(bool through_bytes) {
    const size_t n = grammar_.n_states();
    // The reverse dependencies: states that depend on s are at [first[s], first[s + 1]).
    std::vector<uint32_t> first(n + 2), dependants;
    for (StateId s = 0; s < n; ++s) ForNeeds(s, through_bytes, [&](StateId t) { ++first[t + 2]; });
    for (size_t s = 2; s < n + 2; ++s) first[s] += first[s - 1];
    dependants.resize(first[n + 1]);
    for (StateId s = 0; s < n; ++s)
      ForNeeds(s, through_bytes, [&](StateId t) { dependants[first[t + 1]++] = s; });
    std::vector<bool> good(n);
    const auto is_good = [&](StateId s) {
      const State& state = grammar_.state(s);
      size_t n_good = 0, n_needs = 0;
      ForNeeds(s, through_bytes, [&](StateId t) {
        ++n_needs;
        n_good += good[t];
      });
      switch (state.kind) {
        case Kind::kEnd:
          return true;
        case Kind::kByte:
        case Kind::kText:
        case Kind::kSeen:
          return through_bytes && n_good > 0;
        case Kind::kCall:
        case Kind::kMember:
          return n_needs > 0 && n_good == n_needs;
        case Kind::kAtLeast:
          return n_good > 0 && (through_bytes || state.other == 0);
        default:
          return n_good > 0;
      }
    };
    const auto look = [&](StateId s) {
      if (good[s] || !is_good(s)) return;
      good[s] = true;
      todo_.push_back(s);
    };
    for (StateId s = 0; s < n; ++s) {
      if (grammar_.state(s).kind == Kind::kEnd) look(s);
    }
    while (!todo_.empty()) {
      const StateId s = Pop();
      for (uint32_t i = first[s]; i < first[s + 1]; ++i) look(dependants[i]);
    }
    return good;
  }

  // Drops the ways that can never end.
  void Prune(const std::vector<bool>& ends) {
    const auto cut = [&](StateId& s) {
      if (s != kNone && !ends[s]) s = kNone;
    };
    for (State& state : grammar_.states_) {
      if (state.kind != Kind::kFork) continue;
      cut(state.next);
      cut(state.other);
    }
    for (Members& members : grammar_.members_) {
      for (Members::Key& key : members.keys) {
        key.possible &= key.value == kNone || ends[grammar_.rule(key.value).start];
      }
      cut(members.other);
    }
  }

  void FindEmptyLoops() {
    for (Loop& loop : grammar_.loops_) {
      if (loop.count == kNone) continue;
      ++n_visits_;
      for (Push(loop.body); !todo_.empty();) {
        const StateId s = Pop();
        const State& state = grammar_.state(s);
        loop.may_be_empty |= s == loop.count;
        const bool is_empty_call =
            state.kind == Kind::kCall && grammar_.rule(state.other).may_be_empty;
        if (state.kind == Kind::kFork || is_empty_call) Push(state.next);
        if (state.kind == Kind::kFork) Push(state.other);
      }
      if (!loop.may_be_empty) continue;
      loop.min = 0;
      grammar_.states_[loop.at_least].other = 0;
      grammar_.states_[loop.count].low = 1;
    }
  }

  void FindFirst(Rule& rule) {
    std::set<Place> seen;
    std::set<StateId> counted;  // once is enough if the repeated part may be empty
    std::vector<Place> todo;
    const auto push = [&](StateId s, uint32_t data) {
      if (s != kNone && seen.insert({s, data}).second) todo.push_back({s, data});
      if (seen.size() > kMaxStates)
        throw Error("the grammar is too large: it repeats parts that may be empty");
    };
    for (push(rule.start, 0); !todo.empty();) {
      const auto [s, data] = todo.back();
      todo.pop_back();
      const State& state = grammar_.state(s);
      switch (state.kind) {
        case Kind::kFork:
          push(state.other, data);
          push(state.next, data);
          break;
        case Kind::kCount:
          if (state.low == 0 || counted.insert(s).second)
            push(state.next, std::min(data + 1, state.other));
          break;
        case Kind::kAtLeast:
          if (data >= state.other) push(state.next, 0);
          break;
        case Kind::kBelow:
          if (data < state.other) push(state.next, data);
          break;
        case Kind::kEnd:
          break;
        default:
          rule.first.push_back({s, data});
          if (state.kind == Kind::kCall && grammar_.rule(state.other).may_be_empty) {
            push(state.next, data);
          }
      }
    }
  }

  void FindLoops() {
    grammar_.loop_of_.assign(grammar_.n_states(), kNone);
    for (uint32_t i = 0; i < grammar_.loops_.size(); ++i) {
      ++n_visits_;
      for (Push(grammar_.loops_[i].body); !todo_.empty();) {
        const StateId s = Pop();
        grammar_.loop_of_[s] = i;
        const State& state = grammar_.state(s);
        if (state.kind == Kind::kCount && s == grammar_.loops_[i].count) continue;
        Push(state.next);
        if (state.kind == Kind::kFork) Push(state.other);
      }
    }
  }

  // Orders rules so that each comes before the rules that it may begin with (Kahn 1962).
  void Order() {
    std::vector<uint32_t> n_before(grammar_.n_rules());  // calls at the beginning of other rules
    const auto for_calls = [&](RuleId r, auto call) {
      for (const auto& [s, data] : grammar_.rule(r).first) {
        const State& state = grammar_.state(s);
        if (state.kind == Kind::kCall || state.kind == Kind::kText) call(state.other);
      }
    };
    size_t n_needed = 0;
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      if (!needed_[r]) continue;
      ++n_needed;
      for_calls(r, [&](RuleId callee) { ++n_before[callee]; });
    }
    std::vector<RuleId> ready;
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      if (needed_[r] && n_before[r] == 0) ready.push_back(r);
    }
    uint32_t order = 0;
    while (!ready.empty()) {
      const RuleId r = ready.back();
      ready.pop_back();
      grammar_.rules_[r].order = order++;
      for_calls(r, [&](RuleId callee) {
        if (--n_before[callee] == 0) ready.push_back(callee);
      });
    }
    if (order < n_needed) {
      throw Error("left recursion: ", NameOfCycle(n_before), " may begin with itself");
    }
  }

  // A rule in a cycle of calls: each remaining rule has a remaining caller, to go back to.
  std::string NameOfCycle(const std::vector<uint32_t>& n_before) const {
    std::vector<RuleId> caller(grammar_.n_rules(), kNone);
    RuleId at = kNone;
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      if (!needed_[r] || n_before[r] == 0) continue;
      at = r;
      for (const auto& [s, data] : grammar_.rule(r).first) {
        const State& state = grammar_.state(s);
        if (state.kind == Kind::kCall && n_before[state.other] > 0) caller[state.other] = r;
      }
    }
    for (size_t i = 0; i < grammar_.n_rules(); ++i) at = caller[at];
    for (size_t i = 0; i < grammar_.n_rules() && grammar_.rule(at).name.empty(); ++i)
      at = caller[at];
    return Called(grammar_.rule(at).name);
  }

  Grammar& grammar_;
  std::vector<bool> needed_;     // [rule]: reachable from the root
  std::vector<uint32_t> visit_;  // [state]: the last visit that reached it
  uint32_t n_visits_ = 0;
  std::vector<StateId> at_least_;  // one for each kCount of a repetition
  std::vector<StateId> todo_;
};

void Analyze(Grammar& grammar, bool prunes) { Analysis(grammar).Run(prunes); }

}  // namespace grammar
