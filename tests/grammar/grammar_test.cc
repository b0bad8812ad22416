// GBNF: texts that match, messages about wrong grammars, and hostile grammars.
#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "gguf/utf8.h"
#include "grammar/gbnf.h"
#include "grammar/matcher.h"
#include "tests/support/error_of.h"
#include "tests/support/texts.h"

namespace grammar {
namespace {

using namespace std::string_literals;

bool Allows(const Grammar& grammar, std::string_view text) {
  Matcher matcher(grammar);
  SetId at = matcher.Start();
  for (const char c : text) {
    at = matcher.Step(at, static_cast<uint8_t>(c));
    if (matcher.IsFull()) at = matcher.Forget(at);
  }
  return matcher.MayEnd(at);
}

bool Allows(std::string_view gbnf, std::string_view text) { return Allows(ParseGbnf(gbnf), text); }

std::string FaultIn(std::string_view gbnf) {
  return test::ErrorOf<Error>([&] { ParseGbnf(gbnf); });
}

std::string Times(size_t n, std::string_view text) {
  std::string all;
  for (size_t i = 0; i < n; ++i) all += text;
  return all;
}

// Lists of texts, for test::Texts().
void ExpectMatches(std::string_view gbnf, const std::string& right, const std::string& wrong) {
  for (const std::string& text : test::Texts(right)) EXPECT_TRUE(Allows(gbnf, text)) << text;
  for (const std::string& text : test::Texts(wrong)) EXPECT_FALSE(Allows(gbnf, text)) << text;
}

TEST(Gbnf, LiteralsAndAlternatives) {
  ExpectMatches(R"(root ::= "yes" | "no" | "")", " | yes | no", "ye | yesno | Yes");
}

TEST(Gbnf, EmptyAlternatives) {
  for (const std::string_view grammar :
       {R"(root ::= "a" |)", R"(root ::= | "a")", "root ::= b\nb ::= | \"a\"",
        "root ::= b\nb ::=\n  | \"a\"", "root ::= b \"a\"? # c\nb ::=\nc ::= b"}) {
    EXPECT_TRUE(Allows(grammar, "")) << grammar;
    EXPECT_TRUE(Allows(grammar, "a")) << grammar;
    EXPECT_FALSE(Allows(grammar, "aa")) << grammar;
  }
}

TEST(Gbnf, Classes) {
  ExpectMatches("root ::= [a-cx]", "b | x", "d");
  ExpectMatches("root ::= [-a]", "-", "b");
  ExpectMatches("root ::= [a-]", "-", "b");
  ExpectMatches(R"(root ::= [\]\[\\"])", "] | \\", "x");
  ExpectMatches("root ::= [^a-z]", "A | \n | €", "q");
  ExpectMatches("root ::= .", "\n | \U0001F999", "ab");
}

TEST(Gbnf, Escapes) {
  EXPECT_TRUE(Allows(R"(root ::= "\n\r\t\\\"\x41\u20AC\U0001F999")", "\n\r\t\\\"A€\U0001F999"));
  EXPECT_TRUE(Allows(R"(root ::= [\x41-\x43])", "B"));
}

TEST(Gbnf, Repetitions) {
  const auto lengths = [](const std::string& sign) {
    std::string found;
    for (size_t n = 0; n < 8; ++n) {
      if (Allows("root ::= \"ab\"" + sign, Times(n, "ab"))) found += std::to_string(n);
    }
    EXPECT_FALSE(Allows("root ::= \"ab\"" + sign, "aba")) << sign;
    return found;
  };
  for (const auto& [sign, found] : {std::pair("?", "01"),
                                    {"*", "01234567"},
                                    {"+", "1234567"},
                                    {"{3}", "3"},
                                    {"{2,}", "234567"},
                                    {"{0,}", "01234567"},
                                    {"{ 2 , 4 }", "234"},
                                    {"{0}", "0"},
                                    {"{0,2}", "012"},
                                    {"{1,2}{2}", "234"},
                                    {"?*", "01234567"},
                                    {"{2}?", "02"}}) {
    EXPECT_EQ(lengths(sign), found) << sign;
  }
}

TEST(Gbnf, GroupsLinesAndComments) {
  constexpr std::string_view kGrammar =
      "# what there is\r\n"
      "root ::= item (\"\\n\" # between\n"
      "   item\n"
      ")*\r\n"
      "\n"
      "item ::=\n"
      "  \"- \" word\n"
      "  | \"* \" word # the other bullet\n"
      "word ::= [a-z]+";
  ExpectMatches(kGrammar, "- milk | - milk\n* bread", "- milk\n | - ");
}

TEST(Gbnf, RulesThatCallThemselves) {
  constexpr std::string_view kNested = R"g(root ::= "(" root ")" root | "")g";
  ExpectMatches(kNested, "(()(()))()", "(() | ())");
  // This is deeper than a call stack could hold.
  const size_t n = 20'000;
  EXPECT_TRUE(Allows(kNested, std::string(n, '(') + std::string(n, ')')));
  EXPECT_FALSE(Allows(kNested, std::string(n, '(') + std::string(n - 1, ')')));
  EXPECT_TRUE(Allows("root ::= \"a\" root | \"b\"", std::string(n, 'a') + "b"));
  // Empty rules precede other rules, and several rules in a row may be empty.
  constexpr std::string_view kEmpties = "root ::= e e e\ne ::= \"a\"? f \"b\"?\nf ::= \"c\"?";
  ExpectMatches(kEmpties, " | bcab | acbacbacb", "bbbb");
}

TEST(Gbnf, CharactersOfManyBytes) {
  const Grammar grammar = ParseGbnf("root ::= [\\u0080-\\U0010FFFF]+");
  Matcher matcher(grammar);
  // The matcher takes each byte alone, and refuses invalid UTF-8.
  SetId at = matcher.Start();
  for (const char byte : "\U0001F999"s) {
    at = matcher.Step(at, static_cast<uint8_t>(byte));
    EXPECT_NE(at, ItemSets::kNothing);
  }
  EXPECT_TRUE(matcher.MayEnd(at));
  EXPECT_FALSE(matcher.MayEnd(matcher.Steps(matcher.Start(), "\xF0\x9F\xA6")));
  for (const std::string_view bytes : {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80",
                                       "\xE0\x80\x80", "\xF8\x88\x80\x80", "a"}) {
    EXPECT_EQ(matcher.Steps(matcher.Start(), bytes), ItemSets::kNothing);
  }
}

// Compares all ranges of characters near the limits of UTF-8's lengths with decoding.
TEST(CodePoints, RangesAsUtf8) {
  const std::vector<CodePoint> borders = {
      0,     1,      0x7E,   0x7F,   0x80,   0x81,    0xBF,    0xC0,    0x7FF,   0x800,
      0xFFF, 0x1000, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10001, 0x3FFFF, 0x40000, 0x10FFFF};
  for (size_t i = 0; i < borders.size(); ++i) {
    for (size_t j = i; j < borders.size(); ++j) {
      const CodePoints set = Normal({{borders[i], borders[j]}});
      for (const CodePoint c : borders) {
        size_t n_found = 0;
        ForUtf8(set, [&](const ByteRanges& ranges) {
          const std::string bytes = gguf::ToUtf8(c);
          bool fits = bytes.size() == ranges.size;
          for (size_t k = 0; fits && k < bytes.size(); ++k) {
            const auto byte = static_cast<uint8_t>(bytes[k]);
            fits = ranges.bytes[k].low <= byte && byte <= ranges.bytes[k].high;
          }
          n_found += fits ? 1 : 0;
        });
        EXPECT_EQ(n_found, borders[i] <= c && c <= borders[j] ? 1u : 0u);
      }
    }
  }
}

TEST(CodePoints, Complement) {
  EXPECT_EQ(Complement({}), (CodePoints{{0, 0xD7FF}, {0xE000, kMaxCodePoint}}));
  EXPECT_EQ(Complement(Complement({{'a', 'b'}})), (CodePoints{{'a', 'b'}}));
  EXPECT_EQ(Normal({{'c', 'd'}, {'a', 'b'}, {'x', 'x'}, {'d', 'e'}}),
            (CodePoints{{'a', 'e'}, {'x', 'x'}}));
}

TEST(Gbnf, FaultsWithTheirPlaces) {
  struct Case {
    std::string_view grammar, fault;
  };
  const Case cases[] = {
      {"", "there is no rule 'root'"},
      {"start ::= \"a\"", "there is no rule 'root'"},
      {"root ::= b\n", "line 1, column 10: there is no rule 'b'"},
      {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: the rule 'root' is there twice"},
      {"root = \"a\"", "line 1, column 6: expected ::= after the name of a rule, found \"=\""},
      {"root ::= \"a\" )", "line 1, column 14: expected a new line, | or another part"},
      {"root ::= (\"a\"",
       "line 1, column 14: expected ')' or another part of the group, found the end"},
      {"root ::= \"a", "line 1, column 10: the literal has no end"},
      {"root ::= \"a\nb\"", "line 1, column 10: the literal has no end"},
      {"root ::= [a", "line 1, column 10: the class has no end"},
      {"root ::= []", "line 1, column 10: no character is in this class"},
      {"root ::= [z-a]", "line 1, column 11: a range whose end comes before its beginning"},
      {"root ::= \"\\q\"", "line 1, column 11: an escape that is none of"},
      {"root ::= \"\\x4\"", "line 1, column 11: an escape of fewer than 2 digits"},
      {"root ::= \"\\uD800\"", "line 1, column 11: an escape that is not a character"},
      {"root ::= \"\xFF\"", "line 1, column 11: bytes that are not UTF-8"},
      {"root ::= \"a\"{2", "line 1, column 15: expected '}'"},
      {"root ::= \"a\"{,2}", "line 1, column 14: expected a number"},
      {"root ::= \"a\"{3,2}", "line 1, column 13: a repetition whose minimum is above its maximum"},
      {"root ::= *", "line 1, column 10: expected a new line, | or another part"},
      {"root ::= <think", "line 1, column 10: expected a token as <name> or <[number]>"},
      {"root ::= <[1x]>", "line 1, column 10: expected a token"},
      {"root ::= <[]>", "line 1, column 10: expected a token"},
      {"root ::= !a", "line 1, column 10: expected a token"},
      {"\n\n  ?", "line 3, column 3: expected the name of a rule, found \"?\""},
      {"root ::= root \"a\" | \"b\"", "left recursion: the rule 'root' may begin with itself"},
      {"root ::= a\na ::= \"x\"? b\nb ::= (\"y\"* a){2,3} | \"z\"", "left recursion: the rule '"},
      {"root ::= \"a\" root", "no text can ever end the rule 'root'"},
      {"root ::= \"a\" | b\nb ::= \"b\" b", "no text can ever end the rule 'b'"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(FaultIn(c.grammar).substr(0, c.fault.size()), c.fault) << c.grammar;
  }
  // Rules that the root does not need are not checked.
  EXPECT_EQ(FaultIn("root ::= \"a\"\nb ::= b \"b\"\nc ::= \"c\" c"), "");
}

// Each grammar is refused or read within a time limit that only exponential work exceeds.
class HostileGrammar : public testing::Test {
 protected:
  void TearDown() override {
    const auto spent = std::chrono::steady_clock::now() - begin_;
    EXPECT_LT(spent, std::chrono::minutes(1));
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST_F(HostileGrammar, TooLarge) {
  EXPECT_TRUE(test::Has(FaultIn("root ::= \"a\"{1,2000000}"), "a number above"));
  EXPECT_EQ(FaultIn("root ::= \"a\"{1000000}"), "");  // counted, not expanded
  EXPECT_TRUE(
      test::Has(FaultIn("root ::= " + Times(3'000'000, "\"abc\"")), "longer than a megabyte"));
  EXPECT_TRUE(test::Has(FaultIn("root ::= \"" + std::string(700'000, 'a') + '"'), "too large"));
  EXPECT_TRUE(test::Has(FaultIn("root ::= " + std::string(5000, '(')), "nested more than"));
}

TEST_F(HostileGrammar, RepetitionsOfRepetitions) {
  const std::string grammar = "root ::= \"a\"" + Times(8, "{1000}");
  EXPECT_FALSE(Allows(grammar, std::string(100'000, 'a')));
  EXPECT_TRUE(Allows("root ::= (\"a\"?){50000}", std::string(50000, 'a')));
  EXPECT_FALSE(Allows("root ::= (\"a\"?){50000}", std::string(50001, 'a')));
  EXPECT_TRUE(Allows("root ::= ((\"a\"*)*)*", std::string(50000, 'a')));
  EXPECT_TRUE(Allows("root ::= ((\"\"*)*){3} \"a\"", "a"));
  // If an item may be empty, it may also occur fewer times.
  EXPECT_TRUE(Allows("root ::= (\"a\"? \"b\"?){3,5} \"c\"", "c"));
  EXPECT_TRUE(Allows("root ::= (\"a\"? \"b\"?){3,5} \"c\"", "babababbc"));
  EXPECT_FALSE(Allows("root ::= (\"a\"? \"b\"?){3,5} \"c\"", "bababababac"));
}

TEST_F(HostileGrammar, ManyRulesInARow) {
  constexpr size_t kRules = 20'000;
  std::string down = "root ::= r0\n", up = "root ::= r" + std::to_string(kRules) + "\n";
  for (size_t i = 0; i < kRules; ++i) {
    const std::string name = "r" + std::to_string(i), next = "r" + std::to_string(i + 1);
    down += name + " ::= " + next + "\n";
    up += next + " ::= " + name + "\n";
  }
  EXPECT_TRUE(Allows(down + "r" + std::to_string(kRules) + " ::= \"a\"", "a"));
  EXPECT_TRUE(Allows(up + "r0 ::= \"a\"", "a"));
  EXPECT_TRUE(test::Has(FaultIn(up + "r0 ::= r" + std::to_string(kRules)), "no text can ever end"));
}

// These texts have one parse for each tree with this number of leaves, or two for each letter.
TEST_F(HostileGrammar, AmbiguousTexts) {
  constexpr std::string_view kTrees = R"(root ::= "a" root root | "")";
  EXPECT_TRUE(Allows(kTrees, std::string(300, 'a')));
  constexpr std::string_view kTwo = R"(root ::= "a" root "b" | "a" root "c" | "x")";
  EXPECT_TRUE(Allows(kTwo, std::string(300, 'a') + "x" + Times(150, "bc")));
  EXPECT_FALSE(Allows(kTwo, std::string(300, 'a') + "x" + Times(150, "bc") + "b"));
  constexpr std::string_view kMany = "root ::= r r r r r r r r\nr ::= [a-z]* | [a-m]* ([k-z] r)?";
  EXPECT_TRUE(Allows(kMany, std::string(300, 'l')));
}

// The work for a text is limited, for any number of parses. The test counts the bytes taken.
TEST_F(HostileGrammar, EndsWhereReadingsMultiply) {
  for (const char* const rules :
       {R"(s ::= "a" s s | "a" s | "a")", R"(s ::= "a" s s s | "a")", R"(s ::= "a" s*)",
        R"(s ::= "a" (s s?)? s?)", R"(s ::= "a" (s "a"?)*)", R"(s ::= "a" s "b" s | "a" s | "a")",
        "s ::= \"a\" t | \"a\"\nt ::= s s | s u\nu ::= s t | s"}) {
    const Grammar grammar = ParseGbnf(std::string("root ::= s\n") + rules);
    Matcher matcher(grammar);
    size_t n = 0;
    const auto read = [&] {
      for (SetId at = matcher.Start(); n < 5000; ++n) {
        at = matcher.Step(at, 'a');
        if (matcher.IsFull()) at = matcher.Forget(at);
      }
    };
    EXPECT_THROW(read(), Error) << rules;
    EXPECT_GT(n, 100u) << rules;
    EXPECT_LT(n, 2000u) << rules;
  }
  EXPECT_TRUE(test::Has(FaultIn("root ::= root root | \"a\" | \"\""), "left recursion"));
  EXPECT_TRUE(test::Has(FaultIn("root ::= root? root \"a\""), "no text can ever end"));
  // With only one parse, texts may have any length.
  EXPECT_TRUE(Allows("root ::= \"a\" root | \"a\"", std::string(100'000, 'a')));
}

// If more data must be kept than fits, an error says so; dropped data is computed again.
TEST(Matcher, Forgets) {
  const Grammar grammar = ParseGbnf(R"g(root ::= "(" root ")" | "[" root "]" | "x")g");
  Matcher matcher(grammar);
  SetId at = matcher.Start();
  std::string back;
  for (size_t i = 0; i < 1000; ++i) {
    const bool round = i * i % 7 < 3;
    at = matcher.Step(at, round ? '(' : '[');
    back.insert(back.begin(), round ? ')' : ']');
    if (i % 100 == 99) at = matcher.Forget(at);
  }
  at = matcher.Step(at, 'x');
  for (const char c : back) {
    EXPECT_FALSE(matcher.MayEnd(at));
    EXPECT_EQ(matcher.OnlyByte(at), static_cast<uint8_t>(c));
    at = matcher.Step(matcher.Forget(at), static_cast<uint8_t>(c));
  }
  EXPECT_TRUE(matcher.MustEnd(at));
  EXPECT_EQ(matcher.OnlyByte(at), std::nullopt);
}

}  // namespace
}  // namespace grammar
