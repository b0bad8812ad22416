// JSON Schema (draft 2020-12 and older names) as a grammar: what matches is valid under the schema.
//
// The converse is not true: README.md lists the supported keywords and where the grammar is
// narrower. Annotations are ignored, unsupported keywords refused with their place.
#ifndef PRONK_GRAMMAR_JSON_SCHEMA_H_
#define PRONK_GRAMMAR_JSON_SCHEMA_H_

#include <functional>
#include <string>

#include "grammar/grammar.h"

namespace grammar {

struct SchemaOptions {
  // White space where the model wants it, instead of one space after each colon and comma.
  bool free_space = false;
  // Told of what is ignored: formats that are unknown, as "#/properties/name/format: WHAT".
  std::function<void(const std::string& what)> note = [](const std::string&) {};
};

// Throws grammar::Error, "#/properties/name: WHAT".
Grammar ParseJsonSchema(const std::string& text, const SchemaOptions& options = {});

// Any JSON object.
Grammar JsonObject(const SchemaOptions& options = {});

}  // namespace grammar

#endif  // PRONK_GRAMMAR_JSON_SCHEMA_H_
