#include "grammar/json_rules.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "gguf/utf8.h"
#include "grammar/gbnf.h"

namespace grammar {
namespace {

constexpr std::string_view kCompact = R"(
ws  ::= ""
gap ::= " "
)";
constexpr std::string_view kFree = R"(
ws  ::= | " " | "\n" [ \t]{0,20}
gap ::= ws
)";
constexpr std::string_view kRules = R"(
value   ::= object | array | string | number | boolean | null
object  ::= "{" ws (member ("," gap member)* ws)? "}"
member  ::= string ":" gap value
array   ::= "[" ws (value ("," gap value)* ws)? "]"
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

constexpr int64_t kLargest = 9'999'999'999'999'999;  // if there is no bound
// With digits after the point: a double tells any two numbers of 15 digits apart.
constexpr int64_t kLargestFine = 999'999'999'999'999;
constexpr double kMaxFineBound = 1e9;
constexpr uint32_t kMaxDecimals = 6;
// A number and a bound with more digits could be the same double.
constexpr double kFinestBound = 1e5;

double PowerOfTen(uint32_t n) { return n == 0 ? 1 : 10 * PowerOfTen(n - 1); }

// A bound as the first or last unit inside it, a unit being 10^-decimals.
int64_t ToUnits(double bound, bool is_min, bool leaves_out, uint32_t decimals) {
  double units = bound;
  if (decimals > 0 && std::abs(bound) > kMaxFineBound) {
    const bool is_far = is_min == (bound > 0);  // nothing lies inside
    units = std::copysign(is_far ? 2e15 : kMaxFineBound * PowerOfTen(decimals), bound);
  } else if (decimals > 0) {
    // A quotient of whole numbers below 2^53 is rounded to no other whole number.
    units = std::round(bound * PowerOfTen(kMaxDecimals)) / PowerOfTen(kMaxDecimals - decimals);
  }
  const double whole = is_min ? std::ceil(units) : std::floor(units);
  return static_cast<int64_t>(leaves_out && whole == units ? whole + (is_min ? 1 : -1) : whole);
}

// Multiples of a number of units, digit by digit.
class Numerals {
 public:
  Numerals(Builder& builder, uint64_t step, uint32_t decimals)
      : builder_(builder), step_(step), decimals_(decimals) {}

  // Those from low to high without leading zeros; empty if there are none.
  std::optional<Part> Between(int64_t low, int64_t high) {
    if (low > high) return std::nullopt;
    const auto digits = [&](int64_t units) {
      const std::string text = std::to_string(units);
      return std::string(decimals_ + 1 - std::min<size_t>(text.size(), decimals_ + 1), '0') + text;
    };
    std::vector<std::optional<Part>> ways;
    const std::string last = digits(high);
    for (std::string from = digits(low); from.size() <= last.size();) {
      const std::string nines(from.size(), '9');
      ways.push_back(Digits(from, from.size() < last.size() ? nines : last, 0));
      from = '1' + std::string(from.size(), '0');
    }
    return builder_.AnyOf(ways);
  }

 private:
  // A digit and the rest, from low to high, after digits that are `before` modulo the step.
  std::optional<Part> Digits(const std::string& low, const std::string& high, uint64_t before) {
    const std::string zeros(low.size() - 1, '0'), nines(low.size() - 1, '9');
    const std::string low_rest = low.substr(1), high_rest = high.substr(1);
    std::vector<std::optional<Part>> ways;
    for (char digit = low[0]; digit <= high[0]; ++digit) {
      const std::string& from = digit == low[0] ? low_rest : zeros;
      const char first = digit;
      // Digits after which the same may follow.
      const bool is_free = from == zeros && (digit < high[0] || high_rest == nines);
      while (is_free && step_ == 1 && digit + (high_rest == nines ? 0 : 1) < high[0]) ++digit;
      const auto rest = Rest(from, digit == high[0] ? high_rest : nines,
                             (before * 10 + static_cast<uint64_t>(digit - '0')) % step_);
      const CodePoints digits = {{static_cast<CodePoint>(first), static_cast<CodePoint>(digit)}};
      if (rest) ways.push_back(builder_.Then(builder_.Characters(digits), *rest));
    }
    return builder_.AnyOf(ways);
  }

  // What may follow them, with the point; digits after it that are left out are zeros.
  std::optional<Part> Rest(const std::string& low, const std::string& high, uint64_t before) {
    const size_t n = low.size();
    const bool has_low = low != std::string(n, '0'), has_high = high != std::string(n, '9');
    uint64_t with_zeros = before, least_digits = 0;
    for (size_t i = 0; i < n; ++i) with_zeros = with_zeros * 10 % step_;
    for (uint64_t left = (step_ - with_zeros) % step_; left > 0; left /= 10) ++least_digits;
    if (least_digits > n) return std::nullopt;
    const bool is_free = n > 0 && !has_low && !has_high;
    if (const auto known = free_.find({n, with_zeros}); is_free && known != free_.end()) {
      return builder_.Call(known->second);
    }
    std::vector<std::optional<Part>> ways;
    if (n <= decimals_ && !has_low && with_zeros == 0) ways.push_back(builder_.Empty());
    if (const auto more = n > 0 ? Digits(low, high, before) : std::nullopt) {
      ways.push_back(n == decimals_ ? builder_.Then(builder_.Literal("."), *more) : *more);
    }
    if (!is_free || ways.empty()) return builder_.AnyOf(ways);
    const RuleId rule = free_[{n, with_zeros}] = builder_.Declare("");
    builder_.Define(rule, *builder_.AnyOf(ways));
    return builder_.Call(rule);
  }

  Builder& builder_;
  uint64_t step_;
  uint32_t decimals_;
  // The rules of any digits, by their number and what those before make with zeros.
  std::map<std::pair<size_t, uint64_t>, RuleId> free_;
};

}  // namespace

bool IsFine(double bound) {
  const double size = std::abs(bound);
  return size <= kMaxBound &&
         (std::floor(size) == size ||
          (size < kMaxFineBound && std::round(size * kFinestBound) / kFinestBound == size));
}

JsonRules::JsonRules(Builder& builder, bool free_space)
    : builder_(builder),
      rules_(AddGbnf(std::string(free_space ? kFree : kCompact).append(kRules), builder)) {}

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
  constexpr std::string_view kNames = "\"\\bfnrt", kMeaning = "\"\\\b\f\n\r\t";
  std::vector<std::optional<Part>> ways;
  const CodePoints raw = Intersection(set, Raw());
  if (!raw.empty()) ways.push_back(builder_.Characters(raw));
  for (size_t i = 0; i < kNames.size(); ++i) {
    const auto c = static_cast<CodePoint>(kMeaning[i]);
    if (Contains(set, c)) ways.push_back(builder_.Literal(std::string("\\") + kNames[i]));
  }
  return builder_.AnyOf(ways);
}

// A trie of the names. A key that could still become a name has no escapes, which could spell it.
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

std::optional<Part> JsonRules::Between(const NumberBounds& bounds, uint64_t step,
                                       uint32_t decimals) {
  const int64_t limit = decimals == 0 ? kLargest : kLargestFine;
  int64_t low = -limit, high = limit;
  if (bounds.min) low = std::max(low, ToUnits(*bounds.min, true, bounds.above_min, decimals));
  if (bounds.max) high = std::min(high, ToUnits(*bounds.max, false, bounds.below_max, decimals));
  Numerals numerals(builder_, step, decimals);
  std::vector<std::optional<Part>> ways = {numerals.Between(std::max<int64_t>(low, 0), high)};
  if (const auto part = numerals.Between(std::max<int64_t>(-high, 1), -low)) {
    ways.push_back(builder_.Then(builder_.Literal("-"), *part));
  }
  return builder_.AnyOf(ways);
}

std::optional<Part> JsonRules::Integer(const NumberBounds& bounds) {
  if (!bounds.min && !bounds.max && !bounds.step) return Call("integer");
  if (!bounds.step) return Between(bounds, 1, 0);
  // The whole multiples of 1.5 are those of 3.
  const auto one = static_cast<uint64_t>(PowerOfTen(bounds.step->decimals));
  return Between(bounds, bounds.step->units / std::gcd(bounds.step->units, one), 0);
}

std::optional<Part> JsonRules::Number(const NumberBounds& bounds) {
  if (bounds.step) return Between(bounds, bounds.step->units, bounds.step->decimals);
  if (!bounds.min && !bounds.max) return Call("number");
  return builder_.AnyOf({Between(bounds, 1, 0), Between(bounds, 1, kMaxDecimals)});
}

std::optional<Step> StepOf(double number) {
  for (uint32_t decimals = 0; decimals <= kMaxDecimals; ++decimals) {
    const double one = PowerOfTen(decimals), units = std::round(number * one);
    if (units >= 1 && units <= kMaxBound && units / one == number) {
      return Step{static_cast<uint64_t>(units), decimals};
    }
  }
  return std::nullopt;
}

}  // namespace grammar
