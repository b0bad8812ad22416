// pronk run and chat with a grammar, as a user sees them.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

const std::string kPerson = R"({"type": "object", "properties": {
    "name": {"type": "string", "minLength": 1, "maxLength": 20},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "mood": {"enum": ["happy", "sad"]},
    "likes": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2}},
    "required": ["name", "age", "mood", "likes"]})";

TEST(Grammar, JsonByManySchemas) {
  const std::vector<std::string> schemas = {
      kPerson,
      R"({"type": "array", "items": {"type": "integer", "minimum": -9, "maximum": 9}, "minItems": 2, "maxItems": 4})",
      R"({"anyOf": [{"const": "yes"}, {"type": "object", "properties": {"when": {"type": "string", "format": "date"}}, "required": ["when"]}]})",
  };
  for (const std::string& schema : schemas) {
    for (const std::string seed : {"1", "2", "3"}) {
      const Finished run = Done(Pronk({"run", "-m", kDefault, "--chat", "-p", "Tell me of Nora.",
                                       "-s", seed, "--json-schema", schema}));
      ASSERT_TRUE(Json::accept(run.out)) << run.out;
      EXPECT_EQ(SchemaFaults(Json::parse(run.out), Json::parse(schema)), std::vector<std::string>())
          << run.out;
    }
  }
}

TEST(Grammar, FilesAndTexts) {
  const TempDir dir;
  const std::string schema = dir.Write("s.json", kPerson);
  const std::string grammar =
      dir.Write("g.gbnf", "root ::= \"Once \" (\"again\" | \"more\") \"!\"\n");
  const auto run = [](const Args& args, const std::string& input = "") {
    return Pronk(With({"run", "-m", kDefault, "-p", "x", "--no-display-prompt", "-s", "5"}, args),
                 input);
  };
  const Finished from_file = run({"--json-schema", schema});
  // Omitting what the standard allows gives a note, but only if something is omitted.
  EXPECT_TRUE(Has(from_file.err, "note: objects get only the properties that the schema names; "));
  EXPECT_TRUE(Has(from_file.err, "--json-open allows others"));
  for (const Args& flags :
       {Args{"--json-schema", schema, "--json-open"}, Args{"-j", "{\"type\": \"null\"}"}})
    EXPECT_FALSE(Has(run(flags).err, "--json-open"));
  EXPECT_EQ(from_file.out, run({"-j", kPerson}).out);
  EXPECT_EQ(from_file.out, run({"--json-schema", "-"}, kPerson).out);
  EXPECT_TRUE(Json::accept(from_file.out)) << from_file.out;
  // What OpenAI's clients send contains the schema.
  const std::string named = R"({"name": "person", "strict": true, "schema": )" + kPerson + "}";
  EXPECT_EQ(run({"-j", named}).out, from_file.out);
  EXPECT_EQ(run({"-j", R"({"type": "json_schema", "json_schema": )" + named + "}"}).out,
            from_file.out);
  const std::string once = run({"--grammar", grammar}).out;
  EXPECT_TRUE(once == "Once again!\n" || once == "Once more!\n") << once;
  EXPECT_EQ(run({"--grammar", "root ::= \"Once \" (\"again\" | \"more\") \"!\""}).out, once);
  // The whole text is printed, also in --json's object.
  const Json object = Json::parse(run({"--grammar", grammar, "--json"}).out);
  EXPECT_EQ(object["text"].get<std::string>() + "\n", once);
  EXPECT_EQ(object["stop_reason"], "eos");
}

TEST(Grammar, AnObjectInAChat) {
  const Finished chat = Done(
      Pronk({"chat", "-m", kDefault, "--grammar", "root ::= \"Yes\" \".\"? | \"No.\"", "-s", "1"},
            "Are you there?\nStill?\n"));
  EXPECT_EQ(chat.out.find_first_not_of("YesNo.\n"), std::string::npos) << chat.out;
  const Finished run = Pronk(
      {"run", "-m", kDefault, "--chat", "-p", "Hello!", "--json-object", "-s", "4", "-n", "400"});
  if (run.err.find("incomplete") != std::string::npos) {
    EXPECT_EQ(run.status, 4) << run.err;
  } else {
    EXPECT_TRUE(Json::parse(run.out).is_object());
  }
}

TEST(Grammar, CompactJsonOrFreeSpace) {
  const std::vector<std::string> compact = {
      "run",
      "-m",
      kDefault,
      "-p",
      "x",
      "--no-display-prompt",
      "-s",
      "3",
      "-j",
      R"({"properties": {"a": {"const": [1, 2]}, "b": {"type": "string", "format": "colour", "maxLength": 2}}, "required": ["a", "b"]})"};
  const Finished run = Done(Pronk(compact));
  EXPECT_EQ(run.out.substr(0, 20), R"({"a": [1, 2], "b": ")") << run.out;
  EXPECT_TRUE(Has(run.err, "note: #/properties/b/format: \"colour\" is unknown"));
  std::vector<std::string> free = compact;
  free.push_back("--json-free-space");
  const Finished spaced = Done(Pronk(free));
  EXPECT_EQ(Json::parse(spaced.out)["a"], Json::parse("[1,2]")) << spaced.out;
}

TEST(Grammar, SaysWhereATextIsCut) {
  const Finished run =
      Pronk({"run", "-m", kDefault, "-p", "x", "-n", "3", "--grammar", "root ::= [a-z]{100}"});
  EXPECT_EQ(run.status, 4);
  EXPECT_TRUE(Has(run.err, "the text is incomplete: it stops before its grammar does"));
  const Finished full =
      Pronk({"run", "-m", kDefault, "-p", "x", "-c", "9", "--grammar", "root ::= [a-z]{100}"});
  EXPECT_EQ(full.status, 4);
  EXPECT_TRUE(Has(full.err, "the context is full"));
  EXPECT_TRUE(Has(full.err, "the text is incomplete: it stops before its grammar does"));
  EXPECT_EQ(
      Pronk({"chat", "-m", kDefault, "-n", "3", "--grammar", "root ::= [a-z]{100}"}, "x\n").status,
      4);
  const Finished piped = Shell(  // a closed pipe is not an error
      R"({ "$PRONK" run -m "$MODEL" -p x --grammar 'root ::= [a-z]+' --ignore-eos -c 100000
        echo $? >&2; } | head -c 1)");
  EXPECT_EQ(piped.err, "0\n");
}

TEST(Grammar, WhatIsWrong) {
  const TempDir dir;
  const auto run = [](const Args& args) {
    return Pronk(With({"run", "-m", kDefault, "-p", "x"}, args));
  };
  const std::string bad = dir.Write("bad.gbnf", "root ::= \"a\"\nb ::= (");
  ExpectError(run({"--grammar", bad}), 1, "bad.gbnf: line 2, column 8: expected ')'");
  ExpectError(run({"--grammar", "root ::= x"}), 1,
              "--grammar: line 1, column 10: there is no rule 'x'");
  ExpectError(run({"--grammar", dir.Path("none")}), 1, "none: cannot be opened");
  const std::string schema = dir.Write("s.json", R"({"properties": {"a": {"$ref": "b.json"}}})");
  ExpectError(run({"--json-schema", schema}), 1,
              "s.json: #/properties/a: '$ref' leads to \"b.json\", which is another document");
  ExpectError(run({"--json-free-space"}), 2, "needs --json-schema or --json-object");
  ExpectError(run({"--grammar", "root ::= <nowhere>"}), 1,
              "<nowhere> is not a token of this model");
  ExpectError(run({"--json-schema", "{\"type\": "}), 1, "--json-schema: is not JSON from byte");
  ExpectError(run({"--json-schema", "{}", "--grammar", bad}), 2, "give one of them");
  ExpectError(run({"--json-schema", "{}", "--json-object"}), 2, "give one of them");
  ExpectError(Pronk({"chat", "--json-object", "--grammar", bad}), 2, "give one of them");
}

}  // namespace
}  // namespace test
