// Test cases for JSON Schema: a schema, valid values and invalid values.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/json_schema.h"
#include "tests/grammar/matches.h"
#include "tests/support/error_of.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/texts.h"

namespace grammar::test_cases {

struct Case {
  std::string schema, valid, invalid;  // values, for test::Texts()
};

// Parses with the defaults of generation, but with any white space, so that cases need no spaces.
inline Grammar Parse(const std::string& schema) {
  return ParseJsonSchema(schema, {.free_space = true, .closed = true, .ordered = true});
}

inline std::string FaultOf(const std::string& schema) {
  return test::ErrorOf<Error>([&] { Parse(schema); });
}

inline void CheckValues(const Case& c, const Grammar& grammar) {
  for (const std::string& text : test::Texts(c.valid)) {
    EXPECT_TRUE(test::Matches(grammar, text)) << c.schema << " " << text;
  }
  for (const std::string& text : test::Texts(c.invalid)) {
    EXPECT_FALSE(test::Matches(grammar, text)) << c.schema << " " << text;
  }
}

// Checks the cases. A validator that shares no code with the grammar must also accept valid texts.
inline void Check(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    CheckValues(c, Parse(c.schema));
    const auto schema = test::Json::parse(c.schema);
    for (const std::string& text : test::Texts(c.valid)) {
      EXPECT_TRUE(test::SchemaFaults(test::Json::parse(text), schema).empty())
          << c.schema << " " << text;
    }
  }
}

// Checks the cases by the standard: it allows further properties, properties in any order, and
// types to which the keywords do not apply.
inline void CheckOpen(const std::vector<Case>& cases) {
  for (const Case& c : cases) CheckValues(c, ParseJsonSchema(c.schema, {.free_space = true}));
}

}  // namespace grammar::test_cases
