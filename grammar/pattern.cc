// Reads a regular expression and turns it into an automaton.
#include "grammar/pattern.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "grammar/scanner.h"

namespace grammar {
namespace {

constexpr size_t kMaxNested = 50;  // groups
constexpr size_t kMaxNodes = 100'000;

const CodePoints& Digit() {
  static const CodePoints set = {{'0', '9'}};
  return set;
}
const CodePoints& Word() {
  static const CodePoints set = Normal({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return set;
}
const CodePoints& AnyButLineEnds() {
  static const CodePoints set = Complement(Normal({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
  return set;
}

// A part of a pattern.
struct Node {
  enum class Kind : uint8_t { kSet, kSequence, kEither, kRepeat, kAssertion, kLook };
  Kind kind = Kind::kSequence;
  CodePoints set = {};
  std::vector<uint32_t> parts = {};
  uint32_t min = 0, max = kNone;  // kRepeat
  char assertion = 0;             // ^ $ b B
  bool negated = false;           // kLook
};

class PatternParser : private Scanner {
 public:
  explicit PatternParser(std::string_view pattern) : Scanner(pattern) {}

  // The last node is the whole pattern.
  std::vector<Node> Parse() {
    Alternatives(0);
    if (at_ < text_.size()) Fail("a ')' without its '('");
    return std::move(nodes_);
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error("pattern, byte ", at_, ": ", what);
  }
  uint32_t Add(Node node) {
    if (nodes_.size() == kMaxNodes) Fail("the pattern is too long");
    nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(nodes_.size() - 1);
  }

  uint32_t Alternatives(size_t depth) {
    Node either{.kind = Node::Kind::kEither};
    do {
      Node sequence;
      while (!AtEnd() && Peek() != '|' && Peek() != ')')
        sequence.parts.push_back(Times(Atom(depth)));
      either.parts.push_back(Add(std::move(sequence)));
    } while (Take("|"));
    return Add(std::move(either));
  }

  // Whether a { begins a repetition; otherwise it is a character.
  bool AtTimes() const {
    const size_t end = text_.find('}', at_);
    if (Peek() != '{' || end == text_.npos || Peek(1) < '0' || Peek(1) > '9') return false;
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    return inside.find_first_not_of("0123456789,") == inside.npos &&
           inside.find(',') == inside.rfind(',');
  }

  uint32_t Times(uint32_t part) {
    uint32_t min = 0, max = kNone;
    if (Take("?")) {
      max = 1;
    } else if (Take("+")) {
      min = 1;
    } else if (AtTimes()) {
      ++at_;
      min = max = Number();
      if (Take(",")) max = Peek() == '}' ? kNone : Number();
      if (!Take("}")) Fail("expected '}'");
      if (max < min) Fail("a repetition whose minimum is above its maximum");
    } else if (!Take("*")) {
      return part;
    }
    Take("?");
    if (Peek() == '*' || Peek() == '+' || Peek() == '?' || AtTimes()) Fail("a second repetition");
    return Add({.kind = Node::Kind::kRepeat, .parts = {part}, .min = min, .max = max});
  }

  uint32_t Number() {
    if (!AtDigit()) Fail("expected a number");
    const auto number = TakeNumber();
    if (!number) Fail("too many repetitions");
    return *number;
  }

  uint32_t Atom(size_t depth) {
    switch (Peek()) {
      case '(': {
        if (depth == kMaxNested) Fail("groups are nested too deep");
        ++at_;
        Node look{.kind = Node::Kind::kLook};
        bool looks = false;
        if (Take("?=") || Take("?!")) {
          looks = true;
          look.negated = text_[at_ - 1] == '!';
        } else if (Take("?<")) {
          if (Peek() == '=' || Peek() == '!') Fail("lookbehind is not supported");
          const size_t end = text_.find('>', at_);
          if (end == text_.npos) Fail("a name of a group without its '>'");
          at_ = end + 1;
        } else if (!Take("?:") && Peek() == '?') {
          Fail("groups with (? are not supported, but for (?: (?= (?! (?<name>");
        }
        const uint32_t group = Alternatives(depth + 1);
        if (!Take(")")) Fail("a '(' without its ')'");
        if (!looks) return group;
        look.parts = {group};
        return Add(std::move(look));
      }
      case '^':
      case '$':
        return Add({.kind = Node::Kind::kAssertion, .assertion = text_[at_++]});
      case '?':
      case '*':
      case '+':
        Fail("a repetition of nothing");
      case '{':
        if (AtTimes()) Fail("a repetition of nothing");
        return Set(One());
      case '[':
        return Set(Class());
      case '.':
        ++at_;
        return Set(AnyButLineEnds());
      case '\\':
        if (Peek(1) != 'b' && Peek(1) != 'B') return Set(One());
        at_ += 2;
        return Add({.kind = Node::Kind::kAssertion, .assertion = text_[at_ - 1]});
      default:
        return Set(One());
    }
  }
  uint32_t Set(CodePoints set) { return Add({.kind = Node::Kind::kSet, .set = std::move(set)}); }

  CodePoints Class() {
    ++at_;
    const bool negated = Take("^");
    CodePoints set;
    const auto is_one = [](const CodePoints& s) {
      return s.size() == 1 && s[0].first == s[0].second;
    };
    while (!Take("]")) {
      if (AtEnd()) Fail("a '[' without its ']'");
      const CodePoints low = InClass();
      if (Peek() == '-' && Peek(1) != ']' && at_ + 1 < text_.size()) {
        ++at_;
        const CodePoints high = InClass();
        if (is_one(low) && is_one(high)) {
          if (high[0].first < low[0].first) Fail("a range in a class");
          set.emplace_back(low[0].first, high[0].first);
          continue;
        }
        set.emplace_back('-', '-');  // beside a set it is a character
        set.insert(set.end(), high.begin(), high.end());
      }
      set.insert(set.end(), low.begin(), low.end());
    }
    set = Normal(std::move(set));
    return negated ? Complement(set) : set;
  }
  CodePoints InClass() {
    if (Peek() == '\\' && Peek(1) == 'b') {
      at_ += 2;
      return {{'\b', '\b'}};
    }
    return One();
  }

  // A character, or the class of an escape.
  CodePoints One() {
    if (Peek() == '\\') return Escape();
    const auto c = TakeCharacter();
    if (!c) Fail("bytes that are not UTF-8");
    return {{*c, *c}};
  }

  CodePoints Escape() {
    ++at_;
    const char c = Peek();
    const size_t begin = at_;
    if (!AtEnd()) ++at_;
    const auto one = [](CodePoint code) { return CodePoints{{code, code}}; };
    constexpr std::string_view kControls = "nrtfv", kMeaning = "\n\r\t\f\v";
    const size_t control = kControls.find(c);
    if (control != std::string_view::npos) return one(static_cast<CodePoint>(kMeaning[control]));
    if (c == 'd' || c == 'D') return c == 'd' ? Digit() : Complement(Digit());
    if (c == 'w' || c == 'W') return c == 'w' ? Word() : Complement(Word());
    if (c == 's' || c == 'S') return c == 's' ? WhiteSpace() : Complement(WhiteSpace());
    if (c == '0' && !AtDigit()) return one(0);
    if (c == 'u' && Take("{")) {
      const size_t end = text_.find('}', at_);
      if (end == text_.npos || end - at_ > 6 || end == at_) Fail("an escape of a character");
      const CodePoint code = Hex(end - at_);
      ++at_;
      return one(code);
    }
    if (c == 'x' || c == 'u') return one(Hex(c == 'x' ? 2 : 4));
    const bool is_word = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (c > ' ' && !is_word && static_cast<unsigned char>(c) < 0x7F)
      return one(static_cast<CodePoint>(c));
    if (c == ' ') return one(' ');
    at_ = begin;
    Fail("this escape is not supported");
  }

  CodePoint Hex(size_t n_digits) {
    const auto code = TakeHex(n_digits);
    if (!code) Fail("an escape of too few digits");
    if (*code >= 0xD800 && *code <= 0xDFFF) Fail("an escape for half a character");
    return *code;
  }

  std::vector<Node> nodes_;
};

// A nondeterministic automaton (Thompson 1968), built from its end, and its determinisation.
class Automaton {
 public:
  Automaton(const std::vector<Node>& nodes, Budget& budget) : nodes_(nodes), budget_(budget) {
    // Any text after the pattern.
    end_ = New();
    states_[end_].accepts = true;
    states_[end_].edges = {{0, 0xD7FF, end_}, {0xE000, kMaxCodePoint, end_}};
    for (const Node& node : nodes) {
      has_words_ |= node.assertion == 'b' || node.assertion == 'B';
    }
  }

  // Any text may precede the pattern, too.
  Dfa Strings() {
    const uint32_t pattern = Build(static_cast<uint32_t>(nodes_.size() - 1), end_, false, true);
    const uint32_t start = New();
    states_[start].edges = {{0, 0xD7FF, start}, {0xE000, kMaxCodePoint, start}};
    states_[start].empty.emplace_back(0, pattern);
    return Determine(start, true);
  }

 private:
  struct State {
    std::vector<Dfa::Edge> edges;
    std::vector<std::pair<char, uint32_t>> empty;  // without a character, if the assertion holds
    bool accepts = false;
  };
  enum Side : uint8_t { kNoChar, kOther, kWord };  // the character before or after a position

  uint32_t New() {
    budget_.Charge(10);
    if (states_.size() == kMaxNodes) throw Error("pattern: too many repetitions");
    states_.emplace_back();
    return static_cast<uint32_t>(states_.size() - 1);
  }

  uint32_t Build(uint32_t id, uint32_t next, bool in_loop, bool at_start) {
    const Node& node = nodes_[id];
    switch (node.kind) {
      case Node::Kind::kSet: {
        const uint32_t s = New();
        for (const auto& [low, high] : node.set) states_[s].edges.push_back({low, high, next});
        return s;
      }
      case Node::Kind::kSequence: {
        uint32_t s = next;
        for (size_t i = node.parts.size(); i-- > 0;) {
          bool is_first = at_start;
          for (size_t j = 0; j < i; ++j) {
            const Node::Kind kind = nodes_[node.parts[j]].kind;
            is_first &= kind == Node::Kind::kAssertion || kind == Node::Kind::kLook;
          }
          s = Build(node.parts[i], s, in_loop, is_first);
        }
        return s;
      }
      case Node::Kind::kEither: {
        if (node.parts.size() == 1) return Build(node.parts[0], next, in_loop, at_start);
        const uint32_t s = New();
        for (const uint32_t part : node.parts) {
          const uint32_t way = Build(part, next, in_loop, at_start);
          states_[s].empty.emplace_back(0, way);
        }
        return s;
      }
      case Node::Kind::kRepeat: {
        const uint32_t part = node.parts[0];
        uint32_t s = next;
        if (node.max == kNone) {
          s = New();
          const uint32_t body = Build(part, s, true, false);
          states_[s].empty = {{0, body}, {0, next}};
        } else {
          for (uint32_t i = node.min; i < node.max; ++i) {
            const uint32_t body = Build(part, s, in_loop, at_start && node.max == 1);
            const uint32_t option = New();
            states_[option].empty = {{0, body}, {0, next}};
            s = option;
          }
        }
        for (uint32_t i = 0; i < node.min; ++i)
          s = Build(part, s, in_loop, at_start && i + 1 == node.min);
        return s;
      }
      case Node::Kind::kAssertion: {
        const uint32_t s = New();
        states_[s].empty.emplace_back(node.assertion, next);
        return s;
      }
      case Node::Kind::kLook:
        break;
    }
    if (in_loop) throw Error("pattern: (?= and (?! are not supported in what is repeated");
    const uint32_t look = Build(node.parts[0], end_, false, at_start);
    // The character before is known only at the start.
    if (!at_start && (LooksBack(look) || LooksBack(next)))
      throw Error("pattern: ^, \\b and \\B next to (?= and (?! are supported only at the start");
    const Dfa seen = Determine(look, at_start);
    const Dfa rest = Determine(next, at_start);
    const Dfa both = Combine(rest, node.negated ? AllBut(seen) : seen, Both::kAnd, budget_);
    const auto base = static_cast<uint32_t>(states_.size());
    for (const Dfa::State& state : both.states) {
      State& copy = states_[New()];
      copy.accepts = state.accepts;
      for (const Dfa::Edge& edge : state.edges)
        copy.edges.push_back({edge.low, edge.high, base + edge.to});
    }
    return both.empty() ? New() : base;
  }

  // Whether an assertion at the beginning of this part depends on the character before it.
  bool LooksBack(uint32_t start) const {
    std::set<uint32_t> reached = {start};
    std::vector<uint32_t> open = {start};
    while (!open.empty()) {
      const uint32_t s = open.back();
      open.pop_back();
      for (const auto& [assertion, to] : states_[s].empty) {
        if (assertion != 0 && assertion != '$') return true;
        if (reached.insert(to).second) open.push_back(to);
      }
    }
    return false;
  }

  static bool Holds(char assertion, Side before, Side after) {
    switch (assertion) {
      case '^':
        return before == kNoChar;
      case '$':
        return after == kNoChar;
      case 'b':
        return (before == kWord) != (after == kWord);
      case 'B':
        return (before == kWord) == (after == kWord);
      default:
        return true;
    }
  }

  // Adds the states reached without a character, as far as the sides are known.
  std::vector<uint32_t> Closure(std::vector<uint32_t> todo, bool only_plain, Side before,
                                Side after) {
    std::vector<uint32_t> all;
    ++n_visits_;
    visits_.resize(states_.size());
    while (!todo.empty()) {
      const uint32_t s = todo.back();
      todo.pop_back();
      if (std::exchange(visits_[s], n_visits_) == n_visits_) continue;
      const State& state = states_[s];
      bool is_needed = !state.edges.empty() || state.accepts;
      for (const auto& [assertion, to] : state.empty) {
        if (assertion == 0 || (!only_plain && Holds(assertion, before, after))) todo.push_back(to);
        is_needed |= assertion != 0;
      }
      if (is_needed) all.push_back(s);
    }
    budget_.Charge(all.size() + 1);
    // A match stays a match, whatever follows.
    if (only_plain && visits_[end_] == n_visits_) return {end_};
    std::sort(all.begin(), all.end());
    return all;
  }

  Dfa Determine(uint32_t start, bool at_start) {
    // Characters that no edge distinguishes are one class.
    std::vector<CodePoint> cuts = {0};
    for (const State& state : states_) {
      for (const Dfa::Edge& edge : state.edges) {
        cuts.push_back(edge.low);
        cuts.push_back(edge.high + 1);
      }
    }
    if (has_words_) {
      for (const auto& [low, high] : Word()) {
        cuts.push_back(low);
        cuts.push_back(high + 1);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (cuts.back() > kMaxCodePoint) cuts.pop_back();
    const auto class_of = [&](CodePoint c) {
      return static_cast<size_t>(std::upper_bound(cuts.begin(), cuts.end(), c) - cuts.begin()) - 1;
    };
    const auto side_of = [&](size_t c) {
      const auto has = [&](const auto& range) {
        return range.first <= cuts[c] && cuts[c] <= range.second;
      };
      return has_words_ && std::ranges::any_of(Word(), has) ? kWord : kOther;
    };
    std::vector<Side> sides;
    for (size_t c = 0; c < cuts.size(); ++c) sides.push_back(side_of(c));
    std::map<std::pair<Side, std::vector<uint32_t>>, uint32_t> numbers;
    std::vector<std::pair<Side, std::vector<uint32_t>>> sets;
    const auto number = [&](Side side, std::vector<uint32_t> from) {
      std::pair<Side, std::vector<uint32_t>> set = {side,
                                                    Closure(std::move(from), true, side, side)};
      budget_.Charge(4 * set.second.size());  // comparing
      const auto [found, is_new] = numbers.try_emplace(set, sets.size());
      if (is_new) {
        budget_.Charge(100 + 8 * set.second.size());  // the states' memory
        sets.push_back(std::move(set));
      }
      return found->second;
    };
    Dfa dfa;
    number(at_start ? kNoChar : kOther, {start});
    std::vector<std::vector<uint32_t>> to(cuts.size());
    for (size_t i = 0; i < sets.size(); ++i) {
      const auto [before, core] = sets[i];
      Dfa::State state;
      for (const uint32_t s : Closure(core, false, before, kNoChar))
        state.accepts |= states_[s].accepts;
      for (std::vector<uint32_t>& targets : to) targets.clear();
      for (const Side after : {kOther, kWord}) {
        if (after == kWord && !has_words_) continue;
        for (const uint32_t s : Closure(core, false, before, after)) {
          for (const Dfa::Edge& edge : states_[s].edges) {
            const size_t first = class_of(edge.low), last = class_of(edge.high);
            budget_.Charge(last - first + 1);
            for (size_t c = first; c <= last; ++c) {
              if (sides[c] == after) to[c].push_back(edge.to);
            }
          }
        }
      }
      for (size_t c = 0; c < cuts.size(); ++c) {
        if (to[c].empty() || cuts[c] == 0xD800) continue;
        std::sort(to[c].begin(), to[c].end());
        to[c].erase(std::unique(to[c].begin(), to[c].end()), to[c].end());
        const CodePoint high = c + 1 < cuts.size() ? cuts[c + 1] - 1 : kMaxCodePoint;
        const uint32_t target = number(sides[c], to[c]);
        std::vector<Dfa::Edge>& edges = state.edges;
        if (!edges.empty() && edges.back().to == target && edges.back().high + 1 == cuts[c]) {
          edges.back().high = high;
        } else {
          edges.push_back({cuts[c], high, target});
        }
      }
      dfa.states.push_back(std::move(state));
    }
    return Minimal(dfa, budget_);
  }

  const std::vector<Node>& nodes_;
  Budget& budget_;
  std::vector<State> states_;
  uint32_t end_ = 0;
  bool has_words_ = false;
  std::vector<uint32_t> visits_;  // [state]: the last visit
  uint32_t n_visits_ = 0;
};

}  // namespace

Dfa PatternStrings(std::string_view pattern, Budget& budget) {
  const std::vector<Node> nodes = PatternParser(pattern).Parse();
  return Automaton(nodes, budget).Strings();
}

}  // namespace grammar
