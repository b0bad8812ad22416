// Automata of strings: combining two, and the smallest one of a set.
#include "grammar/dfa.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "gguf/utf8.h"

namespace grammar {
namespace {

constexpr size_t kMaxDfaStates = 20'000;
constexpr uint64_t kCostOfState = 50;        // the cost of its memory
constexpr size_t kMaxTransitions = 400'000;  // transitions examined to merge states

// Appends an edge; merges it into the last edge if possible.
void AddEdge(std::vector<Dfa::Edge>& edges, const Dfa::Edge& edge) {
  if (!edges.empty() && edges.back().to == edge.to && edges.back().high + 1 == edge.low) {
    edges.back().high = edge.high;
  } else {
    edges.push_back(edge);
  }
}

}  // namespace

bool Dfa::Has(std::string_view text) const {
  if (empty()) return false;
  uint32_t at = 0;
  for (const auto& [c, bytes] : gguf::Characters(text)) {
    const std::vector<Edge>& edges = states[at].edges;
    const auto edge = std::ranges::lower_bound(edges, c, {}, &Edge::high);
    if (edge == edges.end() || edge->low > c) return false;
    at = edge->to;
  }
  return states[at].accepts;
}

std::vector<uint32_t> Dfa::Distances() const {
  std::vector<std::vector<uint32_t>> before(states.size());
  std::vector<uint32_t> distances(states.size(), kNone), level;
  for (uint32_t s = 0; s < states.size(); ++s) {
    for (const Edge& edge : states[s].edges) before[edge.to].push_back(s);
    if (!states[s].accepts) continue;
    distances[s] = 0;
    level.push_back(s);
  }
  for (uint32_t n = 1; !level.empty(); ++n) {
    std::vector<uint32_t> next;
    for (const uint32_t s : level) {
      for (const uint32_t t : before[s]) {
        if (distances[t] != kNone) continue;
        distances[t] = n;
        next.push_back(t);
      }
    }
    level = std::move(next);
  }
  return distances;
}

uint32_t Dfa::Longest() const {
  // Visits states in topological order (Kahn 1962); with a cycle there is no limit.
  std::vector<uint32_t> n_before(states.size()), longest(states.size()), ready = {0};
  for (const State& state : states) {
    for (const Edge& edge : state.edges) ++n_before[edge.to];
  }
  if (empty()) return 0;
  if (n_before[0] > 0) return kNone;
  uint32_t most = 0;
  size_t n = 0;
  while (!ready.empty()) {
    const uint32_t s = ready.back();
    ready.pop_back();
    ++n;
    if (states[s].accepts) most = std::max(most, longest[s]);
    for (const Edge& edge : states[s].edges) {
      longest[edge.to] = std::max(longest[edge.to], longest[s] + 1);
      if (--n_before[edge.to] == 0) ready.push_back(edge.to);
    }
  }
  return n == states.size() ? most : kNone;
}

std::vector<std::string> Dfa::Strings(size_t most) const {
  std::vector<std::string> all;
  if (empty() || Longest() == kNone) return std::vector<std::string>(empty() ? 0 : most + 1);
  std::vector<std::pair<uint32_t, std::string>> level = {{0, ""}};
  while (!level.empty() && all.size() <= most) {
    std::vector<std::pair<uint32_t, std::string>> next;
    for (const auto& [s, text] : level) {
      if (states[s].accepts) all.push_back(text);
      for (const Edge& edge : states[s].edges) {
        // Each character of the range begins a different string.
        if (edge.high - edge.low + next.size() > most) return std::vector<std::string>(most + 1);
        for (CodePoint c = edge.low; c <= edge.high; ++c)
          next.emplace_back(edge.to, text + gguf::ToUtf8(c));
      }
    }
    level = std::move(next);
  }
  return all;
}

Dfa Everything() {
  return {.states = {{.accepts = true, .edges = {{0, 0xD7FF, 0}, {0xE000, kMaxCodePoint, 0}}}}};
}

Dfa Listed(const std::vector<std::string>& texts, Budget& budget) {
  std::vector<std::string_view> sorted(texts.begin(), texts.end());
  std::sort(sorted.begin(), sorted.end());
  Dfa dfa = {.states = std::vector<Dfa::State>(1)};
  std::vector<CodePoint> last;       // the characters of the previous text
  std::vector<uint32_t> path = {0};  // and its states
  for (const std::string_view text : sorted) {
    std::vector<CodePoint> characters;
    for (const auto& [c, bytes] : gguf::Characters(text)) characters.push_back(c);
    budget.Charge(4 * kCostOfState * (characters.size() + 1));
    const auto [own, other] = std::ranges::mismatch(characters, last);
    const auto n_common = static_cast<size_t>(own - characters.begin());
    path.resize(n_common + 1);
    for (size_t n = n_common; n < characters.size(); ++n) {
      const auto to = static_cast<uint32_t>(dfa.states.size());
      AddEdge(dfa.states[path.back()].edges, {characters[n], characters[n], to});
      dfa.states.emplace_back();
      path.push_back(to);
    }
    dfa.states[path.back()].accepts = true;
    last = std::move(characters);
  }
  return Minimal(dfa, budget);
}

Dfa OfLength(uint32_t min, uint32_t max, Budget& budget) {
  if (min > max) return {};
  const uint32_t last = max == kNone ? min : max;
  if (last > kMaxDfaStates) budget.Charge(UINT64_MAX);
  budget.Charge(last);
  Dfa dfa;
  for (uint32_t n = 0; n <= last; ++n) {
    Dfa::State& state = dfa.states.emplace_back();
    state.accepts = n >= min;
    const uint32_t to = n < last ? n + 1 : n;
    if (n < last || max == kNone) state.edges = {{0, 0xD7FF, to}, {0xE000, kMaxCodePoint, to}};
  }
  return dfa;
}

Dfa Combine(const Dfa& a, const Dfa& b, Both how, Budget& budget) {
  if (how == Both::kAnd && a == Everything()) return b;
  if (how == Both::kAnd && b == Everything()) return a;
  // A pair has kNone for an automaton that no longer matches.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number = [&](uint32_t x, uint32_t y) -> uint32_t {
    if (how == Both::kAnd ? x == kNone || y == kNone : x == kNone && y == kNone) return kNone;
    const auto [found, is_new] = numbers.try_emplace({x, y}, pairs.size());
    if (is_new) {
      pairs.emplace_back(x, y);
      budget.Charge(kCostOfState);
    }
    if (pairs.size() > 4 * kMaxDfaStates) budget.Charge(UINT64_MAX);
    return found->second;
  };
  Dfa dfa;
  if (number(a.empty() ? kNone : 0, b.empty() ? kNone : 0) == kNone) return dfa;
  static const std::vector<Dfa::Edge> kNothing;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto [x, y] = pairs[i];
    const bool in_a = x != kNone && a.states[x].accepts, in_b = y != kNone && b.states[y].accepts;
    Dfa::State state;
    state.accepts = how == Both::kAnd ? in_a && in_b : in_a || in_b;
    const std::vector<Dfa::Edge>& from_a = x == kNone ? kNothing : a.states[x].edges;
    const std::vector<Dfa::Edge>& from_b = y == kNone ? kNothing : b.states[y].edges;
    budget.Charge(2 * (from_a.size() + from_b.size()));
    size_t j = 0, k = 0;
    for (CodePoint c = 0; j < from_a.size() || k < from_b.size();) {
      // `last` is the character before the next one at which an edge of a or b begins or ends.
      CodePoint last = kMaxCodePoint;
      const auto target = [&](const std::vector<Dfa::Edge>& edges, size_t& at) {
        while (at < edges.size() && edges[at].high < c) ++at;
        if (at == edges.size()) return kNone;
        if (edges[at].low > c) {
          last = std::min<CodePoint>(last, edges[at].low - 1);
          return kNone;
        }
        last = std::min(last, edges[at].high);
        return edges[at].to;
      };
      const uint32_t to_a = target(from_a, j), to_b = target(from_b, k);
      if (const uint32_t to = number(to_a, to_b); to != kNone) AddEdge(state.edges, {c, last, to});
      if (last == kMaxCodePoint) break;
      c = last + 1;
    }
    dfa.states.push_back(std::move(state));
  }
  return Minimal(dfa, budget);
}

namespace {

// Elements in disjoint sets. Marked elements are split off.
class Partition {
 public:
  explicit Partition(size_t n) : elements_(n), place_(n), set_of_(n) {
    std::iota(elements_.begin(), elements_.end(), 0u);
    std::iota(place_.begin(), place_.end(), 0u);
    if (n > 0) sets_.push_back({.end = static_cast<uint32_t>(n)});
  }
  uint32_t size() const { return static_cast<uint32_t>(sets_.size()); }
  uint32_t SetOf(uint32_t element) const { return set_of_[element]; }
  std::span<const uint32_t> operator[](uint32_t set) const {
    return std::span(elements_).subspan(sets_[set].begin, sets_[set].end - sets_[set].begin);
  }
  void Mark(uint32_t element) {
    Set& set = sets_[set_of_[element]];
    const uint32_t from = place_[element], to = set.begin + set.n_marked;
    if (from < to) return;  // already marked
    if (set.n_marked++ == 0) touched_.push_back(set_of_[element]);
    std::swap(elements_[from], elements_[to]);
    place_[elements_[from]] = from;
    place_[element] = to;
  }
  // The smaller part of each set becomes a new set, so an element moves at most log n times.
  void Split() {
    for (const uint32_t old : touched_) {
      Set& set = sets_[old];
      const uint32_t middle = set.begin + std::exchange(set.n_marked, 0);
      if (middle == set.end) continue;
      Set part = set;
      if (middle - set.begin <= set.end - middle) {
        part.end = set.begin = middle;
      } else {
        part.begin = set.end = middle;
      }
      for (uint32_t i = part.begin; i < part.end; ++i) set_of_[elements_[i]] = size();
      sets_.push_back(part);
    }
    touched_.clear();
  }

 private:
  struct Set {
    uint32_t begin = 0, end = 0, n_marked = 0;  // positions in elements_; marked ones come first
  };
  std::vector<uint32_t> elements_, place_, set_of_;
  std::vector<Set> sets_;
  std::vector<uint32_t> touched_;
};

// A transition; its label is a class of characters that no edge distinguishes.
struct Transition {
  uint32_t label, from, to;
};

// Transitions between states that can accept, by label. Empty if there are too many.
std::optional<std::vector<Transition>> TransitionsOf(const Dfa& dfa,
                                                     const std::vector<bool>& lives) {
  std::vector<CodePoint> cuts;
  for (const Dfa::State& state : dfa.states) {
    for (const Dfa::Edge& edge : state.edges) {
      cuts.push_back(edge.low);
      cuts.push_back(edge.high + 1);
    }
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<Transition> all;
  for (uint32_t s = 0; s < dfa.states.size(); ++s) {
    for (const Dfa::Edge& edge : dfa.states[s].edges) {
      if (!lives[edge.to]) continue;
      for (auto cut = std::ranges::lower_bound(cuts, edge.low); *cut <= edge.high; ++cut)
        all.push_back({static_cast<uint32_t>(cut - cuts.begin()), s, edge.to});
      if (all.size() > kMaxTransitions) return std::nullopt;
    }
  }
  std::ranges::sort(all, {}, &Transition::label);
  return all;
}

// A class for each state; states of one class are followed by the same strings. Valmari and
// Lehtinen 2008: states are split by the transitions into one class, transitions by the class to
// which they lead.
std::vector<uint32_t> ClassesOf(const Dfa& dfa, std::span<const Transition> transitions) {
  const auto n = static_cast<uint32_t>(dfa.states.size());
  Partition states(n), moves(transitions.size());
  for (uint32_t s = 0; s < n; ++s) {
    if (dfa.states[s].accepts) states.Mark(s);
  }
  states.Split();
  std::vector<uint32_t> first(n + size_t{2}), into(transitions.size());
  for (uint32_t t = 0; t < transitions.size(); ++t) {
    ++first[transitions[t].to + size_t{2}];
    moves.Mark(t);
    if (t + 1 == transitions.size() || transitions[t].label != transitions[t + 1].label)
      moves.Split();
  }
  // The transitions into s are at [first[s], first[s + 1]).
  std::partial_sum(first.begin(), first.end(), first.begin());
  for (uint32_t t = 0; t < transitions.size(); ++t)
    into[first[transitions[t].to + size_t{1}]++] = t;
  uint32_t n_states_seen = 1;
  for (uint32_t m = 0; m < moves.size(); ++m) {
    for (const uint32_t t : moves[m]) states.Mark(transitions[t].from);
    states.Split();
    for (; n_states_seen < states.size(); ++n_states_seen) {
      for (const uint32_t s : states[n_states_seen]) {
        for (uint32_t i = first[s]; i < first[s + 1]; ++i) moves.Mark(into[i]);
      }
      moves.Split();
    }
  }
  std::vector<uint32_t> classes(n);
  for (uint32_t s = 0; s < n; ++s) classes[s] = states.SetOf(s);
  return classes;
}

// One state for each class of live states, numbered in the order of the first visit.
Dfa Numbered(const Dfa& dfa, const std::vector<uint32_t>& of, const std::vector<bool>& lives) {
  std::vector<uint32_t> renamed(dfa.states.size(), kNone);
  std::vector<uint32_t> order;
  const auto visit = [&](uint32_t s) {
    uint32_t& name = renamed[of[s]];
    if (name == kNone) {
      name = static_cast<uint32_t>(order.size());
      order.push_back(s);
    }
    return name;
  };
  visit(0);
  Dfa result;
  for (size_t i = 0; i < order.size(); ++i) {
    Dfa::State state{.accepts = dfa.states[order[i]].accepts, .edges = {}};
    for (const Dfa::Edge& edge : dfa.states[order[i]].edges) {
      if (lives[edge.to]) AddEdge(state.edges, {edge.low, edge.high, visit(edge.to)});
    }
    result.states.push_back(std::move(state));
  }
  return result;
}

}  // namespace

// Where no edge leads on, all texts are accepted in the result, and vice versa.
Dfa AllBut(const Dfa& dfa) {
  Dfa result = dfa;
  const auto rest = static_cast<uint32_t>(dfa.states.size());
  std::vector<bool> lives(rest + size_t{1}, true);
  for (uint32_t i = 0; i < rest; ++i) {
    Dfa::State& state = result.states[i];
    Dfa all = Everything();
    for (Dfa::Edge& edge : all.states[0].edges) edge.to = i;
    lives[i] = state != all.states[0];
    state.accepts = !state.accepts;
    CodePoints known;
    for (const auto& [low, high, to] : state.edges) known.emplace_back(low, high);
    for (const auto& [low, high] : Complement(Normal(std::move(known))))
      state.edges.push_back({low, high, rest});
    std::sort(state.edges.begin(), state.edges.end());
  }
  result.states.push_back(Everything().states[0]);
  for (Dfa::Edge& edge : result.states.back().edges) edge.to = rest;
  if (!lives[0]) return {};
  std::vector<uint32_t> of(result.states.size());
  std::iota(of.begin(), of.end(), 0u);
  return Numbered(result, of, lives);
}

Dfa Minimal(const Dfa& dfa, Budget& budget) {
  const size_t n = dfa.states.size();
  if (n == 0) return {};
  // The states that can reach an accepting one.
  std::vector<std::vector<uint32_t>> before(n);
  std::vector<uint32_t> todo;
  std::vector<bool> lives(n);
  size_t n_edges = 0;
  for (uint32_t s = 0; s < n; ++s) {
    for (const Dfa::Edge& edge : dfa.states[s].edges) before[edge.to].push_back(s);
    n_edges += dfa.states[s].edges.size();
    lives[s] = dfa.states[s].accepts;
    if (lives[s]) todo.push_back(s);
  }
  budget.Charge(2 * (n + n_edges));
  while (!todo.empty()) {
    const uint32_t s = todo.back();
    todo.pop_back();
    for (const uint32_t t : before[s]) {
      if (lives[t]) continue;
      lives[t] = true;
      todo.push_back(t);
    }
  }
  if (!lives[0]) return {};
  std::vector<uint32_t> of(n);
  if (const auto transitions = TransitionsOf(dfa, lives)) {
    budget.Charge(2 * transitions->size());
    of = ClassesOf(dfa, *transitions);
  } else {
    std::iota(of.begin(), of.end(), 0u);
  }
  Dfa result = Numbered(dfa, of, lives);
  if (result.states.size() > kMaxDfaStates) budget.Charge(UINT64_MAX);
  return result;
}

}  // namespace grammar
