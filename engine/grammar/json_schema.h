// JSON Schema (draft 2020-12, and what older drafts call otherwise) as a grammar: every text that
// matches is JSON, and valid by the schema.
//
// The other way round, not every valid text matches. Properties come in the schema's order, and
// where some are named, others only if additionalProperties is there and allows them; the same
// holds for items behind prefixItems. Without "type", values are of the types that the keywords are
// about. Values of enum and const are written without white space.
//
// Supported: type, enum, const; properties, required, additionalProperties; items, prefixItems,
// minItems, maxItems; minLength, maxLength, pattern (pattern.h), format (date, time, date-time,
// uuid); minimum, maximum and the exclusive ones (whole bounds); anyOf, allOf, oneOf where no two
// can hold at once; $ref within the schema; nullable. Annotations are passed by, every other
// keyword is refused with its place.
#ifndef PRONK_ENGINE_GRAMMAR_JSON_SCHEMA_H_
#define PRONK_ENGINE_GRAMMAR_JSON_SCHEMA_H_

#include <string>

#include "engine/grammar/grammar.h"

namespace engine::grammar {

// Throws engine::Error, "#/properties/name: WHAT".
Grammar ParseJsonSchema(const std::string& text);

// Any JSON object.
Grammar JsonObject();

}  // namespace engine::grammar

#endif  // PRONK_ENGINE_GRAMMAR_JSON_SCHEMA_H_
