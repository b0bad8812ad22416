// JSON Schema (draft 2020-12, and what older drafts call otherwise) as a grammar: every text that
// matches is JSON, and valid by the schema.
//
// The other way round, not every valid text matches: README.md tells what a schema may hold and
// what is narrower. Annotations are passed by, every keyword that is not supported is refused with
// its place.
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
