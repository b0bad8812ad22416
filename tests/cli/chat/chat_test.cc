// pronk chat through pipes: texts said, kept, saved, refused. On a terminal: terminal_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

Finished Chat(const std::string& input, const Args& more = {}) {
  return Pronk(With({"chat", "-m", kModel, "-n", "4", "-s", "1", "--ignore-eos"}, more), input,
               {"TERM=xterm-256color"});
}

// Only new tokens are computed: /stats for the second answer.
TEST(Chat, KeepsTheCacheBetweenTurns) {
  const Finished run = Done(
      Chat("Hello\n/stats\nAnd\\\nagain\n/stats\n/undo\n/regen\n/nonsense\n/exit\nnever read\n"));
  const size_t first = run.err.find(" 0 tokens reused");
  ASSERT_NE(first, std::string::npos) << run.err;
  EXPECT_EQ(run.err.find(" 0 tokens reused", first + 1), std::string::npos) << run.err;
  EXPECT_TRUE(Has(run.err, "taken back: And\nagain"));
  EXPECT_TRUE(Has(run.err, "no command /nonsense: /help lists them."));
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n') >= 3, true) << run.out;
}

// The question is still in the cache: no token is read, so no speed is printed.
TEST(Chat, RegenReadsNothing) {
  const Finished run = Chat("Hello\n/regen\n/stats\n");
  EXPECT_TRUE(Has(run.err, "prompt remembered | generated 4 tokens, "));
  EXPECT_TRUE(Has(run.err, "\nthreads: "));
}

TEST(Chat, NoPromptsAndNoEscapeCodesInPipes) {
  const Finished run = Done(Chat("Hello\n/clear\nHello\n"));
  EXPECT_FALSE(Has(run.out + run.err, "\033"));
  EXPECT_NE(run.err.rfind("> ", 0), 0u) << run.err;
  EXPECT_FALSE(Has(run.err, "\n> "));
}

TEST(Chat, HelpFitsATerminal) {
  std::istringstream lines(Chat("/help\n").err);
  int n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) EXPECT_LT(line.size(), 80u) << line;
  EXPECT_GT(n_lines, 9);
}

TEST(Chat, FullContextForgetsTheOldest) {
  std::string questions;
  for (int i = 0; i < 12; ++i) questions += "Tell me more of it\n";
  const Finished run = Done(Chat(questions, {"-c", "150"}));
  EXPECT_TRUE(Has(run.err, "are forgotten"));
}

// Questions without text, and questions before a call and its result, count like others.
TEST(Chat, TakesBackAndAnswersAgainWhatWasLoaded) {
  const auto after = [](const Json& messages, const std::string& commands) {
    const TempDir dir;
    const std::string file = dir.Write("old.json", Json{{"messages", messages}}.dump());
    const std::string saved = dir.Path("new.json");
    const Finished run = Done(Chat("/load " + file + "\n" + commands + "/save " + saved + "\n"));
    return std::pair(run.err, Json::parse(ReadText(saved))["messages"]);
  };
  const Json empty = {{{"role", "user"}, {"content", "Hi"}},
                      {{"role", "assistant"}, {"content", "Hello."}},
                      {{"role", "user"}, {"content", ""}},
                      {{"role", "assistant"}, {"content", "Yes?"}}};
  EXPECT_EQ(after(empty, "/regen\n").second.size(), 4u);
  const auto [taken, left] = after(empty, "/undo 2\n/undo\n");
  EXPECT_EQ(left.size(), 0u);
  EXPECT_TRUE(Has(taken, "(taken back: ; Hi)"));
  EXPECT_TRUE(Has(taken, "(nothing to take back)"));
  const Json call = {{"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", Json::object()}}}};
  const Json called = {
      {{"role", "user"}, {"content", "Hi"}},
      {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}},
      {{"role", "tool"}, {"content", "5"}},
      {{"role", "assistant"}, {"content", "It is 5."}}};
  const auto [said, answered] = after(called, "/regen\n");
  EXPECT_FALSE(Has(said, "stays"));
  ASSERT_EQ(answered.size(), 2u);
  EXPECT_NE(answered[1]["content"], "It is 5.");
}

// The user's file always has the chat's contents, even if the chat is empty.
TEST(Chat, SavesThatAQuestionWasTakenBack) {
  const TempDir dir;
  const std::string file = dir.Path("talk.json");
  Done(Chat("Hello\n", {"--save", file}));
  EXPECT_EQ(Json::parse(ReadText(file))["messages"].size(), 2u);
  Done(Chat("/undo\n", {"--load", file, "--save", file}));
  EXPECT_EQ(Json::parse(ReadText(file))["messages"].size(), 0u);
  Done(Chat("Hello\n", {"--load", file}));  // it can be loaded
}

TEST(Chat, SavesAndLoads) {
  const TempDir dir;
  const std::string file = dir.Path("talk.json");
  const Finished first =
      Done(Chat("Hello\n/system Be kind.\n/save " + file + "\nAnd then?\n/save\n"));
  const auto saved = Json::parse(ReadText(file))["messages"];
  ASSERT_EQ(saved.size(), 5u) << saved;
  EXPECT_EQ(saved[0]["role"], "system");
  EXPECT_EQ(saved[0]["content"], "Be kind.");
  EXPECT_EQ(saved[3]["content"], "And then?");
  EXPECT_EQ(saved[4]["role"], "assistant");

  const Finished again = Done(Chat("/load " + file + "\n/system\n/undo\n/system -\n/save\n"));
  EXPECT_TRUE(Has(again.err, "5 messages loaded"));
  EXPECT_TRUE(Has(again.err, "message is: Be kind."));
  EXPECT_TRUE(Has(again.err, "taken back: And then?"));
  EXPECT_EQ(Json::parse(ReadText(file))["messages"].size(), 2u);
}

// The model's state is saved beside the conversation: the next turn reads only the question.
TEST(Chat, SavesWhatTheModelRemembers) {
  const TempDir dir;
  const std::string file = dir.Path("talk.json");
  const std::string question = "And what then, and why, and with whom?\n";
  const Finished first =
      Done(Chat("Hello\n/save " + file + "\n" + question + "/stats\n", {"--temp", "0"}));
  const Finished again =
      Done(Chat("/load " + file + "\n" + question + "/stats\n", {"--temp", "0"}));
  const auto reused = [](const Finished& run) {
    const size_t at = run.err.find("of the last question ");
    return run.err.substr(at, run.err.find('\n', at) - at);
  };
  EXPECT_NE(reused(first), "");
  EXPECT_EQ(reused(again), reused(first));
  EXPECT_EQ(again.out, first.out.substr(first.out.size() - again.out.size()));
  // If it is damaged the text is read again, with a note.
  std::string bytes = ReadText(file + ".session");
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  dir.Write("talk.json.session", bytes);
  const Finished damaged = Done(Chat("/load " + file + "\n" + question, {"--temp", "0"}));
  EXPECT_TRUE(Has(damaged.err, "is damaged: the conversation will be read again"));
  EXPECT_EQ(damaged.out, again.out);
  // An unrelated file of that name stays.
  dir.Write("other.json.session", "precious");
  ExpectError(Chat("/save " + dir.Path("other.json") + "\n"), 1, "already exists");
}

// In a script a command that fails ends the program: one line, status 1.
TEST(Chat, RefusesWhatIsNoConversation) {
  const TempDir dir;
  const auto load = [&](const std::string& text) {
    return Chat("/load " + dir.Write("talk.json", text) + "\n");
  };
  ExpectError(load("{"), 1, "is not JSON");
  ExpectError(load(std::string(100000, '[')), 1, "nested deeper than 64 levels");
  ExpectError(load(R"({"role": "user"})"), 1, "expected a list");
  ExpectError(load(R"([{"role": "user", "content": 7}])"), 1, "message 1: expected {\"role\": ");
  ExpectError(load(R"([{"role": "assistant", "content": "x"}])"), 1,
              "expected one by 'user', found one by 'assistant'");
  ExpectError(load(R"([{"role": "user", "content": "x"}])"), 1, "has no answer");
  ExpectError(Chat("/load " + dir.Path("none") + "\n"), 1, "cannot be opened");
  ExpectError(Chat("/save " + dir.Write("mine", "precious") + "\n"), 1, "already exists");
  EXPECT_EQ(ReadText(dir.Path("mine")), "precious");
  ExpectError(Chat("a message that needs more room than there is\n", {"-c", "16"}), 1,
              "room for 16");
}

// A file's contents are shown but have no effect: escape codes, and lines that imitate ours.
TEST(Chat, WhatIsLoadedCannotCommandTheTerminal) {
  const TempDir dir;
  const std::string role =
      dir.Write("role.json", R"([{"role": "a\u001b[2J\npronk: b", "content": "x"}])");
  ExpectError(Chat("/load " + role + "\n"), 1, R"(by 'a\x1b[2J\npronk: b')");
  const std::string talk = dir.Write("talk.json", R"([{"role": "system", "content": "s\u001b]0;t"},
      {"role": "user", "content": "q\u001b]0;t"}, {"role": "assistant", "content": "x"}])");
  const Finished run = Done(Chat("/load " + talk + "\n/system\n/undo\n/no\x1b\n"));
  EXPECT_TRUE(Has(run.err, "message is: s\uFFFD]0;t"));
  EXPECT_TRUE(Has(run.err, "taken back: q\uFFFD]0;t"));
  EXPECT_FALSE(Has(run.err, "\033"));
}

TEST(Chat, WhatOllamaCallsThem) {
  EXPECT_EQ(Chat("/bye\nnever read\n").out, "");
  EXPECT_EQ(Chat("/quit\nnever read\n").out, "");
  // Lines between three quotes are one message.
  const Finished lines = Chat("\"\"\"one\n\n/exit\n three\"\"\"\n/undo\n\"\"\"four\"\"\"\n/undo\n");
  EXPECT_TRUE(Has(lines.err, "(taken back: one\n\n/exit\n three)"));
  EXPECT_TRUE(Has(lines.err, "(taken back: four)"));
  ExpectError(Chat("/save\n"), 1, "/save needs the name of a file");
}

TEST(Chat, EverySamplerHasItsFlagsName) {
  const Finished run = Done(
      Chat("/set temp 0.5\n/set --top-k 7\n/set dynatemp-range 0.25\n/set xtc_probability 0.125\n"
           "/set dry-multiplier 0.75\n/set mirostat-ent 4\nHello\n"));
  for (const std::string set : {"temperature 0.5", "top_k 7", "temperature_range 0.25",
                                "xtc_probability 0.125", "dry.multiplier 0.75", "mirostat.tau 4"}) {
    EXPECT_TRUE(Has(run.err, set + " (/set)")) << set;
  }
}

TEST(Chat, SeveralAnswersAreTakenBack) {
  const Finished run = Chat("One\nTwo\nThree\n/undo 2\n/undo 5\n/undo\n");
  EXPECT_TRUE(Has(run.err, "(taken back: Three; Two)"));
  EXPECT_TRUE(Has(run.err, "(taken back: One)"));
  EXPECT_TRUE(Has(run.err, "(nothing to take back)"));
  ExpectError(Chat("/undo x\n"), 1, "expected how many questions to take back");
}

TEST(Chat, SettingsChange) {
  const Finished run = Done(
      Chat("/set temperature 0\nHello\n/clear\n/set parameter seed 7\nHello\n/set num_predict 3\n"
           "/set n_predict 2\n/set verbose\nHello\n"));
  EXPECT_TRUE(Has(run.err, "temperature 0 (/set), top_k 40, top_p 0.95"));
  EXPECT_TRUE(Has(run.err, "seed 7 (/set), num_predict 2 (/set); the rest by default)"));
  EXPECT_TRUE(Has(run.err, "cut after 2 tokens"));
  EXPECT_TRUE(Has(run.err, "generated 2 tokens"));
  // At temperature 0 the seed has no effect.
  std::istringstream answers(run.out);
  std::string first, second;
  std::getline(answers, first);
  std::getline(answers, second);
  EXPECT_EQ(first, second);
  ExpectError(Chat("/set temperature hot\n"), 1,
              "expected a number from 0 to 1000000, found 'hot'");
  ExpectError(Chat("/set top_k 1.5\n"), 1, "expected a whole number");
  ExpectError(Chat("/set num_ctx 0\n"), 1, "whole number from 1 to 1073741824, found '0'");
  ExpectError(Chat("/set mood 5\n"), 1,
              "there is no such setting: there are num_ctx, temperature, top_k, ");
  ExpectError(Chat("/set mirostat 1\n"), 1, "/set mirostat: expected 0 or 2, found 1");
  ExpectError(Chat("/set temprature 5\n"), 1, "did you mean temperature? ");
}

// The conversation is read again, and the new length is kept.
TEST(Chat, TheContextChangesItsLength) {
  const TempDir dir;
  const std::string file = dir.Path("talk.json");
  const Finished run = Done(Chat("Hello\n/set num_ctx 200\n/set c 300\nAnd?\n/stats\n/undo 2\n" +
                                 ("Hello\n/save " + file + "\n")));
  EXPECT_TRUE(Has(run.err, "(the context has 200 tokens"));
  EXPECT_TRUE(Has(run.err, " of 300 tokens; of the last question 0 tokens reused"));
  EXPECT_TRUE(Has(run.err, "(taken back: And?; Hello)"));
  EXPECT_EQ(Json::parse(ReadText(file))["flags"]["--ctx-size"][0], "300");
  EXPECT_TRUE(Has(Done(Pronk({"chat", "--load", file}, "/stats\n")).err, " of 300 tokens"));
  EXPECT_TRUE(Has(Done(Chat("/stats\n", {"--load", file, "-c", "100"})).err, " of 100 tokens"));
  EXPECT_TRUE(Has(Done(Chat("/set num_ctx\n", {"-c", "300"})).err, "(num_ctx 300)"));
  // A length that exceeds the machine's memory changes nothing.
  const Finished large = Chat("Hello\n/set num_ctx 1073741824\n");
  EXPECT_EQ(large.status, 1);
  EXPECT_TRUE(Has(large.err, "fit"));
}

TEST(Chat, AFileIsPartOfTheNextQuestion) {
  const TempDir dir;
  const std::string a = dir.Write("a.txt", "One\ntwo\n"), b = dir.Write("b", "three");
  const std::string file = dir.Path("talk.json");
  const Finished run = Done(Chat("/file " + a + "\n/file " + b + "\nWhat?\nNo more\n/file " + a +
                                     "\n/file -\n/file\nAnd?\n/save " + file + "\n",
                                 {"-c", "500"}));
  EXPECT_TRUE(Has(run.err, "(the next question begins with 2 texts of 12 bytes)"));
  EXPECT_TRUE(Has(run.err, "(no file precedes the next question)"));
  const auto saved = Json::parse(ReadText(file))["messages"];
  EXPECT_EQ(saved[0]["content"], "One\ntwo\n\nthree\n\nWhat?");
  EXPECT_EQ(saved[2]["content"], "No more");
  EXPECT_EQ(saved[4]["content"], "And?");
  ExpectError(Chat("/file " + dir.Path("none") + "\n"), 1, "none: cannot be opened");
  // A terminal quotes the name of a file that is dropped on it.
  for (const std::string& name : {a + " ", "'" + a + "'", "\"" + a + "\" "})
    EXPECT_TRUE(Has(Done(Chat("/file " + name + "\n")).err, "begins with 1 text of 7 bytes"));
}

TEST(Chat, FirstQuestionAndStopText) {
  const Finished run = Done(Chat("", {"-p", "Hello", "-n", "300"}));
  ASSERT_GT(run.out.size(), 20u) << run.out;
  // A stop text from the answer cuts it there.
  const std::string stop = run.out.substr(10, 3);
  const Finished stopped = Chat("", {"-p", "Hello", "-n", "300", "-r", stop});
  EXPECT_EQ(stopped.out, run.out.substr(0, run.out.find(stop)) + "\n");
}

}  // namespace
}  // namespace test
