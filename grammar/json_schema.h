// JSON Schema (draft 2020-12, and older drafts' names) as a grammar: every text that matches is
// JSON and valid under the schema.
//
// The converse is not true: README.md lists the supported keywords and where the grammar is
// narrower. Annotations are ignored; unsupported keywords are refused with their place.
#ifndef PRONK_GRAMMAR_JSON_SCHEMA_H_
#define PRONK_GRAMMAR_JSON_SCHEMA_H_

#include <string>

#include "grammar/grammar.h"

namespace grammar {

// Throws grammar::Error, "#/properties/name: WHAT".
Grammar ParseJsonSchema(const std::string& text);

// Any JSON object.
Grammar JsonObject();

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_SCHEMA_H_
