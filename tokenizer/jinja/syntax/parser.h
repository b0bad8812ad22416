// Parses tokens into statements, by Jinja's grammar (jinja.palletsprojects.com/templates) without
// inheritance, imports and autoescape, which a chat template in a file cannot use.
#ifndef PRONK_TOKENIZER_JINJA_SYNTAX_PARSER_H_
#define PRONK_TOKENIZER_JINJA_SYNTAX_PARSER_H_

#include <string_view>

#include "tokenizer/jinja/syntax/ast.h"

namespace tokenizer::jinja {

// Throws TemplateError with the line.
Block ParseTemplate(std::string_view source);

}  // namespace tokenizer::jinja

#endif  // PRONK_TOKENIZER_JINJA_SYNTAX_PARSER_H_
