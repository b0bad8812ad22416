// pronk run beyond a plain prompt: its cache, chat templates, pipes, locales.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

// The usual model completes a text without a flag; a single word names a model.
TEST(Run, TakesATextAlone) {
  const Finished run =
      Done(Pronk({"run", "Hello you", "-n", "3", "--temp", "0"}, "", {"PRONK_MODEL=" + kModel}));
  EXPECT_EQ(run.out.rfind("Hello you", 0), 0u) << run.out;
  ExpectError(Pronk({"run", "Hello"}), 1, "no model called Hello");
}

// A prompt is read only once, and the text is the same.
TEST(RunPromptCache, ReadsAPromptOnce) {
  const TempDir dir;
  const std::string cache = dir.Path("cache");
  const auto run = [&](const std::string& prompt, std::vector<std::string> rest) {
    return Pronk(With(
        {"run", "-m", kModel, "-p", prompt, "-n", "8", "-s", "3", "--ignore-eos", "--json"}, rest));
  };
  const auto tokens = [](const Finished& finished) { return Json::parse(finished.out)["tokens"]; };
  const std::string prompt = "Hello and a good day to all of you";
  const auto expected = tokens(run(prompt, {}));
  const Finished first = Done(run(prompt, {"--prompt-cache", cache}));
  EXPECT_EQ(tokens(first), expected);
  const Finished second = run(prompt, {"--prompt-cache", cache});
  EXPECT_EQ(tokens(second), expected);
  EXPECT_EQ(Json::parse(second.out)["prompt_tokens"], 0);
  EXPECT_TRUE(Has(second.err, "tokens of the prompt taken from " + cache));
  // A longer prompt reads only its new tokens, and replaces the first.
  const Finished longer = run(prompt + ", and", {"--prompt-cache", cache});
  EXPECT_LT(Json::parse(longer.out)["prompt_tokens"], 8);
  EXPECT_EQ(Json::parse(run(prompt + ", and", {"--prompt-cache", cache}).out)["prompt_tokens"], 0);
  // Other prompts have little in common with it.
  EXPECT_EQ(tokens(run("Bye", {"--prompt-cache", cache})), tokens(run("Bye", {})));

  // A prompt that is longer than the context is replaced, too.
  const std::string words(150, 'z');
  Done(run(words, {"--prompt-cache", cache}));
  const Finished small = Done(run("Bye", {"--prompt-cache", cache, "-c", "64"}));
  EXPECT_EQ(tokens(small), tokens(run("Bye", {})));
  EXPECT_TRUE(Has(small.err, "the context has room for 64: the prompt is read anew"));
  EXPECT_TRUE(Has(run("Bye", {"--prompt-cache", cache}).err, "tokens of the prompt taken"));

  ExpectError(run(prompt, {"--prompt-cache", cache, "--kv", "f32"}), 1, "another type of cache");
  dir.Write("cache", "no session");
  ExpectError(run(prompt, {"--prompt-cache", cache}), 1, "is not a session file of pronk");
  ExpectError(run(prompt, {"--prompt-cache", kModel}), 1, "is a file that is read");
  ExpectError(run(prompt, {"--prompt-cache", dir.Path("no/folder")}), 1, "there is no folder");
}

// --chat renders the prompt with the template: its ids are the rendered text's.
TEST(RunChat, AppliesTheTemplate) {
  const Finished chat = Done(Pronk({"run", "-m", kModel, "--chat", "--system", "Be kind.", "-p",
                                    "Hello!", "-n", "5", "--temp", "0", "--json"}));
  const Finished plain =
      Pronk({"run", "-m", kModel, "--special", "-p", "Be kind.\n\nUser: Hello!\nAssistant:", "-n",
             "5", "--temp", "0", "--json"});
  const auto a = Json::parse(chat.out), b = Json::parse(plain.out);
  EXPECT_EQ(a["prompt_tokens"], b["prompt_tokens"]);
  EXPECT_EQ(a["tokens"], b["tokens"]);
  // The question is not repeated before the answer.
  const Finished text =
      Pronk({"run", "-m", kModel, "--chat", "-p", "Hello!", "-n", "5", "--temp", "0"});
  EXPECT_FALSE(Has(text.out, "Hello!"));
}

// A template other than the model's, and its variables besides the conversation.
TEST(RunChat, TakesATemplateAndItsVariables) {
  const TempDir dir;
  const std::string source =
      dir.Write("t.jinja",
                "{{ bos_token }}{% if loud %}LOUD{% endif %}{{ n + 1 }}{{ messages[-1].content }}");
  const Args flags = {"-m",        kModel,           "--template", source, "--template-var",
                      "loud=true", "--template-var", "n=41"};
  const std::string messages =
      dir.Write("messages.json", R"([{"role": "user", "content": "Hello!"}])");
  const Finished text = Pronk(With({"template", "--messages", messages}, flags));
  EXPECT_EQ(text.out, "<s>LOUD42Hello!") << text.err;

  const auto run = [](const Args& args) {
    const Finished finished = Done(Pronk(With(args, {"-n", "5", "--temp", "0", "--ignore-eos"})));
    return finished.out;
  };
  const std::string plain = run({"run", "-m", kModel, "-p", "LOUD42Hello!", "--no-display-prompt"});
  EXPECT_EQ(run(With({"run", "--chat", "-p", "Hello!"}, flags)), plain);
  EXPECT_EQ(run(With({"chat", "-p", "Hello!"}, flags)), plain);

  for (const std::string wrong : {"loud", "=1", "loud=", "loud=yes"}) {
    ExpectError(Pronk({"run", "-m", kModel, "--chat", "-p", "x", "--template-var", wrong}), 2,
                "expected NAME=JSON");
  }
}

TEST(Run, VerboseTellsWhatWasChosen) {
  const Finished run =
      Done(Pronk({"run", "-m", kModel, "-p", "x", "-n", "1", "-t", "1", "-s", "42", "--verbose"}));
  for (const char* says : {"model ", "memory ", "context ", "as -t says", "the best of", "42"}) {
    EXPECT_TRUE(Has(run.err, says));
  }
}

// A text that the context cuts off is reported as incomplete.
TEST(Run, FullContextIsSaid) {
  const Args args = {"run", "-m", kModel, "-p", "Hello", "-c", "16", "--ignore-eos", "-s", "1"};
  const Finished run = Done(Pronk(args));
  EXPECT_EQ(run.err,
            "pronk: note: the context is full, so the text ends here; -c makes it larger\n");
  const Finished json = Pronk(With(args, {"--json"}));  // the object says so
  EXPECT_EQ(json.err, "");
  EXPECT_TRUE(Has(json.out, "\"context\""));
  EXPECT_EQ(Pronk(With(args, {"-n", "2"})).err, "");
}

// Without -c the context begins with 4,096 tokens and becomes as large as the text needs; the text
// is the one that a large context gives.
TEST(Run, TheContextGrows) {
  const TempDir dir;
  const std::string text = dir.Write("text", std::string(5000, '3'));
  const Args trained = {"-m", kModel, "--override-kv", "llama.context_length=int:6000", "-s", "1"};
  const auto json = [&](const Args& args) {
    const Json all =
        Json::parse(Done(Pronk(With(With({"run", "-f", text, "--json"}, trained), args))).out);
    return std::make_pair(all["tokens"], all["stop_reason"]);
  };
  EXPECT_EQ(json({"-n", "9"}), json({"-n", "9", "-c", "6000"}));
  const auto end = json({"--ignore-eos"});
  EXPECT_EQ(end, json({"--ignore-eos", "-c", "6000"}));
  EXPECT_EQ(end.second, "context");
  EXPECT_GT(end.first.size(), 900u);

  // Two questions that together exceed 4,096 tokens: nothing is forgotten.
  const std::string questions = std::string(2150, '3') + "\n" + std::string(2150, '4') + "\n";
  const Args chat = With({"chat", "-n", "5"}, trained);
  const Finished grown = Done(Pronk(chat, questions));
  EXPECT_EQ(grown.out, Pronk(With(chat, {"-c", "6000"}), questions).out);
  EXPECT_FALSE(Has(grown.err, "forgotten")) << grown.err;
  EXPECT_TRUE(Has(Pronk(With(chat, {"-c", "4096"}), questions).err, "are forgotten"));

  const Finished verbose = Pronk(With({"run", "-p", "x", "-n", "1", "-v"}, trained));
  EXPECT_TRUE(Has(verbose.err, "4096 tokens, which may grow to 6000; trained for 6000"));
  const std::string longer = dir.Write("longer", std::string(7000, '3'));
  const Finished refused = Pronk(With({"run", "-f", longer}, trained));
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(Has(refused.err,
                  "pronk: the text needs 7002 tokens, and the context has room for 6000 (the model "
                  "was trained for 6000; there is memory for "));
}

// The space that SPM puts before a text is not part of it, wherever the text is shown.
TEST(Run, ATextDoesNotBeginWithTheSpaceOfItsTokens) {
  const Args args = {"-m", DataPath("families/olmo3.gguf"), "-n", "3", "-s", "4", "--ignore-eos"};
  const std::string json = Pronk(With({"run", "-p", "", "--json"}, args)).out;
  const std::string text = Json::parse(json)["text"];
  EXPECT_EQ(text, "\5\17");
  EXPECT_EQ(Pronk(With({"run", "-p", ""}, args)).out, text + "\n");
  const Args chat = {"-m", kModel, "-n", "5", "-s", "1", "-p", "Hi"};
  const Json answer = Json::parse(Pronk(With({"run", "--chat", "--json"}, chat)).out);
  const std::string shown = Pronk(With({"run", "--chat"}, chat)).out;
  EXPECT_EQ(answer["text"].get<std::string>() + "\n", shown);
  EXPECT_EQ(Pronk(With({"chat"}, chat)).out, shown);
}

// A closed pipe ends the run quietly: head leaves after one byte of a text without end.
TEST(Run, ClosedPipe) {
  const Finished run = Shell(
      R"({ "$PRONK" run -m "$MODEL" -p Hello --ignore-eos -c 100000; echo "status $?" >&2; } | head -c 1)");
  EXPECT_EQ(run.out, "H");
  EXPECT_EQ(run.err, "status 0\n");
  const Finished full = Shell(R"("$PRONK" run -m "$MODEL" -p Hello -n 1 >/dev/full)");
  EXPECT_EQ(full.status, 1);
  EXPECT_TRUE(Has(full.err, "cannot write to the output"));
}

// Signals without a terminal, as a script sees them.
TEST(Run, StatusAfterASignal) {
  const std::string flags = " -m \"$MODEL\" --ignore-eos -c 200000 >/dev/null";
  const auto timeout = [&](const std::string& signal, const std::string& command) {
    return Shell("yes Hi | timeout --foreground --preserve-status -s " + signal +
                 " 0.3 \"$PRONK\" " + command + flags)
        .status;
  };
  EXPECT_EQ(timeout("INT", "run -p Hi"), 130);
  EXPECT_EQ(timeout("TERM", "run -p Hi"), 143);
  EXPECT_EQ(timeout("INT", "chat"), 130);
}

// A long text is read for seconds, and the signal comes after one. What is checked is the time of
// the processor, since others may be busy with the machine.
TEST(Run, ASignalEndsTheReadingAtOnce) {
  const TempDir dir;
  std::string text = "Tom saw";
  for (int i = 0; i < 30'000; ++i) text += " it";
  const Finished run =
      Shell("timeout --foreground --preserve-status -s INT 1 \"$PRONK\" run -v -t 1 -c 30100 -f " +
            dir.Write("text", text));
  EXPECT_EQ(run.status, 130) << run.err;
  EXPECT_TRUE(Has(run.err, " of 30"));  // tokens were read
  EXPECT_TRUE(Has(run.err, "| generated 0 tokens"));
  EXPECT_LT(run.seconds, 1 + 0.2);
}

// Text passes through as bytes, whatever the locale; nothing else goes to stdout.
TEST(Run, NoEscapeCodesIntoPipes) {
  for (const char* locale : {"LC_ALL=C", "LC_ALL=C.UTF-8", "LC_ALL=de_DE.ISO-8859-1"}) {
    const Finished run = Done(Pronk({"run", "-m", kModel, "-n", "8", "-s", "1"},
                                    "Gr\u00FC\u00DFe\n", {locale, "TERM=xterm-256color"}));
    EXPECT_TRUE(run.out.starts_with("Gr\u00FC\u00DFe")) << locale << ": " << run.out;
    EXPECT_EQ(run.err, "") << locale;
    EXPECT_FALSE(Has(run.out, "\033")) << locale;
  }
}

}  // namespace
}  // namespace test
