// Checks JSON against a schema: the part of JSON Schema that our schemas use.
#pragma once

#include <string>
#include <vector>

#include "tests/support/json.h"

namespace test {

// A value's faults, each as "place: what"; empty if it follows the schema. Throws std::exception if
// the schema has an unknown rule.
std::vector<std::string> SchemaFaults(const Json& value, const Json& schema);

}  // namespace test
