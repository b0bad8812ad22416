// Grammars as text: GBNF, llama.cpp's dialect of the Backus-Naur form.
//
//     root   ::= "yes" | "no, " reason     # alternatives; a comment
//     reason ::= [a-z]+ (" " [^ \n]{1,9})* .?
//
// A rule ends with its line, but for what stands in parentheses, behind ::= or | or before a |.
// Literals and classes know the escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH.
#ifndef PRONK_GRAMMAR_GBNF_H_
#define PRONK_GRAMMAR_GBNF_H_

#include <functional>
#include <string_view>

#include "grammar/grammar.h"

namespace grammar {

// The rule "root" and what it needs. Throws grammar::Error with line and column.
Grammar ParseGbnf(std::string_view text);

// Adds a text's rules to those of a builder, and returns how they are found by their names.
std::function<RuleId(std::string_view name)> AddGbnf(std::string_view text, Builder& builder);

}  // namespace grammar

#endif  // PRONK_GRAMMAR_GBNF_H_
