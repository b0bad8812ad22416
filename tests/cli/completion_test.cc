// Completions and the manual: they have every flag, and shells accept them.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/options/command_line.h"
#include "tests/cli/command_text.h"
#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tmux.h"

namespace test {
namespace {

// Every long flag of run.
std::set<std::string> FlagsOfRun() {
  const CommandTable table;
  std::set<std::string> flags;
  for (const cli::Flag& flag : table.line.commands()[0].flags) {
    for (const std::string& name : flag.names) {
      if (name.starts_with("--")) flags.insert(name);
    }
  }
  return flags;
}

// A home whose bin/pronk, first in PATH, answers completion's requests, and otherwise writes its
// arguments to the file `given`, one a line.
std::string HomeWithPronk(const TempDir& dir) {
  std::filesystem::create_directories(dir.Path("bin"));
  std::filesystem::create_directories(dir.Path("here/models"));
  dir.Write("bin/pronk", "#!/bin/sh\ncase $1 in list|completion) exec \"" + Program() +
                             "\" \"$@\" ;; esac\nprintf '%s\\n' \"$@\" >\"$HOME/given\"\n");
  std::filesystem::permissions(dir.Path("bin/pronk"), std::filesystem::perms::owner_all);
  return dir.Path("");
}

TEST(Completion, HoldsEveryFlag) {
  const std::set<std::string> flags = FlagsOfRun();
  ASSERT_GT(flags.size(), 20u);
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Finished run = Done(Pronk({"completion", shell}));
    for (const std::string& flag : flags) {
      const std::string spelt = shell == "fish" ? "-l " + flag.substr(2) : flag;
      EXPECT_TRUE(Has(run.out, spelt)) << shell << " " << flag;
    }
  }
  EXPECT_EQ(Pronk({"completion", "tcsh"}).status, 2);
}

// Called as by bash: the words so far, and the index of the word being typed.
TEST(Completion, BashCompletes) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  const auto complete = [](const std::string& words, int at) {
    return Shell("bash -c 'source <(\"$PRONK\" completion bash); COMP_WORDS=(" + words +
                 "); COMP_CWORD=" + std::to_string(at) + "; _pronk; echo \"${COMPREPLY[@]}\"'")
        .out;
  };
  EXPECT_EQ(complete("pronk ch", 1), "chat\n");
  EXPECT_EQ(complete("pronk run --no-d", 2), "--no-display-prompt\n");
  EXPECT_EQ(complete("pronk run --kv f1", 3), "f16\n");
  EXPECT_EQ(complete("pronk completion z", 2), "zsh\n");
  EXPECT_EQ(complete("pronk help quan", 2), "quantize\n");
  EXPECT_EQ(complete("pronk quantize a.gguf b.gguf q4_k", 4), "Q4_K Q4_K_M Q4_K_S\n");
  EXPECT_EQ(complete("pronk quantize -m a.gguf --imatrix x b.gguf iq3_xxs", 7), "IQ3_XXS\n");
  EXPECT_EQ(complete("pronk quantize a.gguf b.gguf Q8_0 q", 5), "\n");
  EXPECT_EQ(complete("pronk convert --outtype bf", 3), "BF16\n");
  EXPECT_EQ(complete("pronk run --kv = Q8", 4), "q8_0\n");
  EXPECT_EQ(complete("pronk run --think --no-think", 3), "--no-think\n");
  EXPECT_EQ(complete("pronk run -n 1", 3), "\n");
}

// Names come from downloads: a shell must never run them. The completed line is run, and the
// program gets the name unchanged.
TEST(Completion, NamesAreNotCommands) {
  if (!Tmux::IsThere()) GTEST_SKIP() << "tmux is not installed";
  const std::map<std::string, std::string> shells = {
      {"bash", "PS1='> ' bash --norc --noprofile -i"},
      {"zsh", "PS1='> ' zsh -f -i"},
      {"fish", "fish --private --no-config"}};
  const std::map<std::string, std::string> set_up = {
      {"bash", "source <(pronk completion bash); echo re''ady"},
      {"zsh",
       "mkdir f; pronk completion zsh >f/_pronk; fpath=($PWD/f $fpath); autoload -Uz compinit; "
       "compinit -u -D; echo re''ady"},
      {"fish", "pronk completion fish | source; echo re''ady"}};
  const std::vector<std::string> names = {"evil-$(touch ran).gguf",  "evil-${x:-$(touch ran)}.gguf",
                                          "evil-`touch ran`.gguf",   "evil-'\";touch ran;'.gguf",
                                          "evil-\ntouch ran\n.gguf", "evil-*;&|<>(){}[]~!#.gguf"};
  for (const auto& [shell, command] : shells) {
    if (Shell("command -v " + shell).status != 0) continue;
    for (const std::string& name : names) {
      const TempDir dir;
      const std::string home = HomeWithPronk(dir);
      dir.Write("here/" + name, std::string_view("GGUF"));
      dir.Write("here/COMPREPLYi", "");  // a name that the script's own patterns may match
      Tmux tmux("cd '" + home + "/here' && export HOME='" + home + "' PATH='" + home +
                "/bin:'$PATH" + " TERM=xterm && exec env " + command);
      tmux.Keys({"clear; " + set_up.at(shell), "Enter"});
      ASSERT_TRUE(tmux.WaitFor("ready")) << tmux.Screen();
      tmux.Keys({"pronk inspect ev", "Tab"});
      tmux.WaitFor("evil-");
      tmux.Keys({"Enter"});
      const std::string given = dir.Path("given");
      tmux.WaitUntil([&](const std::string&) { return std::filesystem::exists(given); });
      EXPECT_EQ(std::filesystem::exists(given) ? ReadText(given) : tmux.Screen(),
                "inspect\n" + name + "\n")
          << shell;
      EXPECT_FALSE(std::filesystem::exists(dir.Path("here/ran"))) << shell << " ran " << name;
    }
  }
}

// Names of `pronk list` likewise; and a file must not become a flag.
TEST(Completion, NamesOfStoresAndLeadingDashes) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  const TempDir dir;
  const std::string home = HomeWithPronk(dir);
  std::filesystem::create_directories(dir.Path(".lmstudio/models/evil/x"));
  const std::string name = "evil/x/$(echo ran >&2)`echo ran >&2`${HOME}* 'x.gguf";
  dir.Write(".lmstudio/models/" + name, std::string_view("GGUF"));
  dir.Write("here/-rf.gguf", std::string_view("GGUF"));
  const auto complete = [&](const std::string& words, int at) {
    return Shell(
        "cd \"$HOME/here\" && PATH=$HOME/bin:$PATH && bash -c '"
        "source <(pronk completion bash); COMP_WORDS=(" +
            words + "); COMP_CWORD=" + std::to_string(at) +
            "; shopt -s nullglob; _pronk; for w in \"${COMPREPLY[@]}\"; do eval \"printf "
            "%s\\\\\\\\n $w\"; done'",
        {"HOME=" + home});
  };
  const Finished run = complete("pronk run -m EVIL", 3);
  EXPECT_EQ(run.out, name + "\n");
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(Has("\n" + complete("pronk run -m \"\"", 3).out, "\n./-rf.gguf\n"));
  EXPECT_FALSE(Has("\n" + complete("pronk run -", 2).out, "\n-rf.gguf\n"));
  for (const std::string shell : {"zsh", "fish"}) {
    if (Shell("command -v " + shell).status != 0) continue;
    const std::string script = Done(Pronk({"completion", shell})).out;
    for (const char* type : {"Q4_K_M", "IQ3_XXS"}) EXPECT_TRUE(Has(script, type)) << shell;
  }
  if (Shell("command -v fish").status != 0) return;
  const Finished fish = Shell(
      "cd \"$HOME/here\" && PATH=$HOME/bin:$PATH fish --no-config -c 'pronk completion fish | "
      "source; "
      "complete -C \"pronk help quan\"; complete -C \"pronk quantize a b q4_k_m\"; "
      "touch plain.gguf; complete -C \"pronk inspect \"; rm ./-rf.gguf; touch last.gguf; "
      "complete -C \"pronk inspect \"'",
      {"HOME=" + home});
  EXPECT_TRUE(Has(fish.out, "quantize\n")) << fish.out << fish.err;
  EXPECT_TRUE(Has(fish.out, "Q4_K_M\n")) << fish.out << fish.err;
  EXPECT_TRUE(Has(fish.out, "\nplain.gguf\n")) << fish.out << fish.err;
  EXPECT_TRUE(Has(fish.out, "\nlast.gguf\n")) << fish.out << fish.err;
  EXPECT_TRUE(Has(fish.out, "evil/x/")) << fish.out << fish.err;
  EXPECT_FALSE(Has(fish.out, "\n-rf.gguf")) << fish.out;
}

// Bash splits a word at colons; only files that can be models are offered.
TEST(Completion, NamesWithColonsAndModelFiles) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  const TempDir dir;
  std::filesystem::create_directories(dir.Path(".lmstudio/models/acme/tiny:8b"));
  std::filesystem::create_directories(dir.Path("here/models"));
  dir.Write(".lmstudio/models/acme/tiny:8b/x.gguf", "GGUF");
  dir.Write("here/mine.gguf", "GGUF");
  dir.Write("here/mine.txt", "");
  const auto complete = [&](const std::string& words, int at) {
    return Shell(
               "cd \"$HOME/here\" && mkdir -p bin && ln -sf \"$PRONK\" bin/pronk && "
               "PATH=$PWD/bin:$PATH && bash -c 'source <(pronk completion bash); COMP_WORDS=(" +
                   words + "); COMP_CWORD=" + std::to_string(at) +
                   "; _pronk; echo \"${COMPREPLY[@]}\"'",
               {"HOME=" + dir.Path("")})
        .out;
  };
  EXPECT_EQ(complete("pronk run -m acme/tiny : 8", 5), "8b/x.gguf\n");
  EXPECT_EQ(complete("pronk run -m acme/tiny :", 4), "8b/x.gguf\n");
  EXPECT_EQ(complete("pronk run -m m", 3), "mine.gguf models/\n");
}

TEST(Completion, ShellsTakeIt) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (Shell("command -v " + shell).status != 0) continue;
    const Finished run = Shell(
        "\"$PRONK\" completion " + shell + " >\"${TMPDIR:-/tmp}/pronk-$$\" && " + shell +
        " -n \"${TMPDIR:-/tmp}/pronk-$$\"; s=$?; rm -f " + "\"${TMPDIR:-/tmp}/pronk-$$\"; exit $s");
    EXPECT_EQ(run.status, 0) << shell << ": " << run.err;
  }
}

TEST(Manual, HoldsEveryFlagAndIsWellFormed) {
  const Finished run = Done(Pronk({"man"}));
  // A shared option is described once.
  EXPECT_EQ(Count(run.out, "Replace the value of a metadata key"), 1u);
  EXPECT_EQ(Count(run.out, "Locally typical sampling"), 1u);
  EXPECT_LT(Count(run.out, "\n"), 900u);
  EXPECT_EQ(run.out.rfind(".TH PRONK 1", 0), 0u);
  for (const std::string& flag : FlagsOfRun()) {
    std::string spelt;
    for (const char c : flag) spelt += c == '-' ? std::string("\\-") : std::string(1, c);
    EXPECT_TRUE(Has(run.out, spelt)) << flag;
  }
  if (Shell("command -v groff").status != 0) GTEST_SKIP() << "groff is not installed";
  const Finished page = Shell("\"$PRONK\" man | groff -man -Tutf8 -ww");
  EXPECT_EQ(page.err, "");
  EXPECT_TRUE(Has(page.out, "Once upon a time"));
}

}  // namespace
}  // namespace test
