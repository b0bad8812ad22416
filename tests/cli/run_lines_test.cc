// pronk run --jsonl: an answer line for each prompt line, whatever runs beside it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

class RunLines : public testing::Test {
 protected:
  Finished Run(std::vector<std::string> more, const std::string& file, const std::string& in = "") {
    return Pronk(
        With({"run", "-m", kModel, "-t", "1", "-f", file, "--jsonl", "-n", "9", "--seed", "5"},
             more),
        in);
  }
  // The result without its times.
  static std::vector<std::string> Answers(const std::string& text) {
    std::vector<std::string> answers;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      Json json = Json::parse(line);
      json.erase("timings");
      json.erase("draft");
      answers.push_back(json.dump());
    }
    return answers;
  }

  const TempDir dir_;
  const std::string prompts_ = dir_.Write(
      "prompts.jsonl",
      "\"Hello\"\n{\"id\": 7, \"prompt\": \"two\\nlines\"}\n\"a\"\n\"b c d e f\"\n\"x\"\n");
};

TEST_F(RunLines, AnswersAreTheSameHoweverManyTogether) {
  const Finished one = Done(Run({}, prompts_));
  EXPECT_EQ(one.err, "");
  const std::vector<std::string> alone = Answers(one.out);
  ASSERT_EQ(alone.size(), 5u);
  EXPECT_EQ(Json::parse(alone[1])["seed"], 6);
  for (const std::string n : {"2", "3", "8"}) {
    EXPECT_EQ(Answers(Run({"--parallel", n}, prompts_).out), alone) << n;
  }
  EXPECT_EQ(Answers(Run({"-np", "4"}, "-", ReadText(prompts_)).out), alone);
  // With a grammar for each.
  const std::vector<std::string> grammar = {"--grammar", "root ::= [a-c]+"};
  const std::vector<std::string> kept = Answers(Run(grammar, prompts_).out);
  ASSERT_EQ(kept.size(), 5u);
  EXPECT_EQ(Answers(Run({grammar[0], grammar[1], "--parallel", "3"}, prompts_).out), kept);
}

// Complete lines stay; the rest is done again.
TEST_F(RunLines, GoesOnWhereItWas) {
  const std::string out = dir_.Path("answers.jsonl");
  const Args to_file = {"-o", out, "--parallel", "2"};
  const Finished run = Done(Run(to_file, prompts_));
  EXPECT_EQ(run.out, "");
  const std::string all = ReadText(out);
  const std::vector<std::string> answers = Answers(all);
  ASSERT_EQ(answers.size(), 5u);
  const size_t second = all.find('\n', all.find('\n') + 1) + 1;
  for (const size_t kept : {second, second + 3, second + 40, size_t{5}}) {
    dir_.Write("answers.jsonl", all.substr(0, kept));
    EXPECT_EQ(Run(to_file, prompts_).status, 0);
    EXPECT_EQ(ReadText(out).substr(0, kept), all.substr(0, kept));
    EXPECT_EQ(Answers(ReadText(out)), answers);
  }
  EXPECT_EQ(Run(to_file, prompts_).status, 0);  // all are answered
  EXPECT_EQ(Answers(ReadText(out)), answers);
}

TEST_F(RunLines, WritesIntoNoOtherFile) {
  const std::string prompts = ReadText(prompts_);
  ExpectError(Run({"-o", prompts_}, prompts_), 1, "is a file that is read");
  for (const std::string& text :
       {std::string("my notes"), std::string("{\"a\": 1}\n"), std::string("\n"), prompts}) {
    const std::string other = dir_.Write("other", text);
    ExpectError(Run({"-o", other}, prompts_), 1, other + ": has lines that are not answers");
    EXPECT_EQ(ReadText(other), text);
  }
  for (const char* const text :
       {"{\"text\":\"x\",\"prompt_tokens\":99}\n", "{\"text\":\"x\"}"}) {  // with and without end
    const std::string others = dir_.Write("others", text);
    ExpectError(Run({"-o", others}, prompts_), 1, others + ", line 1: answers another request");
    EXPECT_EQ(ReadText(others), text);
  }
  ExpectError(Run({"-o", "/dev/null"}, prompts_), 1, "/dev/null: expected a file");
  ASSERT_EQ(mkfifo(dir_.Path("pipe").c_str(), 0600), 0);
  ExpectError(Run({"-o", dir_.Path("pipe")}, prompts_), 1, "pipe: expected a file");
  // No line is longer than an answer can be.
  const std::string endless = dir_.Write("long", "{\"text\":\"" + std::string(17'000'000, 'x'));
  ExpectError(Run({"-o", endless}, prompts_), 1, endless + ": has lines that are not answers");
  ExpectError(Run({"-o", dir_.Path("")}, prompts_), 1, "cannot be opened");
}

TEST_F(RunLines, SkipsLinesOfWhiteSpace) {
  const auto texts = [&](const std::string& lines) {
    std::vector<std::string> all;
    std::istringstream answers(Done(Run({"-n", "2"}, dir_.Write("lines", lines))).out);
    for (std::string line; std::getline(answers, line);) all.push_back(Json::parse(line)["text"]);
    return all;
  };
  EXPECT_EQ(texts("\n\"a\"\n\n \t\r\n\"b\"\n\n"), texts("\"a\"\n\"b\"\n"));
  EXPECT_EQ(texts("\"a\"\n\"b\"\n").size(), 2u);
}

TEST_F(RunLines, NamesTheLineThatIsWrong) {
  const auto expect = [&](const std::string& line, const std::string& says) {
    const std::string file = dir_.Write("bad", "\"good\"\n \r\n" + line + "\n\n\"good\"\n");
    ExpectError(Run({}, file), 1, says);
  };
  const std::string bad = dir_.Path("bad") + ", line 3: ";
  expect("Hello", bad + "is not JSON");
  expect("7", bad + "expected a string, or an object with \"prompt\" or \"messages\"");
  expect("{\"id\": \"a\"}", bad + "expected a string");
  expect("[\"a\"]", bad + "expected a string");
  expect("{\"text\": \"a\"}", bad + "\"text\": there is no such field");
  expect("{\"prompt\": [\"a\"]}", bad + "prompt: expected a text, found [\"a\"]");
  expect("\"" + std::string(100'000, 'x') + "\"", "line 3: the text needs");
  expect("\"" + std::string(100'000, 'x') + "\"", "; -c makes it larger");
}

TEST_F(RunLines, FlagsThatDoNotFit) {
  const auto expect = [](const Args& more, const std::string& says) {
    ExpectError(Pronk(With({"run", "-m", kModel}, more)), 2, says);
  };
  expect({"-p", "x", "--parallel", "2"}, "--parallel has no effect without --jsonl");
  expect({"-p", "x", "-o", "file"}, "-o has no effect without --jsonl");
  expect({"--jsonl", "-p", "x"}, "--jsonl answers the lines of one -f");
  expect({"--jsonl", "-f", prompts_, "-f", prompts_}, "--jsonl answers the lines of one -f");
  expect({"--jsonl", "-f", prompts_, "--json"}, "--jsonl does not go with");
  expect({"--jsonl", "-f", prompts_, "--parallel", "0"}, "--parallel");
}

}  // namespace
}  // namespace test
