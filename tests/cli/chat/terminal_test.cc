// pronk in a terminal, as a person uses it: editing, history, pastes, Ctrl-C and Ctrl-D, a resize,
// and terminals or users without escape codes or colour.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/cli/pronk.h"
#include "tests/support/paths.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tmux.h"

namespace test {
namespace {

// A chat with the tiny model; `before` and `after` surround the command.
std::string ChatLine(const std::string& before = "", const std::string& after = "-n 3") {
  return before + " " + Program() + " chat -m " + kModel + " -s 1 --ignore-eos -c 4000 " + after;
}

// From here on the editor reads the keyboard; earlier keys are echoed by the terminal.
const std::string kPrompt = "/help lists the commands.\n>";

class TerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  }
};

TEST_F(TerminalTest, EditingAndHistory) {
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  // "/sstem" with the y inserted, and the rest deleted.
  tmux.Keys({"/sstem First.xx", "C-a", "Right", "Right", "y", "C-e", "BSpace", "BSpace", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the system message is: First.)")) << tmux.Screen();
  // The arrow brings the line back for editing.
  tmux.Keys({"Up", "BSpace", " and last.", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the system message is: First and last.)")) << tmux.Screen();
  tmux.Keys({"Up", "Up", "C-k", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the system message is: First.)", 2)) << tmux.Screen();
  // Tab completes a command; letters beyond ASCII are one key each to rub out.
  tmux.Keys({"/sy", "Tab", "Gr\xC3\xBC\xC3\x9F", "BSpace", "n", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the system message is: Gr\xC3\xBCn)")) << tmux.Screen();
  tmux.Keys({"C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
}

// Joined characters would take an unknown number of columns, so they are shown apart.
TEST_F(TerminalTest, EmojiFamiliesCanBeEdited) {
  const TempDir dir;
  const std::string emoji =
      "\U0001F468\u200D\U0001F469\u200D\U0001F467 \u2764\uFE0F \U0001F44D\U0001F3FD";
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"/system " + emoji + " us", "Left", "X", "C-e", "Y", "BSpace"});
  EXPECT_TRUE(
      tmux.WaitFor("\n> /system \U0001F468\U0001F469\U0001F467 \u2764 \U0001F44D\u3000 uXs\n"))
      << tmux.Screen();
  tmux.Keys({"Enter", "/save " + dir.Path("talk"), "Enter"});
  EXPECT_TRUE(tmux.WaitFor("saved to")) << tmux.Screen();
  EXPECT_TRUE(Has(ReadText(dir.Path("talk")), emoji + " uXs\""));
}

TEST_F(TerminalTest, OneCtrlDEndsAText) {
  Tmux tmux(Program() + " run -m " + kModel + " -f - -n 1");
  tmux.Keys({"Hello", "Enter", "C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
}

TEST_F(TerminalTest, TabCompletesFiles) {
  const TempDir dir;
  dir.Write("talk.json", "[]");
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"/lo", "Tab", dir.Path("ta"), "Tab", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(0 messages loaded from")) << tmux.Screen();
  Tmux in_folder("cd " + dir.Path("") + "; " + ChatLine());
  ASSERT_TRUE(in_folder.WaitFor(kPrompt)) << in_folder.Screen();
  in_folder.Keys({"/lo", "Tab", "Tab", "Enter"});
  EXPECT_TRUE(in_folder.WaitFor("(0 messages loaded from talk.json")) << in_folder.Screen();
}

TEST_F(TerminalTest, SeveralLinesAreOneMessage) {
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  std::string paste;  // longer than the screen is high
  for (int i = 1; i <= 40; ++i) paste += "line " + std::to_string(i) + "\n";
  tmux.Paste(paste);
  ASSERT_TRUE(tmux.WaitFor("line 40")) << tmux.Screen();
  tmux.Keys({"Enter"});
  ASSERT_TRUE(tmux.WaitFor("cut after 3 tokens")) << tmux.Screen();
  tmux.Keys({"/undo", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(taken back: line 1\nline 2\nline 3\n")) << tmux.Screen();
  EXPECT_TRUE(tmux.WaitFor("line 39\nline 40)")) << tmux.Screen();
  // Typed: Alt-Enter, and a backslash at the end.
  tmux.Keys({"one", "M-Enter", "two\\", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("two\\\n.")) << tmux.Screen();
  tmux.Keys({"three", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("cut after 3 tokens", 2)) << tmux.Screen();
  tmux.Keys({"/undo", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(taken back: one\ntwo\nthree)")) << tmux.Screen();
}

TEST_F(TerminalTest, CtrlCStopsTheAnswerAndNotTheProgram) {
  Tmux tmux(ChatLine("", "-c 200000"));  // an answer without end
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  // Its noise fills the screen.
  const auto flows_beyond = [&](size_t size) {
    return tmux.WaitUntil([&](const std::string& screen) { return screen.size() > size; });
  };
  tmux.Keys({"Go on", "Enter"});
  ASSERT_TRUE(flows_beyond(300)) << tmux.Screen();
  tmux.Keys({"C-c"});
  ASSERT_TRUE(tmux.WaitFor("(stopped)\n>")) << tmux.Screen();
  tmux.Keys({"/regen", "Enter"});
  ASSERT_TRUE(flows_beyond(tmux.Screen().size() + 300)) << tmux.Screen();
  tmux.Keys({"C-c"});
  ASSERT_TRUE(tmux.WaitFor("(stopped)\n>", 2)) << tmux.Screen();
  // At the prompt it deletes the line, and says how to leave.
  tmux.Keys({"half a questi", "Left", "Left"});
  ASSERT_TRUE(tmux.WaitFor("half a questi")) << tmux.Screen();
  tmux.Keys({"C-c"});
  EXPECT_TRUE(tmux.WaitFor("\n> half a questi^C\n(Ctrl-C again, Ctrl-D or /exit leaves)\n>"))
      << tmux.Screen();
  tmux.Keys({"/exit", "Enter"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
}

// The second of two quick Ctrl-C may come while the answer stops or at the prompt. A third leaves.
TEST_F(TerminalTest, TwoQuickCtrlCKeepTheTurn) {
  const TempDir state;
  Tmux tmux(ChatLine("XDG_STATE_HOME=" + state.Path(""), "-c 200000"));
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"Go on", "Enter"});
  ASSERT_TRUE(tmux.WaitUntil([](const auto& screen) { return screen.size() > 300; }));
  tmux.Keys({"C-c", "C-c"});
  ASSERT_TRUE(tmux.WaitFor("(stopped)\n")) << tmux.Screen();
  tmux.Keys({"/undo", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("(taken back: Go on)")) << tmux.Screen();
  tmux.Keys({"/set num_predict 3", "Enter", "Hello", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("cut after 3 tokens")) << tmux.Screen();
  tmux.Keys({"/stats", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("\nthreads: ")) << tmux.Screen();
  tmux.Keys({"C-c"});  // at an empty prompt
  EXPECT_EQ(tmux.WaitForEnd(), 130) << tmux.Screen();
  // The chat is there.
  const Finished list = Pronk({"chat", "--list"}, "", {"XDG_STATE_HOME=" + state.Path("")});
  EXPECT_TRUE(Has(list.out, "\"Hello\"\n"));
}

// A shell that runs several programs continues only after a program that the signal itself did not
// end.
TEST_F(TerminalTest, CtrlCEndsALoopOfRuns) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  Tmux tmux("bash -c 'for i in 1 2 3; do " + Program() + " run -m " + kModel +
            " -p x --ignore-eos -c 200000; done; echo went on'");
  ASSERT_TRUE(tmux.WaitUntil([](const auto& screen) { return screen.size() > 300; }));
  tmux.Keys({"C-c"});
  EXPECT_EQ(tmux.WaitForEnd(), 130) << tmux.Screen();
  EXPECT_FALSE(Has(tmux.Screen(), "went on"));
}

bool ShowsReading(const std::string& screen) {
  return screen.find("reading ") != std::string::npos && screen.find(" left") != std::string::npos;
}

TEST_F(TerminalTest, APromptIsWatchedAndStopped) {
  const TempDir dir;
  std::string text = "Tom saw";
  for (int i = 0; i < 8'000; ++i) text += " it";
  const std::string path =
      dir.Write("talk.json", R"([{"role": "user", "content": ")" + text +
                                 R"("}, {"role": "assistant", "content": ""}])");
  Tmux tmux(Program() + " chat -t 1 -c 12000 -n 1");
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"/load " + path, "Enter", "Why?", "Enter"});
  ASSERT_TRUE(tmux.WaitUntil(ShowsReading)) << tmux.Screen();
  tmux.Keys({"C-c"});
  EXPECT_TRUE(tmux.WaitFor("(stopped while reading: the question is taken back")) << tmux.Screen();
  tmux.Keys({"C-d"});
  EXPECT_EQ(tmux.WaitForEnd(), 0) << tmux.Screen();
}

// On a narrow terminal, too, in one line.
TEST_F(TerminalTest, AWindowIsWatchedAndStopped) {
  const TempDir dir;
  std::string text = "Tom saw";
  for (int i = 0; i < 12'000; ++i) text += " it";
  Tmux tmux(Program() + " perplexity -t 1 -c 12000 -f " + dir.Write("text", text));
  tmux.Resize(16, 10);
  ASSERT_TRUE(tmux.WaitFor("reading ")) << tmux.Screen();
  const std::string before = tmux.Screen();
  ASSERT_TRUE(tmux.WaitUntil([&](const auto& now) { return now != before; }));
  EXPECT_EQ(Count(tmux.Screen(), "reading"), 1u) << tmux.Screen();
  tmux.Keys({"C-c"});
  EXPECT_EQ(tmux.WaitForEnd(), 130) << tmux.Screen();
}

// At the prompt and during an answer the keyboard is in another mode than usual. The model is
// larger than the copy of its head, which outlives a truncated file.
TEST_F(TerminalTest, SignalsLeaveTheTerminalAsItWas) {
  for (const std::string signal : {"TERM", "HUP", "BUS"}) {
    for (const bool at_prompt : {true, false}) {
      SCOPED_TRACE(signal + (at_prompt ? " at the prompt" : " during an answer"));
      const TempDir dir;
      const std::string model = dir.Write("model", ReadText(kDefault));
      const std::string pid = dir.Path("pid");
      Tmux tmux("sh -c 'echo $$ >" + pid + "; exec " + Program() + " chat -m " + model +
                " -s 1 --ignore-eos -c 200000'; s=$?; echo; echo \"status $s\"; stty -a");
      ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
      if (!at_prompt) {
        tmux.Keys({"Go on", "Enter"});
        ASSERT_TRUE(tmux.WaitUntil([](const auto& screen) { return screen.size() > 300; }));
      }
      if (signal == "BUS") {  // as the system sends it when the mapped file was shortened
        std::filesystem::resize_file(model, 0);
        if (at_prompt) tmux.Keys({"Go on", "Enter"});
      } else {
        Shell("kill -" + signal + " $(cat " + pid + ")");
      }
      const std::string status = signal == "TERM" ? "143" : signal == "HUP" ? "129" : "1";
      ASSERT_TRUE(tmux.WaitFor("status " + status + "\n")) << tmux.Screen();
      for (const char* as_usual : {" icanon", " echo ", " icrnl"}) {
        EXPECT_TRUE(tmux.WaitFor(as_usual)) << tmux.Screen();
      }
    }
  }
}

TEST_F(TerminalTest, Resize) {
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"/system a line that is longer than forty columns will be"});
  ASSERT_TRUE(tmux.WaitFor("columns will be")) << tmux.Screen();
  tmux.Resize(40, 12);
  tmux.Keys({" after the resize"});
  ASSERT_TRUE(tmux.WaitFor("after the resize")) << tmux.Screen();
  tmux.Resize(100, 30);
  // What was drawn before the resize is gone from the screen.
  EXPECT_TRUE(
      tmux.WaitFor("commands.\n> /system a line that is longer than forty columns will be "
                   "after the resize\n"))
      << tmux.Screen();
  tmux.Keys({"Enter"});
  EXPECT_TRUE(tmux.WaitUntil([](std::string screen) {  // in lines as wide as it knows by now
    std::ranges::replace(screen, '\n', ' ');
    return Has(screen,
               "(the system message is: a line that is longer than forty columns will be after the "
               "resize)");
  })) << tmux.Screen();
}

TEST_F(TerminalTest, NotesBreakBetweenWords) {
  Tmux tmux("sleep 0.5; " + Program() + " chat -m nowhere");
  tmux.Resize(30, 12);
  EXPECT_EQ(tmux.WaitForEnd(), 1);
  EXPECT_TRUE(
      Has(tmux.Screen(), "pronk: -m: no file and no\nmodel called nowhere ('pronk\nlist')"));
}

// Ctrl-Z, another command, and back: the line is kept and can be edited.
TEST_F(TerminalTest, StoppedAndContinued) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  Tmux tmux("PS1='sh: ' bash --norc --noprofile -i");
  ASSERT_TRUE(tmux.WaitFor("sh:")) << tmux.Screen();
  tmux.Keys({ChatLine(), "Enter"});
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"/system One."});
  ASSERT_TRUE(tmux.WaitFor("/system One.")) << tmux.Screen();
  tmux.Keys({"C-z"});
  ASSERT_TRUE(tmux.WaitFor("Stopped")) << tmux.Screen();
  tmux.Keys({"fg", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("/system One.", 2)) << tmux.Screen();
  tmux.Keys({"BSpace", " two.", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the system message is: One two.)")) << tmux.Screen();
}

// After an answer, which was computed by other threads than the one that waits for keys.
TEST_F(TerminalTest, StoppedAndContinuedAfterAnAnswer) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  Tmux tmux("PS1='sh: ' bash --norc --noprofile -i");
  ASSERT_TRUE(tmux.WaitFor("sh:")) << tmux.Screen();
  tmux.Keys({Program() + " chat -n 20", "Enter"});
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  tmux.Keys({"Tell me of Nora.", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("cut after 20 tokens, as -n says)\n>")) << tmux.Screen();
  tmux.Keys({"C-z"});
  ASSERT_TRUE(tmux.WaitFor("Stopped")) << tmux.Screen();
  tmux.Keys({"fg", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("chat -n 20\n>")) << tmux.Screen();
}

TEST_F(TerminalTest, TabCompletesSettings) {
  Tmux tmux(ChatLine());
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  // If several commands begin like this, they are shown; after a name, its current value.
  tmux.Keys({"/set to", "Tab", "Tab"});
  ASSERT_TRUE(tmux.WaitFor("\n> /set top_\ntop_k   top_p   top_n_sigma\n> /set top_"))
      << tmux.Screen();
  tmux.Keys({"k", "Tab", "Tab", "0", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("top_k 400 (/set)")) << tmux.Screen();
  tmux.Keys({"/set nu", "Tab", "c", "Tab", "Tab", "Enter"});
  EXPECT_TRUE(tmux.WaitFor("(the context has 4000 tokens")) << tmux.Screen();
}

TEST_F(TerminalTest, TheDefaultModelSaysWhatItIs) {
  Tmux tmux(Program() + " chat");
  ASSERT_TRUE(tmux.WaitFor(kPrompt)) << tmux.Screen();
  EXPECT_TRUE(Has(tmux.Screen(), "This model is a toy that tells stories"));
  EXPECT_TRUE(Has(tmux.Screen(), "./pronk pull "));
  Tmux other(ChatLine());
  ASSERT_TRUE(other.WaitFor(kPrompt)) << other.Screen();
  EXPECT_FALSE(Has(other.Screen(), "toy"));
}

// A terminal whose every byte can be seen, by Linux's `script`.
bool HasScript() { return Shell("script -qc true /dev/null").status == 0; }

TEST_F(TerminalTest, DumbTerminalsGetNoEscapeCodes) {
  if (!HasScript()) GTEST_SKIP() << "script is not installed";
  Tmux tmux(ChatLine("script -qc 'TERM=dumb", "-n 3' /dev/null | cat -v"));
  ASSERT_TRUE(tmux.WaitFor("/help lists the commands")) << tmux.Screen();
  tmux.Keys({"/stats", "Enter"});
  ASSERT_TRUE(tmux.WaitFor("no answer yet")) << tmux.Screen();
  tmux.Keys({"/exit", "Enter"});
  tmux.WaitForEnd();
  EXPECT_FALSE(Has(tmux.Screen(), "^["));
}

TEST_F(TerminalTest, NotesAreDimWhereColourIsWanted) {
  if (!HasScript()) GTEST_SKIP() << "script is not installed";
  for (const std::string wanted : {"", "NO_COLOR=1"}) {
    Tmux tmux(ChatLine("script -qc '" + wanted, "-ngl 99' /dev/null | cat -v"));
    ASSERT_TRUE(tmux.WaitFor("lists the commands")) << tmux.Screen();
    tmux.Keys({"/exit", "Enter"});
    tmux.WaitForEnd();
    // cat -v shows the escape code of dim text.
    EXPECT_EQ(Count(tmux.Screen(), "^[[2m") == 0, !wanted.empty()) << tmux.Screen();
    const std::string note = "note: no effect here: -ngl (CPU only)";
    EXPECT_TRUE(Has(tmux.Screen(), (wanted.empty() ? "^[[2m" : "") + note));
  }
}

// The prompt is bold, and what is typed and answered is not.
TEST_F(TerminalTest, OnlyThePromptIsBold) {
  if (!HasScript()) GTEST_SKIP() << "script is not installed";
  Tmux tmux(ChatLine("script -qc '", "-n 3' /dev/null | cat -v"));
  ASSERT_TRUE(tmux.WaitFor("lists the commands")) << tmux.Screen();
  tmux.Keys({"/exit", "Enter"});
  tmux.WaitForEnd();
  EXPECT_TRUE(Has(tmux.Screen(), "^[[1m>^[[0m ")) << tmux.Screen();
}

// What a model writes is text, not commands to the terminal.
TEST_F(TerminalTest, ControlCharactersAreShownNotObeyed) {
  Tmux tmux(std::string("printf 'a\\033]0;title\\007b' | " + Program() + " run -m ") + kModel +
            " -n 1");
  EXPECT_EQ(tmux.WaitForEnd(), 0);
  EXPECT_TRUE(Has(tmux.Screen(), "a\uFFFD]0;title\uFFFDb"));
}

}  // namespace
}  // namespace test
