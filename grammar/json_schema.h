// JSON Schema (drafts 3 to 2020-12) as a grammar: a text that matches is valid under the schema.
//
// README.md lists the supported keywords and where the grammar is narrower. Annotations are
// ignored; a keyword that cannot be enforced exactly is refused with its location.
#pragma once

#include <functional>
#include <string>

#include "grammar/grammar.h"

namespace grammar {

struct SchemaOptions {
  // White space where the model wants it, instead of one space after each colon and comma.
  bool free_space = false;
  // Not in the standard, but expected by a model's users: objects have only the properties that the
  // schema describes, unless it has additionalProperties; a schema without "type" is for the types
  // of its keywords; and "nullable" is OpenAPI's.
  bool closed = false;
  // Called once if `closed` leaves out properties that the standard allows.
  std::function<void()> has_closed = [] {};
  // Properties come in the order of the schema, then others.
  bool ordered = false;
  // Called once for each unknown format or keyword, which is ignored, as "#/properties/name/format:
  // WHAT".
  std::function<void(const std::string& what)> note = [](const std::string&) {};
};

// Throws grammar::Error, "#/properties/name: WHAT".
Grammar ParseJsonSchema(const std::string& text, const SchemaOptions& options = {});

// Adds its rules to a builder's, whose Finish() has to prune, and returns the rule of the schema.
RuleId AddJsonSchema(const std::string& text, Builder& builder, const SchemaOptions& options = {});

// Any JSON object.
Grammar JsonObject(const SchemaOptions& options = {});

}  // namespace grammar
