// JSON Schema as a grammar: the keywords of strings and of numbers.
#include <string>
#include <vector>

#include "tests/grammar/schema_cases.h"

namespace grammar {
namespace {

using test::Matches;
using test_cases::Check;
using test_cases::FaultOf;
using test_cases::Parse;

TEST(JsonSchema, Strings) {
  Check({
      {R"({"minLength": 2, "maxLength": 3})", R"("ab" | "€€€" | "\n\ud83e\udd99")",
       R"("a" | "abcd" | "" | 1)"},
      {R"({"maxLength": 0})", R"("")", R"("a")"},
      {R"({"minLength": 1000})", '"' + std::string(1000, 'a') + '"',
       '"' + std::string(999, 'a') + '"'},
      {R"({"pattern": "^[A-Z]{2}-\\d+$"})", R"("AB-1" | "XY-1234")", R"("A-1" | "AB-" | "xAB-1")"},
      {R"({"pattern": "b"})", R"("b" | "abc" | "bb")", R"("a" | "")"},
      {R"({"pattern": "^a"})", R"("a" | "abc")", R"("ba")"},
      {R"({"pattern": "a$"})", R"("a" | "ba")", R"("ab")"},
      {R"({"pattern": "^(?:yes|no)?$"})", R"("" | "yes" | "no")", R"("yesno" | "maybe")"},
      {R"({"pattern": "^a$|^b"})", R"("a" | "bc")", R"("ac" | "")"},
      {R"({"pattern": "^[^a-y\\s]+.\\.$"})", R"("zx." | "ZZ!.")", R"("ax." | "z.")"},
      {R"({"pattern": "^\"\\\\[\"\\n]$"})", R"("\"\\\n" | "\"\\\"")", R"("\"\\n")"},
      {R"({"pattern": "^\\w+?@\\w{2,4}$"})", R"("me@abc")", R"("me@abcde" | "@ab")"},
      {R"({"pattern": "^\\x41\\u0042$"})", R"("AB")", R"("ab")"},
      {R"({"format": "date"})", R"("2026-11-22" | "2024-02-29" | "2000-02-29" | "2026-12-31")",
       R"("2026-13-01" | "2026-02-30" | "2023-02-29" | "1900-02-29" | "2026-04-31" | "26-1-1" | "2026-01-00")"},
      {R"({"format": "time"})", R"("23:59:59Z" | "00:00:00.125+01:30")",
       R"("24:00:00Z" | "12:00" | "12:60:00Z")"},
      {R"({"format": "date-time"})", R"("2026-11-22T10:00:00Z")",
       R"("2026-11-22 10:00:00Z" | "2026-11-22")"},
      {R"({"format": "duration"})", R"("P3Y6M4DT12H30M5S" | "P2W" | "PT0S" | "P1MT1H")",
       R"("P" | "PT" | "P1S" | "P1YT" | "P1W1D" | "P1Y1D" | "1D")"},
      {R"({"format": "email"})", R"("ada.l@example.org" | "a+b@mail.example.com")",
       R"("ada" | "a@b" | ".a@b.org" | "a..b@c.org" | "a@-b.org")"},
      {R"({"format": "hostname"})", R"("localhost" | "www.example.com" | "a-1.org")",
       R"("" | "-a.org" | "a-.org" | "a_b.org" | "a..org" | "a.org.")"},
      {R"({"format": "ipv4"})", R"("0.0.0.0" | "192.168.10.255")",
       R"("256.0.0.1" | "1.2.3" | "1.2.3.04" | "1.2.3.4.5")"},
      {R"({"format": "ipv6"})",
       R"("::" | "::1" | "1:2:3:4:5:6:7:8" | "fe80::1:2" | "1:2:3:4:5:6::" | "1::3:4:5:6:7")",
       R"(":" | "1:2:3:4:5:6:7" | "1::2::3" | "1:2:3:4:5:6:7:8:9" | "12345::" | "1:2:3:4::5:6:7:8" | "g::")"},
      {R"({"format": "uri", "minLength": 1, "maxLength": 2083})",
       R"("https://example.org" | "http://localhost:8080/a/b?c=d%20e#f")",
       R"("example.org" | "http://a b" | "http://a/%2")"},
      {R"({"format": "date", "maxLength": 10})", R"("2026-11-22")", R"("2026-11-2")"},
      {R"({"type": "string", "format": "uuid"})", R"("123e4567-e89b-12d3-A456-426614174000")",
       R"("123e4567" | "g23e4567-e89b-12d3-a456-426614174000")"},
  });
}

// Compares every number around all bounds with the operators < and <=.
TEST(JsonSchema, IntegersBetweenBounds) {
  const std::vector<int> bounds = {-1000, -999, -120, -100, -99, -11, -10, -9,  -1,  0,   1,
                                   8,     9,    10,   11,   42,  99,  100, 101, 305, 999, 1000};
  for (const int low : bounds) {
    for (const int high : bounds) {
      const std::string schema = R"({"type": "integer", "minimum": )" + std::to_string(low) +
                                 R"(, "exclusiveMaximum": )" + std::to_string(high) + "}";
      if (low >= high) {
        EXPECT_EQ(FaultOf(schema), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema);
      Matcher matcher(grammar);
      for (int i = -1100; i <= 1100; ++i) {
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), std::to_string(i)));
        ASSERT_EQ(fits, low <= i && i < high) << schema << " " << i;
      }
    }
  }
}

TEST(JsonSchema, Numbers) {
  Check({
      {R"({"type": "integer", "minimum": 5})", "5 | 10 | 123456", "4 | -5 | 05"},
      {R"({"type": "integer", "maximum": -5})", "-5 | -10", "-4 | 5 | 0"},
      {R"({"type": "integer", "minimum": 1.5, "maximum": 2.5})", "2", "1 | 3"},
      {R"({"type": "integer", "exclusiveMinimum": 1.5, "exclusiveMaximum": 2.5})", "2", "1 | 3"},
      {R"({"type": "integer", "minimum": 0, "exclusiveMinimum": 0})", "1", "0"},
      {R"({"type": "integer", "minimum": 1000000000000})", "1000000000000", "999999999999"},
      {R"({"type": "number", "minimum": 0, "maximum": 1})", "0 | 1 | 0.5 | 1.0 | 0.0 | 0.999999",
       "1.1 | -0.5 | 2 | 1.01 | 1e5"},
      {R"({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1})", "0.5 | 0.000001",
       "0 | 1 | 0.0 | 1.0 | 0.000"},
      {R"({"type": "number", "minimum": -2, "exclusiveMaximum": 3})",
       "-2 | -2.0 | -1.5 | -0.5 | 0 | 2.999999", "3 | 3.0 | -2.1 | -3"},
      {R"({"type": "number", "exclusiveMinimum": -2, "maximum": 0})", "-1.999999 | -1 | 0 | 0.0",
       "-2 | -2.0 | 0.1 | 1"},
      {R"({"type": "number", "exclusiveMaximum": 0})", "-0.5 | -1", "0 | -0.0 | 1"},
      {R"({"minimum": 7})", "7 | 7.5", "6.9"},
  });
  const Grammar older = Parse(R"({"type": "integer", "minimum": 5, "exclusiveMinimum": true})");
  EXPECT_TRUE(Matches(older, "6"));
  EXPECT_FALSE(Matches(older, "5"));
}

// Compares every number with three decimals around all bounds with the operators < and <=.
TEST(JsonSchema, NumbersBetweenFineBounds) {
  const std::vector<int> bounds = {-2500, -1990, -1001, -1000, -999, -500, -25,  -1,   0,
                                   1,     25,    499,   500,   990,  1000, 1050, 1999, 2000};
  const auto text_of = [](int thousandths) {
    const std::string digits = std::to_string(1000 + std::abs(thousandths) % 1000);
    return (thousandths < 0 ? "-" : "") + std::to_string(std::abs(thousandths) / 1000) + "." +
           digits.substr(1);
  };
  for (const int low : bounds) {
    for (const int high : bounds) {
      if (low > high) continue;
      const std::string schema = R"({"type": "number", "exclusiveMinimum": )" + text_of(low) +
                                 R"(, "maximum": )" + text_of(high) + "}";
      if (low == high) {
        EXPECT_EQ(FaultOf(schema), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema);
      Matcher matcher(grammar);
      for (int i = -2600; i <= 2600; ++i) {
        const std::string text = text_of(i);
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), text));
        ASSERT_EQ(fits, low < i && i <= high) << schema << " " << text;
      }
    }
  }
  Check({{R"({"type": "number", "minimum": 0.1, "exclusiveMaximum": 0.25})",
          "0.1 | 0.10 | 0.2 | 0.249999 | 0.100001",
          "0 | 0.0 | 0.09 | 0.099999 | 0.25 | 0.250 | 0.3 | 1 | -0.2"},
         {R"({"type": "integer", "minimum": 0.1, "maximum": 1.9})", "1", "0 | 2"}});
}

// Compares every number around all bounds with division.
TEST(JsonSchema, Multiples) {
  for (const int step : {1, 2, 3, 5, 7, 10, 12, 60, 97, 250}) {
    for (const auto& [low, high] : {std::pair(-1000, 1000), {-7, 900}, {13, 14}, {60, 720}}) {
      const test::Json schema = {
          {"type", "integer"}, {"multipleOf", step}, {"minimum", low}, {"exclusiveMaximum", high}};
      const bool has_any = (high - 1) / step * step >= low || low <= 0;
      if (!has_any) {
        EXPECT_EQ(FaultOf(schema.dump()), "#: no value fits this schema") << schema;
        continue;
      }
      const Grammar grammar = Parse(schema.dump());
      Matcher matcher(grammar);
      for (int i = -1100; i <= 1100; ++i) {
        const bool fits = matcher.MayEnd(matcher.Steps(matcher.Start(), std::to_string(i)));
        ASSERT_EQ(fits, low <= i && i < high && i % step == 0) << schema << " " << i;
      }
    }
  }
  Check({
      {R"({"type": "integer", "multipleOf": 1000})", "0 | 1000 | -5000 | 123456789012000",
       "100 | 1001 | 00 | 1e3"},
      {R"({"type": "integer", "multipleOf": 1.5})", "0 | 3 | -9", "1 | 2 | 4.5"},
      {R"({"type": "number", "multipleOf": 0.01})",
       "19.99 | -3.5 | 7 | 0.1 | 0.10 | 1234567890123.45", "19.999 | .5 | 1e2 | 01"},
      {R"({"type": "number", "multipleOf": 0.25, "minimum": 0.1, "maximum": 1})",
       "0.25 | 0.5 | 0.50 | 1 | 1.0 | 1.00", "0 | 0.1 | 0.2 | 1.25 | 0.125 | 0.35"},
      {R"({"type": "number", "multipleOf": 0.3, "exclusiveMaximum": 0})", "-0.3 | -1.2 | -3 | -3.0",
       "0 | -0.0 | -0.4 | 0.3 | -1"},
      {R"({"multipleOf": 0.5, "maximum": 5000000000})", "999999999.5", "5000000000.5"},
  });
  EXPECT_EQ(FaultOf(R"({"multipleOf": 0.5, "minimum": 5, "maximum": 5.4, "not": {"const": 5}})"),
            "#: no value fits this schema");
}

}  // namespace
}  // namespace grammar
