// Which rules may be empty, how they begin, whether each text can reach an end.
#include <array>
#include <cstddef>
#include <cstdint>
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
      : grammar_(grammar), needed_(grammar.n_rules()), visit_(grammar.n_states()) {}

  void Run() {
    SkipPlainForks();
    FindNeeded();
    const std::vector<bool> empty = Ending(/*through_bytes=*/false);
    const std::vector<bool> ends = Ending(/*through_bytes=*/true);
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      Rule& rule = grammar_.rules_[r];
      if (!needed_[r]) continue;
      if (!ends[rule.start]) {
        throw Error("no text can ever end ", Called(rule.name), ": it always needs more");
      }
      rule.may_be_empty = empty[rule.start];
    }
    for (RuleId r = 0; r < grammar_.n_rules(); ++r) {
      if (needed_[r]) FindFirst(grammar_.rules_[r]);
    }
    Order();
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
    for (State& state : states) {
      if (state.next != kNone) skip(state.next);
      if (state.kind == Kind::kFork && state.other != kNone) skip(state.other);
    }
    for (Rule& rule : grammar_.rules_) {
      if (rule.start != kNone) skip(rule.start);
    }
  }

  void FindNeeded() {
    const auto need = [&](RuleId r) {
      needed_[r] = true;
      Push(grammar_.rule(r).start);
    };
    ++n_visits_;
    for (need(grammar_.root()); !todo_.empty();) {
      const State& state = grammar_.state(Pop());
      Push(state.next);
      if (state.kind == Kind::kFork) Push(state.other);
      if (state.kind == Kind::kCall) need(state.other);
    }
  }

  // The states from which the end of their rule can be reached, by any bytes or by none.
  std::vector<bool> Ending(bool through_bytes) {
    const size_t n = grammar_.n_states();
    // The reverse dependencies: states that depend on s are at [first[s], first[s + 1]).
    const auto needs = [&](StateId s) {
      const State& state = grammar_.state(s);
      const StateId second = state.kind == Kind::kFork   ? state.other
                             : state.kind == Kind::kCall ? grammar_.rule(state.other).start
                                                         : kNone;
      return std::array{state.next, second};
    };
    std::vector<uint32_t> first(n + 2), dependants;
    for (StateId s = 0; s < n; ++s) {
      for (const StateId t : needs(s)) {
        if (t != kNone) ++first[t + 2];
      }
    }
    for (size_t s = 2; s < n + 2; ++s) first[s] += first[s - 1];
    dependants.resize(first[n + 1]);
    for (StateId s = 0; s < n; ++s) {
      for (const StateId t : needs(s)) {
        if (t != kNone) dependants[first[t + 1]++] = s;
      }
    }
    std::vector<bool> good(n);
    const auto is_good = [&](StateId s) {
      const auto [next, second] = needs(s);
      const bool next_good = next != kNone && good[next],
                 second_good = second != kNone && good[second];
      switch (grammar_.state(s).kind) {
        case Kind::kFork:
          return next_good || second_good;
        case Kind::kByte:
          return through_bytes && next_good;
        case Kind::kCall:
          return next_good && second_good;
        case Kind::kEnd:
          return true;
      }
      return false;
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

  void FindFirst(Rule& rule) {
    ++n_visits_;
    for (Push(rule.start); !todo_.empty();) {
      const StateId s = Pop();
      const State& state = grammar_.state(s);
      if (state.kind == Kind::kFork) {
        Push(state.other);
        Push(state.next);
      } else if (state.kind != Kind::kEnd) {
        rule.first.push_back(s);
        if (state.kind == Kind::kCall && grammar_.rule(state.other).may_be_empty) Push(state.next);
      }
    }
  }

  // Rules ordered so that each comes before those that it may begin with (Kahn 1962).
  void Order() {
    std::vector<uint32_t> n_before(grammar_.n_rules());  // calls at the beginning of other rules
    const auto for_calls = [&](RuleId r, auto call) {
      for (const StateId s : grammar_.rule(r).first) {
        if (grammar_.state(s).kind == Kind::kCall) call(grammar_.state(s).other);
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
      for (const StateId s : grammar_.rule(r).first) {
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
  std::vector<bool> needed_;     // by rule: reachable from the root
  std::vector<uint32_t> visit_;  // by state: the last visit that reached it
  uint32_t n_visits_ = 0;
  std::vector<StateId> todo_;
};

void Analyze(Grammar& grammar) { Analysis(grammar).Run(); }

}  // namespace grammar
