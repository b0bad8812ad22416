// Splits a template's source into tokens: literal text, the marks of statements and expressions,
// and the tokens inside them. The lexer applies Jinja's white space rules with trim_blocks and
// lstrip_blocks on: the line break after a statement and the blanks before it on its line are
// dropped, unless - or + inside the marks override that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tokenizer::jinja {

enum class TokenKind {
  kData,           // text: literal output
  kVariableBegin,  // {{
  kVariableEnd,
  kBlockBegin,  // {%
  kBlockEnd,
  kName,      // text: the name
  kString,    // text: the string, escapes resolved
  kInteger,   // integer
  kFloat,     // number
  kOperator,  // text: + == [ and so on
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;
  int64_t integer = 0;
  double number = 0;
};

// Ends with kEnd. Throws TemplateError.
std::vector<Token> Tokenize(std::string_view source);

}  // namespace tokenizer::jinja
