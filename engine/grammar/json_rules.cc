#include "engine/grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "engine/grammar/gbnf.h"

namespace engine::grammar {
namespace {

constexpr std::string_view kRules = R"(
ws      ::= | " " | "\n" [ \t]{0,20}
value   ::= object | array | string | number | boolean | null
object  ::= "{" ws (member ("," ws member)* ws)? "}"
member  ::= string ":" ws value
array   ::= "[" ws (value ("," ws value)* ws)? "]"
string  ::= "\"" char* "\""
char    ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" unit)
# No half of a surrogate pair stands alone.
unit    ::= [0-9a-cefA-CEF] hex{3} | [dD] ([0-7] hex{2} | [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2})
hex     ::= [0-9a-fA-F]
number  ::= "-"? whole ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?
integer ::= "0" | "-"? [1-9] [0-9]{0,15}
whole   ::= "0" | [1-9] [0-9]{0,15}
boolean ::= "true" | "false"
null    ::= "null"

# RFC 3339, without leap seconds. The 29th of February is there in leap years only.
day       ::= [0-9]{4} "-" (month31 "-" ("0" [1-9] | [12] [0-9] | "3" [01]) |
                            month30 "-" ("0" [1-9] | [12] [0-9] | "30") |
                            "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8])) |
              leap "-02-29"
leap      ::= [0-9]{2} ("0" [48] | [2468] [048] | [13579] [26]) | ([02468] [048] | [13579] [26]) "00"
month31   ::= "01" | "03" | "05" | "07" | "08" | "10" | "12"
month30   ::= "04" | "06" | "09" | "11"
clock     ::= hour ":" minute ":" minute ("." [0-9]{1,9})? ("Z" | [+-] hour ":" minute)
hour      ::= [01] [0-9] | "2" [0-3]
minute    ::= [0-5] [0-9]
date      ::= "\"" day "\""
time      ::= "\"" clock "\""
date-time ::= "\"" day "T" clock "\""
uuid      ::= "\"" hex{8} "-" hex{4} "-" hex{4} "-" hex{4} "-" hex{12} "\""
)";

// What a string may hold as it is.
const CodePoints& Raw() {
  static const CodePoints raw =
      Complement(Normal({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}));
  return raw;
}

bool Contains(const CodePoints& set, CodePoint c) {
  return std::ranges::any_of(set, [&](const auto& r) { return r.first <= c && c <= r.second; });
}

CodePoints Intersection(const CodePoints& a, const CodePoints& b) {
  CodePoints outside = Complement(a);
  const CodePoints more = Complement(b);
  outside.insert(outside.end(), more.begin(), more.end());
  return Complement(Normal(std::move(outside)));
}

std::vector<CodePoint> Characters(std::string_view text) {
  std::vector<CodePoint> all;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at++]);
    CodePoint c = first < 0x80   ? first
                  : first < 0xE0 ? first & 0x1F
                  : first < 0xF0 ? first & 0xF
                                 : first & 7;
    for (; at < text.size() && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; ++at) {
      c = c << 6 | (static_cast<uint8_t>(text[at]) & 0x3F);
    }
    all.push_back(c);
  }
  return all;
}

Part Digits(Builder& builder, uint32_t least, uint32_t most) {
  return builder.Repeat(builder.Characters({{'0', '9'}}), least, most);
}

// Numbers from low to high, which have as many digits.
Part SameLength(Builder& builder, const std::string& low, const std::string& high) {
  const auto n = static_cast<uint32_t>(low.size());
  if (low == std::string(n, '0') && high == std::string(n, '9')) return Digits(builder, n, n);
  const auto digits = [&](char from, char to) {
    return builder.Characters({{static_cast<CodePoint>(from), static_cast<CodePoint>(to)}});
  };
  const std::string low_rest = low.substr(1), high_rest = high.substr(1);
  if (low[0] == high[0]) {
    return builder.Then(digits(low[0], low[0]), SameLength(builder, low_rest, high_rest));
  }
  std::vector<Part> ways;
  ways.push_back(
      builder.Then(digits(low[0], low[0]), SameLength(builder, low_rest, std::string(n - 1, '9'))));
  if (low[0] + 1 < high[0]) {
    ways.push_back(
        builder.Then(digits(static_cast<char>(low[0] + 1), static_cast<char>(high[0] - 1)),
                     Digits(builder, n - 1, n - 1)));
  }
  ways.push_back(builder.Then(digits(high[0], high[0]),
                              SameLength(builder, std::string(n - 1, '0'), high_rest)));
  return builder.Either(ways);
}

// Whole numbers from low to high without leading zeros.
Part Whole(Builder& builder, uint64_t low, uint64_t high) {
  std::vector<Part> ways;
  for (;;) {
    const std::string from = std::to_string(low);
    const std::string longest(from.size(), '9');
    const std::string to = std::to_string(high);
    ways.push_back(SameLength(builder, from, to.size() > from.size() ? longest : to));
    if (to.size() == from.size()) return builder.Either(ways);
    low = 1;
    for (size_t i = 0; i < from.size(); ++i) low *= 10;
  }
}

constexpr int64_t kLargest = 9'999'999'999'999'999;  // where there is no bound
// Above this, numbers with bounds have no digits behind the point: a double would round them.
constexpr int64_t kLargestFraction = 999'999'999;

// Bounds as whole numbers that are in; mirrored for what stands behind a minus.
struct Side {
  int64_t low, high;
};

std::optional<Side> SideOf(const NumberBounds& bounds, bool negative) {
  const auto most = [](int64_t bound) { return std::max(bound, kLargest); };
  int64_t low = bounds.min.value_or(-most(bounds.max ? -*bounds.max : 0));
  int64_t high = bounds.max.value_or(most(bounds.min.value_or(0)));
  if (negative) {
    low = std::exchange(high, -low);
    low = -low;
  }
  low = std::max<int64_t>(low, 0);
  if (low > high) return std::nullopt;
  return Side{low, high};
}

}  // namespace

JsonRules::JsonRules(Builder& builder) : builder_(builder), find_(AddGbnf(kRules, builder)) {}

bool JsonRules::HasFormat(std::string_view name) const {
  constexpr std::array<std::string_view, 4> kFormats = {"date", "time", "date-time", "uuid"};
  return std::ranges::find(kFormats, name) != kFormats.end();
}

Part JsonRules::String(uint32_t least, uint32_t most) {
  const Part body = builder_.Repeat(Call("char"), least, most);
  return builder_.Then(builder_.Then(builder_.Literal("\""), body), builder_.Literal("\""));
}

std::optional<Part> JsonRules::Character(const CodePoints& set) {
  constexpr auto kEscapes = std::to_array<std::pair<CodePoint, const char*>>({
      {'"', "\\\""},
      {'\\', "\\\\"},
      {'\b', "\\b"},
      {'\f', "\\f"},
      {'\n', "\\n"},
      {'\r', "\\r"},
      {'\t', "\\t"},
  });
  std::vector<Part> ways;
  const CodePoints raw = Intersection(set, Raw());
  if (!raw.empty()) ways.push_back(builder_.Characters(raw));
  for (const auto& [c, escape] : kEscapes) {
    if (Contains(set, c)) ways.push_back(builder_.Literal(escape));
  }
  if (ways.empty()) return std::nullopt;
  return builder_.Either(ways);
}

// A tree of the names; as long as the key goes along with one of them it has no escapes, which
// could spell the same name otherwise.
Part JsonRules::KeyBut(const std::vector<std::string>& names) {
  struct Node {
    std::map<CodePoint, size_t> next;
    bool is_name = false;
  };
  std::vector<Node> nodes(1);
  for (const std::string& name : names) {
    size_t at = 0;
    bool is_raw = true;
    for (const CodePoint c : Characters(name)) {
      is_raw = is_raw && Contains(Raw(), c);
      if (!is_raw) break;  // no key without escapes is this name
      const auto [next, is_new] = nodes[at].next.try_emplace(c, nodes.size());
      at = next->second;
      if (is_new) nodes.emplace_back();
    }
    if (is_raw) nodes[at].is_name = true;
  }
  std::vector<StateId> forks;
  for (size_t i = 0; i < nodes.size(); ++i) forks.push_back(builder_.Fork());
  const Part tail = builder_.Repeat(Call("char"), 0, kNone);
  const StateId end = builder_.Fork();
  builder_.Link(tail.end, end);
  for (size_t i = 0; i < nodes.size(); ++i) {
    CodePoints known;
    for (const auto& [c, next] : nodes[i].next) {
      const Part step = builder_.Characters({{c, c}});
      builder_.Link(forks[i], step.start);
      builder_.Link(step.end, forks[next]);
      known.emplace_back(c, c);
    }
    const Part other =
        builder_.Characters(Intersection(Raw(), Complement(Normal(std::move(known)))));
    builder_.Link(forks[i], other.start);
    builder_.Link(other.end, tail.start);
    if (!nodes[i].is_name) builder_.Link(forks[i], end);
  }
  const Part open = builder_.Literal("\"");
  builder_.Link(open.end, forks[0]);
  return builder_.Then({open.start, end}, builder_.Literal("\""));
}

std::optional<Part> JsonRules::Integer(const NumberBounds& bounds) {
  if (!bounds.min && !bounds.max) return Call("integer");
  std::vector<Part> ways;
  NumberBounds inside = bounds;
  if (inside.min && inside.above_min) ++*inside.min;
  if (inside.max && inside.below_max) --*inside.max;
  if (const auto side = SideOf(inside, /*negative=*/false)) {
    ways.push_back(
        Whole(builder_, static_cast<uint64_t>(side->low), static_cast<uint64_t>(side->high)));
  }
  const auto side = SideOf(inside, /*negative=*/true);
  if (side && side->high > 0) {
    const int64_t low = std::max<int64_t>(side->low, 1);
    ways.push_back(builder_.Then(builder_.Literal("-"), Whole(builder_, static_cast<uint64_t>(low),
                                                              static_cast<uint64_t>(side->high))));
  }
  if (ways.empty()) return std::nullopt;
  return builder_.Either(ways);
}

// Numbers with a point, on one side of zero: I.F lies between I and I + 1.
void JsonRules::AddNumbers(const NumberBounds& bounds, bool negative, std::vector<Part>& ways) {
  const auto side = SideOf(bounds, negative);
  if (!side || (negative && side->high == 0)) return;
  const bool has_low = side->low > 0 || (negative ? bounds.max == 0 : bounds.min == 0);
  const bool above_low = has_low && (negative ? bounds.below_max : bounds.above_min);
  const bool below_high = negative ? bounds.above_min : bounds.below_max;
  const int64_t low = side->low, high = std::min(side->high, kLargestFraction);
  const auto add = [&](int64_t from, int64_t to, Part fraction) {
    const Part whole = Whole(builder_, static_cast<uint64_t>(from), static_cast<uint64_t>(to));
    const Part part = builder_.Then(whole, builder_.Then(builder_.Literal("."), fraction));
    ways.push_back(negative ? builder_.Then(builder_.Literal("-"), part) : part);
  };
  if (low < high && above_low) {
    add(low, low, builder_.Then(Digits(builder_, 0, 5), builder_.Characters({{'1', '9'}})));
  } else if (low < high) {
    add(low, low, Digits(builder_, 1, 6));
  }
  if (low + 1 < high) add(low + 1, high - 1, Digits(builder_, 1, 6));
  if (low <= high && !(below_high && high == side->high) && !(above_low && low == high)) {
    add(high, high, builder_.Repeat(builder_.Characters({{'0', '0'}}), 1, 6));
  }
}

std::optional<Part> JsonRules::Number(const NumberBounds& bounds) {
  if (!bounds.min && !bounds.max) return Call("number");
  std::vector<Part> ways;
  if (const auto whole = Integer(bounds)) ways.push_back(*whole);
  AddNumbers(bounds, /*negative=*/false, ways);
  AddNumbers(bounds, /*negative=*/true, ways);
  if (ways.empty()) return std::nullopt;
  return builder_.Either(ways);
}

}  // namespace engine::grammar
