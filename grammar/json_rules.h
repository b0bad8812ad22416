// The rules of JSON that all schemas use: values of any kind, strings, and sets of strings.
//
// JSON is compact, with one space after each colon and comma: what models were trained on. Free
// white space is allowed after { [ , : and before } ]: at most one space, or one line end with the
// indentation of the next line, so that no model fills a context with blanks. Numbers have at most
// 16 digits before and after the point and two-digit exponents, which any reader can represent.
// Keys, and strings of a set, are written with as few escapes as JSON needs, so that equal ones are
// the same text.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/dfa.h"
#include "grammar/gbnf.h"
#include "grammar/grammar.h"

namespace grammar {

class JsonRules {
 public:
  JsonRules(Builder& builder, bool free_space);

  // "ws" (inside brackets), "gap" (after a colon or comma), "value", "object", "array", "string",
  // "key", "number", "integer", "boolean", "null".
  Part Call(std::string_view name) { return builder_.Call(rules_.find(name)->second); }

  // A string of `least` to `most` characters (kNone: no limit).
  Part String(uint32_t least, uint32_t most);
  // The texts of a set, unchanged.
  Part Plain(const Dfa& dfa);
  // The texts of at most `most` characters, as strings in quotes. Equal sets share a rule.
  Part Quoted(const Dfa& dfa, uint32_t most = kNone);

 private:
  Part Texts(const Dfa& dfa, const std::function<Part(const CodePoints&)>& character,
             uint32_t most);
  // A character as it is written.
  Part Character(const CodePoints& set);
  // Any characters, written as Character() does, or also with all escapes.
  Part AnyText(const Part& others);

  Builder& builder_;
  RuleNames rules_;
  std::map<CodePoints, RuleId> characters_;
  std::map<std::pair<Dfa, uint32_t>, RuleId> quoted_;
};

}  // namespace grammar
