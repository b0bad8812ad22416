#include "grammar/dfa.h"

#include <algorithm>
#include <map>
#include <utility>

#include "gguf/utf8.h"

namespace grammar {
namespace {

constexpr size_t kMaxDfaStates = 20'000;

// Adds an edge after the others; joins it to the last one if it can.
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
  // In topological order (Kahn 1962); a cycle has no end.
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
        // Each of them begins a string of its own.
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
  std::vector<std::map<CodePoint, uint32_t>> next(1);
  std::vector<bool> accepts(1);
  for (const std::string& text : texts) {
    uint32_t at = 0;
    budget.Charge(text.size() + 1);
    for (const auto& [c, bytes] : gguf::Characters(text)) {
      const auto [found, is_new] = next[at].try_emplace(c, next.size());
      at = found->second;
      if (!is_new) continue;
      next.emplace_back();
      accepts.push_back(false);
    }
    accepts[at] = true;
  }
  Dfa dfa;
  for (size_t s = 0; s < next.size(); ++s) {
    Dfa::State& state = dfa.states.emplace_back();
    state.accepts = accepts[s];
    for (const auto& [c, to] : next[s]) AddEdge(state.edges, {c, c, to});
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
  // A pair has kNone for an automaton that no longer matches.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> numbers;
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  const auto number = [&](uint32_t x, uint32_t y) -> uint32_t {
    const bool is_dead = how == Both::kAnd  ? x == kNone || y == kNone
                         : how == Both::kOr ? x == kNone && y == kNone
                                            : x == kNone;
    if (is_dead) return kNone;
    const auto [found, is_new] = numbers.try_emplace({x, y}, pairs.size());
    if (is_new) pairs.emplace_back(x, y);
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
    state.accepts = how == Both::kAnd  ? in_a && in_b
                    : how == Both::kOr ? in_a || in_b
                                       : in_a && !in_b;
    const std::vector<Dfa::Edge>& from_a = x == kNone ? kNothing : a.states[x].edges;
    const std::vector<Dfa::Edge>& from_b = y == kNone ? kNothing : b.states[y].edges;
    budget.Charge(4 + from_a.size() + from_b.size());
    size_t j = 0, k = 0;
    for (CodePoint c = 0; j < from_a.size() || k < from_b.size();) {
      // Up to the next place where one of them changes.
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

// Moore 1956: classes of states are split until all of one class have equal edges.
Dfa Minimal(const Dfa& dfa, Budget& budget) {
  const size_t n = dfa.states.size();
  if (n == 0) return {};
  // What can accept.
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
  budget.Charge(n + n_edges);
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
  constexpr uint32_t kDead = kNone;
  std::vector<uint32_t> of(n, kDead);
  size_t n_classes = 0;
  for (uint32_t s = 0; s < n; ++s) {
    if (lives[s]) of[s] = dfa.states[s].accepts ? 1 : 0;
  }
  std::vector<std::vector<Dfa::Edge>> edges(n);
  const bool is_small = n_edges < 30'000;  // otherwise it would take too long
  for (bool splits = true; splits;) {
    std::map<std::pair<uint32_t, std::vector<uint64_t>>, uint32_t> classes;
    std::vector<uint32_t> next(n, kDead);
    budget.Charge(n + n_edges);
    for (uint32_t s = 0; s < n; ++s) {
      if (!lives[s]) continue;
      edges[s].clear();
      std::vector<uint64_t> key;
      for (const Dfa::Edge& edge : dfa.states[s].edges) {
        if (of[edge.to] != kDead)
          AddEdge(edges[s], {edge.low, edge.high, is_small ? of[edge.to] : edge.to});
      }
      for (const Dfa::Edge& edge : edges[s]) {
        key.push_back(uint64_t{edge.low} << 32 | edge.high);
        key.push_back(edge.to);
      }
      if (!is_small) key = {s};
      next[s] = classes.try_emplace({of[s], std::move(key)}, classes.size()).first->second;
    }
    splits = classes.size() > n_classes && is_small;
    n_classes = classes.size();
    of = std::move(next);
  }
  // Numbers in the order of the first visit.
  std::vector<uint32_t> renamed(n_classes, kNone);
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
  if (result.states.size() > kMaxDfaStates) budget.Charge(UINT64_MAX);
  return result;
}

}  // namespace grammar
