// Decimal numbers of any size, and sets of them as automata.
#include "grammar/numbers.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "grammar/pattern.h"

namespace grammar {
namespace {

constexpr size_t kMaxDigits = 400;
constexpr size_t kMaxWritten = 40;  // digits before the point
constexpr uint64_t kMaxStep = 20'000;
constexpr const char* kAnyFraction = "(\\.[0-9]+)?";

std::string Range(char low, char high) { return std::string("[") + low + "-" + high + "]"; }
std::string Digits(size_t n) { return "[0-9]{" + std::to_string(n) + "}"; }

enum class Order { kBelow, kAtMost, kAtLeast, kAbove };

// A pattern of the numbers without sign that have this order to a number, from the first digit
// that differs.
std::string Ordered(const Decimal& number, Order order) {
  const std::string& whole = number.whole;
  const std::string& fraction = number.fraction;
  const bool is_more = order == Order::kAtLeast || order == Order::kAbove;
  std::vector<std::string> ways;
  if (is_more) {
    ways.push_back("[1-9][0-9]{" + std::to_string(whole.size()) + ",}" + kAnyFraction);
  } else if (whole.size() > 1) {
    ways.push_back("(0|[1-9][0-9]{0," + std::to_string(whole.size() - 2) + "})" + kAnyFraction);
  }
  for (size_t k = 0; k < whole.size(); ++k) {
    const char d = whole[k], least = k == 0 && whole.size() > 1 ? '1' : '0';
    const std::string rest = Digits(whole.size() - k - 1) + kAnyFraction;
    if (is_more && d < '9') {
      ways.push_back(whole.substr(0, k) + Range(static_cast<char>(d + 1), '9') + rest);
    } else if (!is_more && d > least) {
      ways.push_back(whole.substr(0, k) + Range(least, static_cast<char>(d - 1)) + rest);
    }
  }
  std::vector<std::string> same;  // fractions, if the whole part is the same
  for (size_t k = 0; k < fraction.size(); ++k) {
    const char d = fraction[k];
    const std::string before = fraction.substr(0, k);
    if (is_more && d < '9')
      same.push_back(before + Range(static_cast<char>(d + 1), '9') + "[0-9]*");
    if (!is_more && d > '0')
      same.push_back(before + Range('0', static_cast<char>(d - 1)) + "[0-9]*");
    if (!is_more && k > 0) same.push_back(before);
  }
  if (order == Order::kAbove) same.push_back(fraction + "0*[1-9][0-9]*");
  if (order == Order::kAtLeast) same.push_back(fraction + "[0-9]*");
  if (order == Order::kAtMost) same.push_back(fraction.empty() ? "0+" : fraction + "0*");
  std::string point;
  for (const std::string& way : same) point += (point.empty() ? "(\\.(" : "|") + way;
  if (!point.empty()) point += "))";
  const bool may_lack =
      fraction.empty() ? order == Order::kAtLeast || order == Order::kAtMost : !is_more;
  if (!point.empty() && may_lack) point += "?";
  if (!point.empty()) ways.push_back(whole + point);
  std::string all;
  for (const std::string& way : ways) all += (all.empty() ? "" : "|") + way;
  return all.empty() ? "[^\\s\\S]" : "(" + all + ")";
}

std::string Within(const Bound& bound, bool is_min) {
  const std::string any = std::string("(0|[1-9][0-9]*)") + kAnyFraction;
  const bool is_zero = bound.at.IsZero(), is_negative = bound.at.negative;
  const bool toward_zero = is_min == is_negative;  // values of the bound's sign are nearer to 0
  const Order order = toward_zero ? (bound.is_exclusive ? Order::kBelow : Order::kAtMost)
                                  : (bound.is_exclusive ? Order::kAbove : Order::kAtLeast);
  if (is_zero) {
    const std::string beyond = Ordered({}, Order::kAbove), zero = "-?0(\\.0+)?";
    return "^(" + (is_min ? beyond : "-" + beyond) + (bound.is_exclusive ? "" : "|" + zero) + ")$";
  }
  const std::string same_sign = (is_negative ? "-" : "") + Ordered(bound.at, order);
  const std::string other_sign = is_negative ? any : "-" + any;
  return "^(" + same_sign + (toward_zero ? "|" + other_sign : "") + ")$";
}

// Spellings of multiples of a number: the value so far modulo the step, digit by digit.
Dfa Multiples(const Decimal& step, Budget& budget) {
  const std::string digits = step.whole + step.fraction;
  uint64_t units = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), units);
  const size_t n_decimals = step.fraction.size();
  if (error != std::errc() || units > kMaxStep / (n_decimals + 2)) {
    throw Error("multiples of a number of so many digits are not supported");
  }
  // State r + units * j: the remainder r after j digits that follow the point; then only zeros.
  Dfa dfa;
  const auto n = static_cast<uint32_t>(units);
  const auto zeros = static_cast<uint32_t>(units * (n_decimals + 2));
  for (uint32_t j = 0; j < n_decimals + 2; ++j) {  // 0: before the point
    for (uint32_t r = 0; r < n; ++r) {
      Dfa::State& state = dfa.states.emplace_back();
      const uint32_t after = j == 0 ? 0 : j - 1;  // digits after the point
      uint64_t all = r;
      for (size_t i = after; i < n_decimals; ++i) all = all * 10 % n;
      state.accepts = all == 0;
      if (j == 0 && r == 0) state.edges.push_back({'-', '-', 0});
      if (j == 0) state.edges.push_back({'.', '.', r + n});
      if (j == 0 || after < n_decimals) {
        for (uint32_t d = 0; d < 10; ++d) {
          const uint32_t to = (r * 10 + d) % n + n * (j == 0 ? 0 : j + 1);
          state.edges.push_back({'0' + d, '0' + d, to});
        }
      } else if (r == 0) {
        state.edges.push_back({'0', '0', zeros});
      }
    }
  }
  dfa.states.push_back({.accepts = true, .edges = {{'0', '0', zeros}}});
  return Minimal(dfa, budget);
}

}  // namespace

std::optional<Decimal> Decimal::Parse(std::string_view text) {
  Decimal number;
  if (text.starts_with('-')) {
    number.negative = true;
    text.remove_prefix(1);
  }
  const size_t e = text.find_first_of("eE");
  int exponent = 0;
  if (e != text.npos) {
    std::string_view digits = text.substr(e + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
    if (error != std::errc() || std::abs(exponent) > static_cast<int>(kMaxDigits))
      return std::nullopt;
    text = text.substr(0, e);
  }
  const size_t point = std::min(text.find('.'), text.size());
  std::string whole(text.substr(0, point));
  std::string fraction(text.substr(std::min(point + 1, text.size())));
  for (; exponent > 0; --exponent) {
    whole += fraction.empty() ? '0' : fraction[0];
    if (!fraction.empty()) fraction.erase(0, 1);
  }
  for (; exponent < 0; ++exponent) {
    fraction.insert(0, 1, whole.empty() ? '0' : whole.back());
    if (!whole.empty()) whole.pop_back();
  }
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (whole.size() + fraction.size() > kMaxDigits) return std::nullopt;
  number.whole = whole.empty() ? "0" : whole;
  number.fraction = fraction;
  if (number.IsZero()) number.negative = false;
  return number;
}

std::strong_ordering operator<=>(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) {
    return a.negative ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  const Decimal& x = a.negative ? b : a;
  const Decimal& y = a.negative ? a : b;
  if (x.whole.size() != y.whole.size()) return x.whole.size() <=> y.whole.size();
  if (const auto order = x.whole.compare(y.whole) <=> 0; order != 0) return order;
  return x.fraction.compare(y.fraction) <=> 0;
}

void NumberSet::AtLeast(const Bound& bound) {
  if (!min || bound.at > min->at || (bound.at == min->at && bound.is_exclusive)) min = bound;
}
void NumberSet::AtMost(const Bound& bound) {
  if (!max || bound.at < max->at || (bound.at == max->at && bound.is_exclusive)) max = bound;
}

bool NumberSet::Has(const Decimal& number) const {
  if (number.IsWhole() ? !whole : !fractions) return false;
  if (min && (number < min->at || (min->is_exclusive && number == min->at))) return false;
  if (max && (number > max->at || (max->is_exclusive && number == max->at))) return false;
  if (std::ranges::find(excluded, number) != excluded.end()) return false;
  const std::string text = number.whole + (number.fraction.empty() ? "" : "." + number.fraction);
  Budget budget;
  const auto divides = [&](const Decimal& step) { return Multiples(step, budget).Has(text); };
  return std::ranges::all_of(multiples, divides) && std::ranges::none_of(not_multiples, divides);
}

Dfa NumberSet::Spellings(Budget& budget) const {
  // Two numbers of more than 15 digits may be equal in floating point: close to an exclusive bound
  // fewer digits are written, `n_near` of them after the point.
  size_t n_digits = multiples.empty() && not_multiples.empty() ? 19 : 15;
  size_t n_decimals = 17, n_near = 17, n_far = kMaxWritten;
  std::optional<Bound> low = min, high = max;
  for (std::optional<Bound>* const bound : {&low, &high}) {
    if (!*bound) continue;
    const Decimal& at = (*bound)->at;
    if (at.whole.size() > kMaxWritten) {  // longer than any spelling
      if (at.negative != (bound == &low)) return {};
      bound->reset();
      continue;
    }
    n_digits = std::max(n_digits, at.whole.size());
    n_decimals = std::max(n_decimals, at.fraction.size());
    if ((*bound)->is_exclusive && !at.IsZero()) {
      n_near = std::min(n_near, 15 - std::min<size_t>(at.whole.size(), 15));
      n_far = std::min(n_far, at.whole.size() < 3 ? 0 : at.whole.size() - 2);
    }
  }
  const auto times = [](size_t least, size_t most) {
    return "{" + std::to_string(least) + "," + std::to_string(most) + "}";
  };
  std::string syntax = "^(0|-?[1-9][0-9]" + times(0, n_digits - 1);
  if (fractions) {
    const bool is_near = n_far < kMaxWritten;
    if (n_near > 0 || !is_near) {
      syntax += "|-?(0|[1-9][0-9]" + times(0, n_digits - 1) + ")(\\.[0-9]" +
                times(1, is_near ? n_near : n_decimals) + ")?";
    }
    if (is_near && n_far > 0) {
      syntax += "|-?(0|[1-9][0-9]" + times(0, n_far - 1) + ")\\.[0-9]" + times(1, n_decimals);
    }
  }
  syntax += ")$";
  Dfa all = PatternStrings(syntax, budget);
  const auto both = [&](const Dfa& other) { all = Combine(all, other, Both::kAnd, budget); };
  if (low) both(PatternStrings(Within(*low, true), budget));
  if (high) both(PatternStrings(Within(*high, false), budget));
  if (!whole) both(AllBut(PatternStrings("^-?[0-9]+(\\.0+)?$", budget)));
  for (const Decimal& step : multiples) both(Multiples(step, budget));
  for (const Decimal& step : not_multiples) both(AllBut(Multiples(step, budget)));
  for (const Decimal& number : excluded) {
    const std::string sign = number.IsZero() ? "-?" : number.negative ? "-" : "";
    const std::string rest = number.fraction.empty() ? "(\\.0+)?" : "\\." + number.fraction + "0*";
    both(AllBut(PatternStrings("^" + sign + number.whole + rest + "$", budget)));
  }
  return all;
}

std::string NumberSet::Key() const {
  std::string key = whole ? fractions ? "n" : "i" : "f";
  const auto add = [&](char what, const Decimal& d) {
    key += what;
    key += (d.negative ? "-" : "") + d.whole + "." + d.fraction;
  };
  if (min) add(min->is_exclusive ? '>' : 'g', min->at);
  if (max) add(max->is_exclusive ? '<' : 'l', max->at);
  for (const Decimal& d : multiples) add('*', d);
  for (const Decimal& d : not_multiples) add('/', d);
  for (const Decimal& d : excluded) add('!', d);
  return key;
}

}  // namespace grammar
