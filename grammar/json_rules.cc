#include "grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "gguf/utf8.h"
#include "grammar/gbnf.h"

namespace grammar {
namespace {

constexpr std::string_view kRules = R"(
ws      ::= | " " | "\n" [ \t]{0,20}
value   ::= object | array | string | number | boolean | null
object  ::= "{" ws (member ("," ws member)* ws)? "}"
member  ::= string ":" ws value
array   ::= "[" ws (value ("," ws value)* ws)? "]"
string  ::= "\"" char* "\""
char    ::= [^"\\\x00-\x1F\x7F] | "\\" (["\\/bfnrt] | "u" unit)
# A surrogate only as half of a pair.
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

# ISO 8601, as RFC 3339 has it.
duration ::= "\"P" (days ("T" hours)? | "T" hours | count "W") "\""
days     ::= count ("D" | "M" (count "D")? | "Y" (count "M" (count "D")?)?)
hours    ::= count ("H" (count "M" (count "S")?)? | "M" (count "S")? | "S")
count    ::= "0" | [1-9] [0-9]{0,5}

# The usual names and addresses only: no hyphens in a row, no quotes, nothing international.
name     ::= alnum{1,20} ("-" alnum{1,20}){0,2}
alnum    ::= [0-9A-Za-z]
domain   ::= name ("." name){0,2} "." [A-Za-z]{2,18}
hostname ::= "\"" (name | domain) "\""
email    ::= "\"" alnum{1,20} ([-._+] alnum{1,20}){0,2} "@" domain "\""
ipv4     ::= "\"" byte "." byte "." byte "." byte "\""
byte     ::= "0" | [1-9] [0-9]? | "1" [0-9]{2} | "2" ([0-4] [0-9] | "5" [0-5])
# At most one row of groups, of two or more, is left out.
ipv6     ::= "\"" (part{7} last | "::" (part{0,5} last)? |
             last "::" (part{0,4} last)? | part last "::" (part{0,3} last)? |
             part{2} last "::" (part{0,2} last)? | part{3} last "::" (part? last)? |
             part{4} last "::" last? | part{5} last "::") "\""
part     ::= last ":"
last     ::= hex{1,4}
uri      ::= "\"http" "s"? "://" (name | domain) (":" [1-9] [0-9]{0,3})? ("/" path?)? (
             ("?" query)? ("#" query)? "\"")
path     ::= (letter | [/:@]){1,200}
query    ::= (letter | [/:@?]){0,100}
letter   ::= [0-9A-Za-z._~!$&'()*+,;=-] | "%" hex{2}
)";

// Characters allowed unescaped in a string.
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

Part Digits(Builder& builder, uint32_t least, uint32_t most) {
  return builder.Repeat(builder.Characters({{'0', '9'}}), least, most);
}

// Numbers from low to high, both with the same number of digits.
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

constexpr int64_t kLargest = 9'999'999'999'999'999;  // if there is no bound

// A number and a bound with more digits could be the same double.
constexpr double kMaxFineBound = 999'999'999;
constexpr size_t kMaxFineDigits = 5;  // after the point

// Bounds of DIGITS in 0.DIGITS, themselves digits after the point (none: no bound; "": zero).
struct FractionBounds {
  std::optional<std::string> low, high;
  bool above_low = false, below_high = false;
};

// At most `most` digits, and at least one unless `may_end`; empty if no digits fit.
std::optional<Part> Fraction(Builder& builder, FractionBounds bounds, uint32_t most, bool may_end) {
  if (bounds.low == "" && !bounds.above_low) bounds.low.reset();
  if (!bounds.low && !bounds.high) return Digits(builder, may_end ? 0 : 1, most);
  std::vector<Part> ways;
  if (may_end && !bounds.low && (bounds.high != "" || !bounds.below_high)) {
    ways.push_back(builder.Empty());
  }
  const auto first = [](const std::string& digits) { return digits.empty() ? '0' : digits[0]; };
  const char low = bounds.low ? first(*bounds.low) : '0' - 1;
  const char high = bounds.high ? first(*bounds.high) : '9' + 1;
  if (most > 0 && low + 1 < high) {  // after this digit no bound applies
    const Part digit =
        builder.Characters({{static_cast<CodePoint>(low + 1), static_cast<CodePoint>(high - 1)}});
    ways.push_back(builder.Then(digit, Digits(builder, 0, most - 1)));
  }
  for (const char digit : {low, high}) {
    if (most == 0 || digit < '0' || digit > '9' || digit < low || digit > high) continue;
    FractionBounds rest = bounds;
    const auto after = [](const std::string& d) { return d.substr(std::min<size_t>(d.size(), 1)); };
    if (rest.low) rest.low = digit == low ? std::optional(after(*rest.low)) : std::nullopt;
    if (rest.high) rest.high = digit == high ? std::optional(after(*rest.high)) : std::nullopt;
    if (const auto part = Fraction(builder, rest, most - 1, /*may_end=*/true)) {
      const auto c = static_cast<CodePoint>(digit);
      ways.push_back(builder.Then(builder.Characters({{c, c}}), *part));
    }
    if (low == high) break;
  }
  if (ways.empty()) return std::nullopt;
  return builder.Either(ways);
}

// The digits of a bound >= 0: before and after the point.
struct Decimal {
  uint64_t whole;
  std::string fraction;
};

Decimal ToDecimal(double value) {
  std::array<char, 400> text{};
  const char* const end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
  const std::string digits(text.data(), static_cast<size_t>(end - text.data()));
  const size_t point = digits.find('.');
  return {static_cast<uint64_t>(value), point == std::string::npos ? "" : digits.substr(point + 1)};
}

}  // namespace

bool IsFine(double bound) {
  const double size = std::abs(bound);
  if (size > kMaxBound) return false;
  return std::floor(size) == size ||
         (size < kMaxFineBound && ToDecimal(size).fraction.size() <= kMaxFineDigits);
}

JsonRules::JsonRules(Builder& builder) : builder_(builder), find_(AddGbnf(kRules, builder)) {}

std::optional<Lengths> JsonRules::LengthsOf(std::string_view format) {
  constexpr auto kFormats = std::to_array<std::pair<std::string_view, Lengths>>({
      {"date", {10, 10}},
      {"time", {9, 24}},
      {"date-time", {20, 35}},
      {"duration", {3, 44}},
      {"uuid", {36, 36}},
      {"email", {6, 270}},
      {"hostname", {1, 207}},
      {"ipv4", {7, 15}},
      {"ipv6", {2, 39}},
      {"uri", {8, 1423}},
  });
  const auto* const found =
      std::ranges::find(kFormats, format, &std::pair<std::string_view, Lengths>::first);
  return found == kFormats.end() ? std::nullopt : std::optional(found->second);
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

// A trie of the names. A key that could still become one of them has no escapes, which could spell
// that name differently.
Part JsonRules::KeyBut(const std::vector<std::string>& names) {
  struct Node {
    std::map<CodePoint, size_t> next;
    bool is_name = false;
  };
  std::vector<Node> nodes(1);
  for (const std::string& name : names) {
    size_t at = 0;
    bool is_raw = true;
    for (const auto& [c, bytes] : gguf::Characters(name)) {
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
  const auto bound = [](double value, double step, bool leaves_out) {
    const double whole = step > 0 ? std::ceil(value) : std::floor(value);
    return static_cast<int64_t>(leaves_out && whole == value ? whole + step : whole);
  };
  const int64_t low = bounds.min ? bound(*bounds.min, 1, bounds.above_min) : -kLargest;
  const int64_t high = bounds.max ? bound(*bounds.max, -1, bounds.below_max) : kLargest;
  std::vector<Part> ways;
  const auto add = [&](std::string_view sign, int64_t from, int64_t to) {
    if (from > to) return;
    ways.push_back(
        builder_.Then(builder_.Literal(sign),
                      Whole(builder_, static_cast<uint64_t>(from), static_cast<uint64_t>(to))));
  };
  add("", std::max<int64_t>(low, 0), high);
  add("-", std::max<int64_t>(-high, 1), -low);
  if (ways.empty()) return std::nullopt;
  return builder_.Either(ways);
}

// Numbers with a point, on one side of zero. Above kMaxFineBound, bounded numbers have no digits
// after the point: a double would round them.
void JsonRules::AddFractions(const NumberBounds& bounds, bool negative, std::vector<Part>& ways) {
  constexpr auto kTop = static_cast<uint64_t>(kMaxFineBound);
  const auto mirrored = [&](const std::optional<double>& bound) {
    return bound && negative ? std::optional(-*bound) : bound;
  };
  std::optional<double> least = mirrored(negative ? bounds.max : bounds.min);
  const std::optional<double> most = mirrored(negative ? bounds.min : bounds.max);
  bool above_low = negative ? bounds.below_max : bounds.above_min;
  const bool below_high = negative ? bounds.above_min : bounds.below_max;
  if (most && (negative ? *most <= 0 : *most < 0)) return;
  if (!least || *least < 0) least = 0, above_low = false;
  const Decimal low = ToDecimal(*least),
                high = ToDecimal(std::min(most.value_or(kMaxBound), kMaxBound));
  const bool has_high = most && high.whole <= kTop;
  const uint64_t last = std::min(high.whole, kTop);
  const auto add = [&](uint64_t from, uint64_t to, bool is_low, bool is_high) {
    if (from > to) return;
    FractionBounds inside;
    inside.above_low = above_low;
    inside.below_high = below_high;
    if (is_low) inside.low = low.fraction;
    if (is_high && has_high) inside.high = high.fraction;
    const auto fraction = Fraction(builder_, inside, kMaxFineDigits + 1, /*may_end=*/false);
    if (!fraction) return;
    const Part whole = builder_.Then(Whole(builder_, from, to), builder_.Literal("."));
    ways.push_back(
        builder_.Then(builder_.Literal(negative ? "-" : ""), builder_.Then(whole, *fraction)));
  };
  if (low.whole == last) return add(last, last, true, true);
  if (low.whole > last) return;
  add(low.whole, low.whole, true, false);
  add(low.whole + 1, last - 1, false, false);
  add(last, last, false, true);
}

std::optional<Part> JsonRules::Number(const NumberBounds& bounds) {
  if (!bounds.min && !bounds.max) return Call("number");
  std::vector<Part> ways;
  if (const auto whole = Integer(bounds)) ways.push_back(*whole);
  AddFractions(bounds, /*negative=*/false, ways);
  AddFractions(bounds, /*negative=*/true, ways);
  if (ways.empty()) return std::nullopt;
  return builder_.Either(ways);
}

}  // namespace grammar
