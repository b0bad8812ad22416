// The rules of JSON that all schemas use: values of any kind, strings, and sets of strings.
//
// JSON is compact, with one space after each colon and comma: what models were trained on. Free
// white space is allowed after { [ , : and before } ]: at most one space, or one line end with the
// indentation of the next line, so that no model fills a context with blanks. Numbers have at most
// 16 digits before and after the point and two-digit exponents, which any reader can represent.
// Keys, and strings of a set, are written with as few escapes as JSON needs, so that equal ones are
// the same text.
#ifndef PRONK_GRAMMAR_JSON_RULES_H_
#define PRONK_GRAMMAR_JSON_RULES_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

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
  // The texts of a set as they are, or as strings in quotes.
  Part Plain(const Dfa& dfa) { return Texts(dfa); }
  // `most`: those of at most so many characters; in a rule of its own.
  Part Quoted(const Dfa& dfa, uint32_t most = kNone);
  // One of these texts.
  Part OneOf(const std::vector<std::string>& texts);
  // A key, in quotes, that is none of these.
  Part KeyBut(const std::vector<std::string>& names);

 private:
  Part Texts(const Dfa& dfa, uint32_t most = kNone);
  // A character as it is written.
  Part Character(const CodePoints& set);
  // Any characters, written as Character() does, or also with all escapes.
  Part AnyText(const Part& others);
  Part KeyText();

  Builder& builder_;
  RuleNames rules_;
  std::map<CodePoints, RuleId> characters_;
};

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_RULES_H_
