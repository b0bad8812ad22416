#include "grammar/pattern.h"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "gguf/json.h"
#include "grammar/matcher.h"
#include "grammar/scanner.h"

namespace grammar {
namespace {

constexpr size_t kMaxNested = 50;  // groups

const CodePoints& Digit() {
  static const CodePoints set = {{'0', '9'}};
  return set;
}
const CodePoints& Word() {
  static const CodePoints set = Normal({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
  return set;
}
// White space and line ends of ECMA-262.
const CodePoints& Space() {
  constexpr CodePoint kAlone[] = {0x20, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF};
  static const CodePoints set = [&] {
    CodePoints all = {{0x9, 0xD}, {0x2000, 0x200A}, {0x2028, 0x2029}};
    for (const CodePoint c : kAlone) all.emplace_back(c, c);
    return Normal(std::move(all));
  }();
  return set;
}
const CodePoints& AnyButLineEnds() {
  static const CodePoints set = Complement(Normal({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
  return set;
}

class PatternParser : private Scanner {
 public:
  PatternParser(std::string_view pattern, Builder& builder, JsonRules& json)
      : Scanner(pattern), builder_(builder), json_(json) {}

  Part Parse() {
    const Part all = Alternatives(0);
    if (at_ < text_.size()) Fail("a ')' without its '('");
    return builder_.Then(builder_.Then(builder_.Literal("\""), all), builder_.Literal("\""));
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw Error("pattern, byte ", at_, ": ", what);
  }
  Part Anything() { return builder_.Repeat(json_.Call("char"), 0, kNone); }

  Part Alternatives(size_t depth) {
    std::vector<Part> ways;
    do {
      // Without anchors the pattern may occur anywhere in the string.
      const bool from_start = depth > 0 || Take("^");
      Part all = from_start ? builder_.Empty() : Anything();
      bool to_end = depth > 0;
      while (!AtEnd() && Peek() != '|' && Peek() != ')') {
        const std::string_view rest = text_.substr(at_);
        if (depth == 0 && rest[0] == '$' && (rest.size() == 1 || rest[1] == '|')) {
          ++at_;
          to_end = true;
          break;
        }
        all = builder_.Then(all, Times(Atom(depth)));
      }
      ways.push_back(to_end ? all : builder_.Then(all, Anything()));
    } while (Take("|"));
    return builder_.Either(ways);
  }

  Part Times(Part part) {
    uint32_t min = 0, max = kNone;
    if (Take("?")) {
      max = 1;
    } else if (Take("+")) {
      min = 1;
    } else if (Take("{")) {
      min = max = Number();
      if (Take(",")) max = Peek() == '}' ? kNone : Number();
      if (!Take("}")) Fail("expected '}'");
      if (max < min) Fail("a repetition of at least more than at most");
    } else if (!Take("*")) {
      return part;
    }
    Take("?");
    if (Peek() == '*' || Peek() == '+' || Peek() == '{') Fail("a second repetition");
    return builder_.Repeat(part, min, max);
  }

  uint32_t Number() {
    if (!AtDigit()) Fail("expected a number");
    const auto number = TakeNumber();
    if (!number) Fail("too many repetitions");
    return *number;
  }

  Part Atom(size_t depth) {
    switch (Peek()) {
      case '(': {
        if (depth == kMaxNested) Fail("groups are nested too deep");
        ++at_;
        if (!Take("?:") && Peek() == '?') Fail("groups with (? are not supported, but for (?:");
        const Part group = Alternatives(depth + 1);
        if (!Take(")")) Fail("a '(' without its ')'");
        return group;
      }
      case '^':
      case '$':
        Fail("^ and $ are only supported at the ends of the pattern");
      case '?':
      case '*':
      case '+':
      case '{':
        Fail("a repetition of nothing");
      case '[':
        return Character(Class());
      case '.':
        ++at_;
        return Character(AnyButLineEnds());
      default:
        return Character(One());
    }
  }

  Part Character(const CodePoints& set) {
    const std::optional<Part> part = json_.Character(set);
    if (!part) Fail("no string of JSON can hold this character");
    return *part;
  }

  CodePoints Class() {
    ++at_;
    const bool negated = Take("^");
    CodePoints set;
    while (!Take("]")) {
      if (AtEnd()) Fail("a '[' without its ']'");
      const CodePoints low = One();
      if (Peek() != '-' || Peek(1) == ']' || at_ + 1 == text_.size()) {
        set.insert(set.end(), low.begin(), low.end());
        continue;
      }
      ++at_;
      const CodePoints high = One();
      const auto is_one = [](const CodePoints& s) {
        return s.size() == 1 && s[0].first == s[0].second;
      };
      if (!is_one(low) || !is_one(high) || high[0].first < low[0].first) Fail("a range in a class");
      set.emplace_back(low[0].first, high[0].first);
    }
    set = Normal(std::move(set));
    return negated ? Complement(set) : set;
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
    if (c == 's' || c == 'S') return c == 's' ? Space() : Complement(Space());
    if (c == 'x' || c == 'u') return one(Hex(c == 'x' ? 2 : 4));
    constexpr std::string_view kPunctuation = "^$\\.*+?()[]{}|/-\"'&%#@!,;:=<>~_` ";
    if (c != '\0' && kPunctuation.find(c) != std::string_view::npos)
      return one(static_cast<CodePoint>(c));
    at_ = begin;
    Fail("this escape is not supported");
  }

  CodePoint Hex(size_t n_digits) {
    const auto code = TakeHex(n_digits);
    if (!code) Fail("an escape of too few digits");
    if (*code >= 0xD800 && *code <= 0xDFFF) Fail("an escape for half a character");
    return *code;
  }

  Builder& builder_;
  JsonRules& json_;
};

}  // namespace

Part PatternString(std::string_view pattern, Builder& builder, JsonRules& json) {
  return PatternParser(pattern, builder, json).Parse();
}

Grammar PatternStrings(std::string_view pattern) {
  Builder builder;
  JsonRules json(builder, /*free_space=*/false);
  const RuleId root = builder.Declare("");
  builder.Define(root, PatternString(pattern, builder, json));
  return std::move(builder).Finish(root);
}

bool FitsKey(const Grammar& strings, const std::string& name) {
  const std::string key = gguf::JsonQuoted(name);
  Matcher matcher(strings);
  return key.find("\\u") != std::string::npos ||
         matcher.MayEnd(matcher.Steps(matcher.Start(), key));
}

// Both are followed at once, through all texts that both have begun.
bool MayOverlap(const Grammar& a, const Grammar& b) {
  constexpr size_t kMaxPairs = 2000;
  Matcher in_a(a), in_b(b);
  std::set<std::pair<SetId, SetId>> seen = {{in_a.Start(), in_b.Start()}};
  std::vector<std::pair<SetId, SetId>> todo(seen.begin(), seen.end());
  while (!todo.empty()) {
    const auto [from_a, from_b] = todo.back();
    todo.pop_back();
    if ((in_a.MayEnd(from_a) && in_b.MayEnd(from_b)) || seen.size() > kMaxPairs) return true;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const SetId to_a = in_a.Step(from_a, static_cast<uint8_t>(byte));
      const SetId to_b = in_b.Step(from_b, static_cast<uint8_t>(byte));
      if (to_a == ItemSets::kNothing || to_b == ItemSets::kNothing) continue;
      if (seen.emplace(to_a, to_b).second) todo.emplace_back(to_a, to_b);
    }
  }
  return false;
}

}  // namespace grammar
