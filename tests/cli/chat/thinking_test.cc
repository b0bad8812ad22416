// Models that think: where the thinking is shown, whether it is kept, how it is turned off. The
// models are scripted: they write a given text.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/paths.h"
#include "tests/support/scripted_model.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tmux.h"

namespace test {
namespace {

using tokenizer::TokenType;

// A template that reads reasoning_content, and shows the last answer's.
const std::string kTags =
    "{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content and loop.index0 == messages|length - 2 %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% endfor %}[assistant]"
    "{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}";

class ThinkingTest : public testing::Test {
 protected:
  std::string Model(const std::vector<ScriptedToken>& script,
                    const std::string& chat_template) const {
    return dir_.Write("model.gguf", ScriptedModel(script, chat_template));
  }
  // The model thinks "hm so", and answers "Yes indeed".
  std::string Thinker(const std::string& chat_template = kTags) const {
    return Model({{"<think>", TokenType::kUserDefined},
                  {"\n"},
                  {"hm"},
                  {" so"},
                  {"\n\n"},
                  {"</think>", TokenType::kUserDefined},
                  {"\n\n\n"},
                  {"Yes"},
                  {" indeed"}},
                 chat_template);
  }
  static Finished Run(const std::string& model, const Args& more) {
    return Pronk(With({"run", "-m", model, "--chat", "-p", "Why?", "--temp", "0"}, more));
  }

  const TempDir dir_;
};

TEST_F(ThinkingTest, PipesGetTheAnswerOnly) {
  const std::string model = Thinker();
  const Finished run = Run(model, {});
  EXPECT_EQ(run.out, "Yes indeed\n");
  EXPECT_EQ(run.err, "");
  const auto json = Json::parse(Run(model, {"--json"}).out);
  EXPECT_EQ(json["text"], "Yes indeed");
  EXPECT_EQ(json["thinking"], "hm so");
  EXPECT_EQ(json["tokens"].size(), 9u);
  // Without a template, tags are text.
  EXPECT_EQ(Pronk({"run", "-m", model, "-p", "x", "--temp", "0", "--no-display-prompt"}).out,
            "<think>\nhm so\n\n</think>\n\n\nYes indeed\n");
  // Cut off before the answer, with a note.
  const Finished cut = Run(model, {"-n", "4"});
  EXPECT_EQ(cut.out, "\n");
  EXPECT_TRUE(Has(cut.err, "while the model was still thinking"));
}

// gpt-oss: its marks are control tokens, which are not text otherwise.
TEST_F(ThinkingTest, Channels) {
  const std::string model = Model({{"hm"},
                                   {"<|end|>", TokenType::kControl},
                                   {"<|start|>", TokenType::kControl},
                                   {"assistant"},
                                   {"<|channel|>", TokenType::kControl},
                                   {"final"},
                                   {"<|message|>", TokenType::kControl},
                                   {"Yes"},
                                   {"<|return|>", TokenType::kControl}},
                                  "<|start|>user<|message|>{{ messages[-1].content }}<|end|>"
                                  "<|start|>assistant<|channel|>analysis<|message|>{{ '\n' }}");
  EXPECT_EQ(Run(model, {}).out, "Yes\n");
  const auto json = Json::parse(Run(model, {"--json"}).out);
  EXPECT_EQ(json["text"], "Yes");
  EXPECT_EQ(json["thinking"], "hm");
}

TEST_F(ThinkingTest, HistoryKeepsItApart) {
  const std::string model = Thinker(), file = dir_.Path("talk.json");
  const auto chat = [&](const std::string& input) {
    return Pronk({"chat", "-m", model, "--temp", "0", "-v"}, input);
  };
  const Finished run = chat("Why?\nWhy not?\n/save " + file + "\n");
  EXPECT_EQ(run.out, "Yes indeed\nYes indeed\n") << run.err;
  const auto saved = Json::parse(ReadText(file))["messages"];
  ASSERT_EQ(saved.size(), 4u);
  EXPECT_EQ(saved[1]["content"], "Yes indeed");
  EXPECT_EQ(saved[1]["reasoning_content"], "hm so");
  // The template receives the thinking, and places it.
  EXPECT_EQ(Pronk({"template", "-m", model, "--messages", file}).out,
            "[user]Why?[assistant]Yes indeed[user]Why not?[assistant]Yes indeed[assistant]");
  EXPECT_EQ(chat("/load " + file + "\n/undo\n/save " + dir_.Path("b") + "\n").status, 0);
  EXPECT_EQ(Json::parse(ReadText(dir_.Path("b")))["messages"][1], saved[1]);
}

TEST_F(ThinkingTest, TheSwitch) {
  const std::string model = Thinker();
  const std::string messages = dir_.Write("m.json", R"([{"role": "user", "content": "Why?"}])");
  const auto prompt = [&](const std::string& flag, const std::string& level = "") {
    std::vector<std::string> args = {"template", "-m", model, "--messages", messages, flag};
    if (!level.empty()) args.push_back(level);
    return Pronk(args).out;
  };
  EXPECT_EQ(prompt("--no-think"), "[user]Why?[assistant]<think></think>");
  EXPECT_EQ(prompt("--think", "off"), "[user]Why?[assistant]<think></think>");
  EXPECT_EQ(prompt("--think=off"), "[user]Why?[assistant]<think></think>");
  EXPECT_EQ(prompt("--think"), "[user]Why?[assistant]");
  ExpectError(Run(model, {"--think", "low"}), 1, "knows no levels");
  ExpectError(Run(model, {"--think", "--no-think"}), 2, "give one of them");
  ExpectError(Run(Thinker("{{ messages[0].content }}"), {"--no-think"}), 1, "no switch");
  ExpectError(Run(Thinker("{{ reasoning_effort }}{{ messages[0].content }}"), {"--no-think"}), 1,
              "cannot turn thinking off");
}

TEST_F(ThinkingTest, CommandsOfChat) {
  const std::string model = Thinker();
  const auto chat = [&](const std::string& input) {
    return Pronk({"chat", "-m", model, "--temp", "0"}, input);
  };
  const Finished run =
      Done(chat("/think off\nWhy?\n/stats\n/set think\n/set nothink\n/think\n/bye\n"));
  EXPECT_TRUE(Has(run.err, "(thinking: off)"));
  EXPECT_TRUE(Has(run.err, "(thinking: on)"));
  ExpectError(chat("/think a lot\n"), 1, "on, off, low, medium, high or a number");
  ExpectError(chat("/think low\n"), 1, "no levels");
}

// At the budget the message and the end of the thinking are written for the model.
TEST_F(ThinkingTest, HasABudget) {
  const std::string model = Thinker();
  const auto thinking = [&](const Args& more) {
    const auto json = Json::parse(Run(model, With({"--json"}, more)).out);
    EXPECT_EQ(json["text"], "Yes indeed");
    return json.contains("thinking") ? json["thinking"].get<std::string>() : "";
  };
  EXPECT_EQ(thinking({"--reasoning-budget", "-1"}), "hm so");
  EXPECT_EQ(thinking({"--reasoning-budget", "2"}), "hm");
  EXPECT_EQ(thinking({"--reasoning-budget", "0"}), "");
  EXPECT_EQ(thinking({"--reasoning-budget", "2", "--reasoning-budget-message", "...enough."}),
            "hm...enough.");
  EXPECT_TRUE(Has(Run(Thinker("{{ messages[0].content }}"), {"--reasoning-budget", "2"}).err,
                  "has no thinking"));
  ExpectError(Pronk({"run", "-m", model, "-p", "x", "--reasoning-budget", "2"}), 2,
              "no effect without --chat");
  const Finished chat =
      Done(Pronk({"chat", "-m", Thinker(), "--temp", "0", "--reasoning-budget", "0"},
                 "/think 2\nWhy?\n/think -1\n/save " + dir_.Path("c.json") + "\nWhy?\n/save " +
                     dir_.Path("d.json") + "\n"));
  EXPECT_TRUE(Has(chat.err, "(thinking: at most 2 tokens of it)"));
  const auto saved = Json::parse(ReadText(dir_.Path("d.json")))["messages"];
  EXPECT_EQ(saved[1]["reasoning_content"], "hm");
  EXPECT_EQ(saved[3]["reasoning_content"], "hm so");
}

TEST_F(ThinkingTest, DimOnATerminal) {
  if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  if (Shell("script -qc true /dev/null").status != 0) GTEST_SKIP() << "script is missing";
  const std::string run = Program() + " run --chat -p Why? --temp 0 -m " + Thinker() +
                          "\" /dev/null | tr -d '\\r' | cat -v";
  Tmux dim("script -qc \"TERM=xterm " + run);
  ASSERT_TRUE(dim.WaitFor("Yes indeed")) << dim.Screen();
  EXPECT_TRUE(Has(dim.Screen(), "^[[2m"));
  EXPECT_TRUE(Has(dim.Screen(), "hm"));
  EXPECT_FALSE(Has(dim.Screen(), "think"));
  // Without colour, words mark the thinking.
  Tmux plain("script -qc \"NO_COLOR=1 TERM=xterm " + run);
  ASSERT_TRUE(plain.WaitFor("(thinking)\nhm so\n(done thinking)\n\nYes indeed")) << plain.Screen();
  // The user sees the thinking on stderr, and the pipe gets the answer.
  Tmux piped(Program() + " run --chat -p Why? --temp 0 -m " + Thinker() + " | tr a-z A-Z");
  ASSERT_TRUE(piped.WaitFor("YES INDEED")) << piped.Screen();
  EXPECT_TRUE(Has(piped.Screen(), "hm so"));
}

// Lines end between words; longer words are broken, and a line of the text stays a line.
TEST_F(ThinkingTest, WordsWrap) {
  if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  const std::string a(50, 'a'), b(29, 'b'), c(30, 'c'), d(100, 'd');
  const std::string model = Model({{a},
                                   {" " + b},
                                   {" " + c.substr(5)},
                                   {"ccccc"},
                                   {"\n  x"},
                                   {" \xE4\xBD\xA0"},
                                   {" " + d},
                                   {" e"}},
                                  "{{ messages[-1].content }}");
  Tmux tmux(Program() + " run --chat -p Why? --temp 0 -m " + model);
  EXPECT_TRUE(tmux.WaitFor(a + " " + b + "\n" + c + "\n  x \xE4\xBD\xA0 " + d.substr(0, 73) + "\n" +
                           d.substr(73) + " e"))
      << tmux.Screen();
  // A pipe gets the text as the model wrote it.
  EXPECT_EQ(Run(model, {}).out, a + " " + b + " " + c + "\n  x \xE4\xBD\xA0 " + d + " e\n");
}

TEST_F(ThinkingTest, AModelWithoutATemplateIsSaidToBeOne) {
  if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  Tmux tmux(Program() + " chat --temp 0 -m " + Model({{"Yes"}}, ""));
  EXPECT_TRUE(tmux.WaitFor("has no chat template")) << tmux.Screen();
}

}  // namespace
}  // namespace test
