// Completions and the manual: that they hold every flag, and that the shells take them.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "tests/cli/pronk.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

// Every long flag of `pronk run --help`.
std::set<std::string> FlagsOfRun() {
  std::istringstream words(Pronk({"run", "--help"}).out);
  std::set<std::string> flags;
  for (std::string word; words >> word;) {
    if (!word.starts_with('-') || word.ends_with(':')) continue;
    std::istringstream names(word);
    for (std::string name; std::getline(names, name, ',');) {
      if (name.starts_with("--")) flags.insert(name);
    }
  }
  return flags;
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

// As bash calls it: the words so far, and which of them is being typed.
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
  EXPECT_EQ(complete("pronk completion z", 2), "\n");
  EXPECT_EQ(complete("pronk run -n 1", 3), "\n");
}

// A model's name comes with its download: whatever it is, the shell must not run it.
TEST(Completion, NamesAreNotCommands) {
  if (Shell("command -v bash").status != 0) GTEST_SKIP() << "bash is not installed";
  const TempDir dir;
  const std::string repository = ".lmstudio/models/evil";
  std::filesystem::create_directories(dir.Path(repository));
  const std::string name = "evil/$(echo ran >&2)`echo ran >&2`${HOME}* 'x.gguf";
  dir.Write(".lmstudio/models/" + name, "GGUF");
  const Finished run = Shell(
      "cd \"$HOME\" && mkdir bin && ln -s \"$PRONK\" bin/pronk && PATH=$PWD/bin:$PATH && bash -c '"
      "source <(pronk completion bash); COMP_WORDS=(pronk run -m evil); COMP_CWORD=3; _pronk; "
      "printf \"%s\\n\" \"${COMPREPLY[@]}\"'",
      {"HOME=" + dir.Path("")});
  EXPECT_EQ(run.out, name + "\n");
  EXPECT_EQ(run.err, "");
}

// Bash splits a word at colons; of files, only those that can be models are offered.
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
  EXPECT_EQ(complete("pronk run -m m", 3), "models mine.gguf\n");
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
