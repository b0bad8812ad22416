// Grammars as text: GBNF, llama.cpp's dialect of the Backus-Naur form.
//
//     root   ::= "yes" | "no, " reason     # alternatives; a comment
//     reason ::= [a-z]+ (" " [^ \n]{1,9})* .?
//     think  ::= <think> !</think>* <[10]>   # tokens: by name, any other, by number
//
// A rule ends with its line, except inside parentheses, after ::= or |, and before a |.
// Literals and classes know the escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace grammar {

// The rule "root" and the rules it needs. Throws grammar::Error with line and column.
Grammar ParseGbnf(std::string_view text);

using RuleNames = std::map<std::string, RuleId, std::less<>>;

// Adds a text's rules to a builder and returns them by name, together with `known`.
RuleNames AddGbnf(std::string_view text, Builder& builder, const RuleNames& known = {});

}  // namespace grammar
