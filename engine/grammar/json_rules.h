// The rules of JSON, as all schemas use them: values of any kind, and strings and numbers of a
// certain kind.
//
// White space stands behind { [ , : and before } ], at most one space, or one line end with what
// indents the next line, so that no model fills a context with blanks. Numbers have at most 16
// digits before and behind the point and exponents of two: no reader finds them too large.
#ifndef PRONK_ENGINE_GRAMMAR_JSON_RULES_H_
#define PRONK_ENGINE_GRAMMAR_JSON_RULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"

namespace engine::grammar {

// Bounds of a number; whole ones, and whether they themselves are out of bounds.
struct NumberBounds {
  std::optional<int64_t> min, max;
  bool above_min = false, below_max = false;
};

class JsonRules {
 public:
  explicit JsonRules(Builder& builder);

  // "ws", "value", "object", "array", "string", "number", "integer", "boolean", "null", and of
  // strings in their quotes "date", "time", "date-time", "uuid".
  Part Call(std::string_view name) { return builder_.Call(find_(name)); }
  bool HasFormat(std::string_view name) const;

  // A string of so many characters (most: kNone, no limit).
  Part String(uint32_t least, uint32_t most);
  // A character of a string: as it is, or as an escape where it has to be one; nothing where no
  // character of the set can be written so.
  std::optional<Part> Character(const CodePoints& set);
  // The key of an object, in its quotes, that is none of these.
  Part KeyBut(const std::vector<std::string>& names);
  // Nothing where no number lies between the bounds.
  std::optional<Part> Integer(const NumberBounds& bounds);
  std::optional<Part> Number(const NumberBounds& bounds);

 private:
  void AddNumbers(const NumberBounds& bounds, bool negative, std::vector<Part>& ways);

  Builder& builder_;
  std::function<RuleId(std::string_view name)> find_;
};

}  // namespace engine::grammar

#endif  // PRONK_ENGINE_GRAMMAR_JSON_RULES_H_
