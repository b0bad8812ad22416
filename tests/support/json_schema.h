// Checks JSON against a schema: as much of JSON Schema as our schemas use.
#pragma once

#include <string>
#include <vector>

#include "tests/support/json.h"

namespace test {

// What is wrong with a value, each fault as "place: what"; empty where it follows the schema.
// Throws std::exception if the schema has a rule that is not known.
std::vector<std::string> SchemaFaults(const Json& value, const Json& schema);

}  // namespace test
