// The grammar of the calls that a model may write: in its family's format, or as bare objects, with
// arguments that follow the functions' schemas.
#pragma once

#include "engine/answer/tool_calls.h"
#include "gguf/json.h"
#include "grammar/grammar.h"
#include "tokenizer/tokenizer.h"

namespace engine {

// form: null: calls are bare objects. answer: the grammar of answers without calls; null: only
// calls are allowed. Throws engine::Error, which names the tool, if its schema is not supported.
grammar::Grammar CallGrammar(const CallForm* form, const gguf::JsonView& tools,
                             const ToolChoice& choice, const grammar::Grammar* answer,
                             const tokenizer::Tokenizer& tokenizer);

}  // namespace engine
