// The rules of JSON that all schemas use: values of any kind, and restricted strings and numbers.
//
// JSON is compact, with one space after each colon and comma: what models were trained on. Free
// white space is allowed after { [ , : and before } ]: at most one space, or one line end with the
// indentation of the next line, so that no model fills a context with blanks. Numbers have at most
// 16 digits before and after the point and two-digit exponents, which any reader can represent.
#ifndef PRONK_GRAMMAR_JSON_RULES_H_
#define PRONK_GRAMMAR_JSON_RULES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace grammar {

// A number as units of 10^-decimals; empty if it is not above 0, or has more than 6 decimals.
struct Step {
  uint64_t units;
  uint32_t decimals;
};
std::optional<Step> StepOf(double number);

// Bounds of a number, and whether each is exclusive, and of what it is a multiple.
struct NumberBounds {
  std::optional<double> min, max;
  bool above_min = false, below_max = false;
  std::optional<Step> step;
};
// The largest bound supported.
inline constexpr double kMaxBound = 1e15;
// Whether a grammar can express this bound: it is an integer, or has few enough digits.
bool IsFine(double bound);

// Of a string, in characters.
struct Lengths {
  uint32_t least = 0, most = kNone;
};

class JsonRules {
 public:
  JsonRules(Builder& builder, bool free_space);

  // "ws" (inside brackets), "gap" (after a colon or comma), "value", "object", "array", "string",
  // "number", "integer", "boolean", "null", and formats of strings: "date", "email", ...
  Part Call(std::string_view name) { return builder_.Call(rules_.find(name)->second); }
  // The possible lengths of a format's strings; empty for an unknown format.
  static std::optional<Lengths> LengthsOf(std::string_view format);

  // A string of `least` to `most` characters (kNone: no limit).
  Part String(uint32_t least, uint32_t most);
  // A character of a string, as itself or escaped as JSON requires; empty if none can be written.
  std::optional<Part> Character(const CodePoints& set);
  // An object's key, in quotes, that is none of these.
  Part KeyBut(const std::vector<std::string>& names);
  // Empty if no number lies between the bounds.
  std::optional<Part> Integer(const NumberBounds& bounds);
  std::optional<Part> Number(const NumberBounds& bounds);

 private:
  std::optional<Part> Between(const NumberBounds& bounds, uint64_t step, uint32_t decimals);

  Builder& builder_;
  std::map<std::string, RuleId, std::less<>> rules_;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_RULES_H_
