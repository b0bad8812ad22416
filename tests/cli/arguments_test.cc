// Arguments as users of llama.cpp and ollama type them, and words that are not arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/options/help.h"
#include "cli/options/model_stores.h"
#include "cli/options/other_programs.h"
#include "cli/terminal/terminal.h"
#include "tests/cli/command_text.h"
#include "tests/cli/pronk.h"
#include "tests/support/hf_folder.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

// The text of a deterministic run.
std::string Text(std::vector<std::string> args, const std::string& input = "") {
  args.insert(args.begin() + 1, {"--ignore-eos", "-s", "1"});
  const Finished run = Done(Pronk(args, input));
  return run.out;
}

TEST(Arguments, FlagsOfLlamaCpp) {
  const std::string plain = Text({"run", "-m", kModel, "-p", "Hi\tyou", "-n", "5"});
  EXPECT_EQ(Text({"run", "-m", kModel, "-e", "-p", "Hi\\tyou", "--predict", "5"}), plain);
  EXPECT_EQ(Text({"run", "-m", kModel, "-no-cnv", "-e", "-p", R"(Hi\x09you)", "-n5", "-ub", "64",
                  "-b", "32", "-ctk", "f16", "-ctv", "f16", "-tb", "1"}),
            plain);
  EXPECT_EQ(Text({"run", "--model=" + kModel, "--prompt=Hi\tyou", "-n", "5", "--temperature", "0.8",
                  "--typical-p", "1"}),
            plain);
  // A backslash that begins no escape stays.
  EXPECT_EQ(Text({"run", "-m", kModel, "-e", "-p", R"(\q\x4\\)", "-n", "0"}), "\\q\\x4\\\n");

  const std::string answer =
      Text({"run", "-m", kModel, "--chat", "--system", "Be kind.", "-p", "Hi", "-n", "5"});
  EXPECT_EQ(Text({"run", "-m", kModel, "-st", "-sys", "Be kind.", "-p", "Hi", "-n", "5"}), answer);
  EXPECT_EQ(Text({"run", "-m", kModel, "-cnv", "-st", "-sys", "Be kind.", "-p", "Hi", "-n", "5"},
                 "never read\n"),
            answer);
  EXPECT_EQ(Text({"run", "-i", "-m", kModel, "-sys", "Be kind.", "-n", "5"}, "Hi\n"), answer);
  EXPECT_TRUE(Has(Pronk({"run", "-v", "-m", kModel, "-p", "x", "-n", "1"}).err, "seed "));
  EXPECT_TRUE(Has(Pronk({"run", "-v", "-m", kModel, "-c", "0", "-p", "x", "-n", "1"}).err,
                  "context  256 tokens, as -c says; trained for 256"));
  EXPECT_EQ(Text({"run", "-m", kModel, "-p", "x", "-n", "-2", "-c", "20"}),
            Text({"run", "-m", kModel, "-p", "x", "-c", "20"}));
}

TEST(Arguments, ValuesBehindAnEqualsSign) {
  const auto run = [](const Args& more) {
    return Pronk(With({"run", "-m", kModel, "-n", "0"}, more));
  };
  EXPECT_EQ(run({"--prompt=", "-n", "0"}).out, "\n");  // an empty value is a value
  EXPECT_EQ(run({"--escape=yes", R"(-p=\x41)"}).out, "A\n");
  EXPECT_EQ(run({"--escape=off", R"(-p=\x41)"}).out, "\\x41\n");
  ExpectError(run({"--escape=maybe"}), 2, "--escape: expected yes or no, found maybe");
  ExpectError(run({"--escape=1|t"}), 2, "--escape: expected yes or no, found 1|t");
  const std::string verbose = run({"-t", "010", "-p", "x", "-v"}).err;
  EXPECT_TRUE(Has(verbose, "threads  10, as -t says"));
}

TEST(Arguments, NoClusters) {
  ExpectError(Pronk({"run", "-ep", "x"}), 2, R"(pronk run has no flag "-ep")");
  ExpectError(Pronk({"run", "-sx", "x"}), 2, R"(has no flag "-sx")");
  ExpectError(Pronk({"bench", "-sys", "x"}), 2, R"(pronk bench has no flag "-sys")");
}

TEST(Arguments, ForeignFlagsAreAnsweredInASentence) {
  for (const auto& [flag, says] :
       std::vector<std::pair<std::string, std::string>>{{"-hff", "opens no connection"},
                                                        {"--lora", "no adapters"},
                                                        {"--log-file=x", "no log"},
                                                        {"--mmproj", "text only"}}) {
    ExpectError(Pronk({"run", flag, "x"}), 2, says);
    ExpectError(Pronk({"run", flag, "x"}), 2, flag.substr(0, flag.find('=')) + ": ");
  }
  ExpectError(Pronk({"tokenize", "--mlock"}), 2, "does not keep the weights");
  ExpectError(Pronk({"chat", "-no-cnv"}), 2, "pronk run completes");
}

// Scripts for llama-cli and llama-bench work, with one note.
TEST(Arguments, FlagsOfLlamaCppThatChangeNothing) {
  const Args run = {"run", "-m", kModel, "-n", "2", "-s", "1"};
  const auto with = [&](const Args& more) { return Pronk(With(run, more)); };
  const Finished plain = with({"Hi you"});
  const Finished idle =
      Done(with({"-ngl", "99", "--n-gpu-layers=-1", "-fa", "on", "-fa", "--no-mmap", "--no-warmup",
                 "--log-disable", "--color", "--jinja", "-sm", "none", "-mg", "0", "--prio", "-1",
                 "Hi you"}));
  EXPECT_EQ(idle.out, plain.out);
  EXPECT_EQ(
      idle.err.find("note: no effect here: -ngl (CPU only), --n-gpu-layers (CPU only), -fa ("), 0u)
      << idle.err;
  EXPECT_EQ(Count(idle.err, "\n"), 1u) << idle.err;
  const Finished bench = Done(Pronk(
      {"bench", "-m",   kModel, "-p",   "4", "-n", "0",    "-r",     "1", "-o",    "json", "-fa",
       "0,1",   "-ngl", "0,99", "-mmp", "1", "-C", "0xff", "--prio", "2", "-nkvo", "0"}));
  EXPECT_EQ(Json::parse(bench.out).size(), 1u);
  EXPECT_TRUE(Has(bench.err, "-mmp (the file is mapped), -C (taskset does that), --prio (nice "));
  ExpectError(Pronk({"list", "-ngl", "99"}), 2, "pronk list has no flag");  // it runs no model
}

TEST(Arguments, CommandsOfOllama) {
  const std::string pull = "pull: pronk opens no connection; this line does: ./pronk pull ";
  ExpectError(Pronk({"pull", "acme/Wee-GGUF:Q4_0"}), 2, pull + "acme/Wee-GGUF:Q4_0\n");
  ExpectError(Pronk({"pull"}), 2, pull + cli::SuggestedModel().name + "\n");
  ExpectError(Pronk({"serve"}), 2, "serve: pronk is not a server");
  ExpectError(Pronk({"rm", "x"}), 2, "rm: models are files");
  ExpectError(Pronk({"test"}), 2, "test: only ./pronk");
  for (const char* word : {"help", "-h", "--help"}) {
    EXPECT_EQ(Pronk({"help", word}).out, Pronk({"--help"}).out) << word;
  }
  EXPECT_EQ(Pronk({"help"}).out, Pronk({"--help"}).out);
  EXPECT_EQ(Pronk({"help", "run"}).out, Pronk({"run", "--help"}).out);
  ExpectError(Pronk({"help", "rnu"}), 2, "did you mean run?");
}

TEST(Arguments, ValuesThatAreNone) {
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--kv", "q4"}), 2,
              "--kv: expected f16|f32|q8_0|q4_0, or two with a comma, found q4");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--kv", "q4_0,"}), 2, "found q4_0,");
  for (const char* flag : {"--kv", "-ctk", "-ctv"}) {
    ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--exact", flag, "q8_0"}), 2,
                "--exact: the key-value cache is f32");
  }
  EXPECT_EQ(Pronk({"run", "-m", kModel, "-p", "x", "-n", "1", "--exact", "--kv", "f32"}).status, 0);
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--kv", "f16,q4_0,f16"}), 2, "f16,q4_0,f16");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "-ctk", "f16,q4_0"}), 2,
              "-ctk: expected f16|f32|q8_0|q4_0, found f16,q4_0");
}

// The message names the first wrong flag, the probable flag, and where to find help.
TEST(Arguments, DidYouMean) {
  ExpectError(Pronk({"rnu"}), 2, "did you mean run? 'pronk --help'");
  ExpectError(Pronk({"ls"}), 2, "did you mean list?");
  ExpectError(Pronk({"version"}), 2, "did you mean --version?");
  ExpectError(Pronk({"-m", "x"}), 2, "a subcommand comes before \"-m\"");
  ExpectError(Pronk({"run", "--tempp", "1", "--tpo-k", "2"}), 2,
              "\"--tempp\": did you mean --temp? 'pronk run --help'");
  ExpectError(Pronk({"run", "-x"}), 2, "has no flag \"-x\": 'pronk run --help'");
  ExpectError(Pronk({"run", "-ctxqp", "3"}), 2, "has no flag \"-ctxqp\": 'pronk run --help'");
  ExpectError(Pronk({"chat", "--jsonl"}), 2,
              "pronk chat has no flag \"--jsonl\", but pronk run has: 'pronk chat --help' lists");
  ExpectError(
      Pronk({"run", "-cnv", "--jsonl"}), 2,
      "pronk run -cnv has no flag \"--jsonl\", but pronk run has: 'pronk chat --help' lists");
  ExpectError(Pronk({"run", "-cnv", "a", "b"}), 2, "pronk run -cnv does not take \"b\"");
  ExpectError(Pronk({"run", "--frobnicate"}), 2,
              "has no flag \"--frobnicate\": 'pronk run --help'");
  ExpectError(Pronk({"tokenize", "a", "b", "c"}), 2, "pronk tokenize does not take \"c\"");
  ExpectError(Pronk({"run", "\x1b[2J" + std::string(100000, 'x'), "b", "c"}), 2,
              "does not take \"c\"");
  ExpectError(Pronk({"run", "-n5x"}), 2, "-n: expected a whole number, found 5x");
  ExpectError(Pronk({"run", "--samplers"}), 2,
              "--samplers: expected NAMES after it: 'pronk run --help' tells more");
}

TEST(Arguments, TheModelStandsFirstOrBehindItsFlag) {
  const std::string text = Text({"run", "-m", kModel, "-p", "Hello", "-n", "4"});
  EXPECT_EQ(Text({"run", kModel, "Hello", "-n", "4"}), text);
  EXPECT_EQ(Text({"run", "-n", "4", kModel, "-p", "Hello"}), text);
  EXPECT_EQ(Text({"run", "Hello", "-m", kModel, "-n", "4"}), text);
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0", "--", "-p"}), "-p\n");
  const TempDir dir;
  const std::string file = dir.Write("text", "some words that are long enough");
  const std::vector<std::vector<std::string>> commands = {
      {"tokenize", "-p", "Hi"},
      {"perplexity", "-f", file, "-c", "8"},
      {"inspect", "--json"},
      {"template", "--messages", dir.Write("m.json", R"([{"role": "user", "content": "Hi"}])")},
      {"logits", "--ids", "1 2"}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> flag = command, positional = command;
    flag.insert(flag.end(), {"-m", kModel});
    positional.insert(positional.begin() + 1, kModel);
    if (command[0] == "logits") {
      flag.push_back(dir.Path("logits"));
      positional.push_back(dir.Path("logits"));
    }
    const Finished a = Pronk(flag), b = Pronk(positional);
    EXPECT_EQ(a.status, 0) << command[0] << a.err;
    EXPECT_EQ(a.out, b.out) << command[0] << b.err;
  }
}

// With a prompt, standard input is read only if a dash says so: a shell's loop keeps its lines.
TEST(Arguments, StdinIsThePromptOrADocument) {
  const Finished loop = Shell(
      "printf 'A\\nB\\nC\\n' | while read x; do \"$PRONK\" run -m \"$MODEL\" -n 0 -p \"<$x>\"; "
      "done");
  EXPECT_EQ(loop.out, "<A>\n<B>\n<C>\n");
  EXPECT_EQ(loop.err, "");
  const std::string joined =
      Text({"run", "-m", kModel, "-n", "4", "-e", "-p", "A document\\n\\nSum"});
  const Args sum = {"run", "-m", kModel, "-n", "4", "-p", "Sum"};
  EXPECT_EQ(Text(With(sum, {"-f", "-"}), "A document\n"), joined);
  const TempDir dir;
  EXPECT_EQ(Text(With(sum, {"-f", dir.Write("d", "A document")})), joined);
  // Files in their order, then the prompt.
  const auto all = [](const Args& args) {
    return Text(With({"run", "-m", kModel, "-n", "0"}, args), "piped\n");
  };
  const std::string a = dir.Write("a", "A\n"), b = dir.Write("b", "B\r\n"), c = dir.Write("c", "");
  EXPECT_EQ(all({"-f", a, "-f", c, "-f", b, "-p", "Sum"}), "A\n\nB\n\nSum\n");
  EXPECT_EQ(all({"-f", b, "-f", "-", "-f", a}), "B\n\npiped\n\nA\n");
  EXPECT_EQ(all({}), "piped\n");
  ExpectError(Pronk({"run", "-m", kModel, "-f", "-", "-j", "-"}), 2, "can be read only once");
}

// Stop texts and DRY breakers are texts, too.
TEST(Arguments, EscapesHoldForEveryTypedText) {
  const Args poem = {"run", "-m", kDefault, "-p", "Once upon a time", "-n", "60", "--temp", "0"};
  const std::string whole = Text(poem);
  const size_t line = whole.find('\n');
  ASSERT_LT(line + 1, whole.size());  // it has several lines
  EXPECT_EQ(Text(With(poem, {"-e", "-r", "\\n"})), whole.substr(0, line) + "\n");
  EXPECT_EQ(Text(With(poem, {"-r", "\\n"})), whole);
  const Args dry = With(poem, {"--dry-multiplier", "3", "--dry-allowed-length", "1"});
  EXPECT_EQ(Text(With(dry, {"-e", "--dry-sequence-breaker", "\\n"})),
            Text(With(dry, {"--dry-sequence-breaker", "\n"})));
}

// A byte order mark and CRLF from Windows editors are not part of a text.
TEST(Arguments, ByteOrderMarks) {
  const TempDir dir;
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0", "-f", dir.Write("a", mark + "Hi")}), "Hi\n");
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0"}, mark + "Hi\r\n"), "Hi\n");
  const std::string grammar = dir.Write("g", mark + "root ::= \"yes\"\r\n");
  EXPECT_EQ(Text({"run", "-m", kModel, "-p", "x", "--grammar", grammar}), "xyes\n");
  const Args chat = {"chat", "-m", kModel, "-n", "5", "--temp", "0"};
  EXPECT_EQ(Text(chat, mark + "Hello\r\n"), Text(chat, "Hello\n"));
  EXPECT_EQ(Text(chat, "Hello\r\nyou\r\n"), Text(chat, "Hello\nyou\n"));
  EXPECT_EQ(Pronk(chat, "/help\r\n").err, Pronk(chat, "/help\n").err);
  for (const std::string& utf16 : {std::string("\xFF\xFEH\0", 4), std::string("\xFE\xFF\0H", 4)}) {
    const std::string file = dir.Write("utf16", utf16);
    ExpectError(Pronk({"run", "-m", kModel, "-f", file}), 1,
                file + ": expected UTF-8, found UTF-16");
    ExpectError(Pronk({"run", "-m", kModel}, utf16), 1, "stdin: expected UTF-8, found UTF-16");
    ExpectError(Pronk(chat, utf16), 1, "stdin: expected UTF-8, found UTF-16");
    ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--grammar", file}), 1, "found UTF-16");
  }
}

// These commands take texts as run does.
TEST(Arguments, ATextForOtherCommands) {
  const TempDir dir;
  const std::string file = dir.Write("text", "Hello you"), out = dir.Path("out");
  const auto printed = [](const Args& args, const std::string& input = "") {
    return Done(Pronk(args, input)).out;
  };
  const std::string ids = Pronk({"tokenize", "-m", kModel, "-p", "Hello you", "--ids"}).out;
  EXPECT_GT(Json::parse(ids).size(), 2u);
  EXPECT_EQ(printed({"tokenize", kModel, "Hello you", "--ids"}), ids);
  EXPECT_EQ(printed({"tokenize", "-m", kModel, "-f", file, "--ids"}), ids);
  EXPECT_EQ(printed({"tokenize", "-m", kModel, "--ids"}, "Hello you"), ids);
  const Finished alone = Pronk({"tokenize", "Hello you", "--ids"}, "", {"PRONK_MODEL=" + kModel});
  EXPECT_EQ(alone.out, ids) << alone.err;

  const auto logits = [&](const Args& args, const std::string& input = "") {
    Done(Pronk(With({"logits", kModel, out}, args), input));
    return ReadText(out);
  };
  const std::string expected = logits({"--ids", ids});
  EXPECT_EQ(expected.size(), Json::parse(ids).size() * 320 * sizeof(float));
  EXPECT_EQ(logits({"-p", "Hello you"}), expected);
  EXPECT_EQ(logits({"Hello you"}), expected);
  EXPECT_EQ(logits({"-f", file}), expected);
  EXPECT_EQ(logits({}, "Hello you\n"), expected);
  ExpectError(Pronk({"logits", kModel, out, "-p", "x", "--ids", "1"}), 2, "give one of them");
  ExpectError(Shell("\"$PRONK\" logits \"$MODEL\" out </dev/null"), 2, "no prompt: give one");

  const auto values = [&](const Args& args, const std::string& input = "") {
    return printed(With({"trace", kModel, "--values", "-t", "1"}, args), input);
  };
  const std::string shown = values({"-p", "Hello you"});
  EXPECT_EQ(values({"Hello you"}), shown);
  EXPECT_EQ(values({"-f", file}), shown);
  EXPECT_EQ(values({"-f", "-"}, "Hello you\n"), shown);
}

TEST(Arguments, WithoutAPromptItIsAskedFor) {
  for (const char* input : {"</dev/null", "</dev/null -j '{}'"}) {
    const Finished run = Shell(std::string("\"$PRONK\" run -m \"$MODEL\" ") + input);
    ExpectError(run, 2, "no prompt: give one with -p TEXT or -f FILE, or pipe it in");
  }
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0", "-p", ""}), "\n");  // explicitly empty
}

TEST(Arguments, OneLineFeedEndsAPipedText) {
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0", "-p", "Hello"}), "Hello\n");
  EXPECT_EQ(Text({"run", "-m", kModel, "-n", "0", "-p", "Hello\n"}), "Hello\n");
}

TEST(Arguments, VerboseTellsSpeedsAndJsonTheSeed) {
  const Finished verbose = Pronk({"run", "-m", kModel, "-p", "x", "-n", "2", "--verbose"});
  EXPECT_TRUE(Has(verbose.err, " t/s"));
  EXPECT_EQ(Pronk({"run", "-m", kModel, "-p", "x", "-n", "2"}).err, "");
  const auto json = [](const Args& more) {
    return Json::parse(
        Pronk(With({"run", "-m", kModel, "-p", "x", "-n", "8", "--json"}, more)).out);
  };
  EXPECT_EQ(json({"-s", "42"})["seed"], 42);
  // The reported seed gives the same text again.
  const auto any = json({});
  EXPECT_EQ(json({"-s", any["seed"].dump()})["tokens"], any["tokens"]);
}

TEST(Arguments, MoreSamplers) {
  const auto text = [](const Args& more) {
    return Text(With({"run", "-m", kModel, "-p", "Hello", "-n", "200"}, more));
  };
  const std::string plain = text({});
  for (const Args& more : {Args{"--dry-multiplier", "100", "--dry-allowed-length", "1"},
                           {"--xtc-probability", "1", "--xtc-threshold", "0.01"},
                           {"--mirostat", "2", "--mirostat-ent", "2"},
                           {"--top-nsigma", "0.5"},
                           {"--dynatemp-range", "0.7"}}) {
    EXPECT_NE(text(more), plain) << more[0];
  }
  EXPECT_NE(text({"--samplers", "xtc;top_k;dry;top_n_sigma;temperature"}), plain);
  EXPECT_EQ(text({"--samplers", ""}), text({"--samplers", "temperature", "--temp", "1"}));
  const auto refuse = [](const Args& more, const std::string& says) {
    ExpectError(Pronk(With({"run", "-m", kModel, "-p", "x"}, more)), 2, says);
  };
  refuse({"--mirostat", "1"}, "version 2");
  refuse({"--dry-sequence-breaker", "x"}, "no effect without --dry-multiplier");
  refuse({"--dry-multiplier", "1", "--dry-sequence-breaker", "no such token"}, "no token of this");
  refuse({"--reasoning-budget-message", "x"}, "has no effect without --reasoning-budget");
  refuse({"--samplers", "infill"}, "is none of penalties, dry, top_n_sigma, top_k");
}

// A word that is a flag's value, or a text after --, is no flag.
TEST(Arguments, ValuesAreNotFlags) {
  for (const Args& text : {Args{"-p", "-i"}, Args{"--", "-i"}, Args{"-r", "-i", "-p", "-i"}}) {
    const Finished run = Done(Pronk(With({"run", "-m", kModel, "-n", "1"}, text)));
    EXPECT_TRUE(run.out.starts_with("-i")) << run.out;
  }
  const Finished run = Done(Pronk({"run", "-m", "Default", "-p", "a", "-n", "1", "--top_k", "1"}));
  EXPECT_EQ(run.out, Done(Pronk({"run", "-p", "a", "-n", "1", "--top-k", "1"})).out);
}

// tests/data/other_flags.txt has the flags of llama.cpp's programs and of ik_llama.cpp, under the
// number of values that follow each there.
TEST(Arguments, EveryFlagOfLlamaCppIsTakenOrAnswered) {
  std::ifstream file(DataPath("other_flags.txt"));
  std::string takes;
  size_t n_flags = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != '-') takes = line;
    std::istringstream words(line[0] == '-' ? line : "");
    for (std::string flag; words >> flag; ++n_flags) {
      for (const std::string name : {"run", "chat"}) {
        CommandTable table;
        cli::Command command = *std::ranges::find(table.line.commands(), name, &cli::Command::name);
        const std::string ours = cli::OurFlag(flag);
        const bool is_command =
            cli::OurCommand(table.line, std::vector<std::string>{name, flag}) != name;
        if (command.Find(ours) != nullptr || cli::IsImplied(command, ours) || is_command) continue;
        // An idle flag takes as many words as in its own program.
        const std::vector<std::string> args = {flag, takes == "maybe" ? "on" : "Hi", "you"};
        if (const size_t n = cli::TakeIdleFlag(args, command)) {
          EXPECT_EQ(n, takes == "none" ? 1u : 2u) << flag << " takes " << takes;
          continue;
        }
        try {
          cli::RefuseFlag(table.line, command, flag);
        } catch (const cli::UsageError& error) {
          const std::string what = error.what();
          EXPECT_TRUE(what.starts_with(flag + ": ") || Has(what, ", but pronk ")) << what;
        }
      }
    }
  }
  EXPECT_GT(n_flags, 550u);
}

// The most frequent flags of scripts, each in a run.
TEST(Arguments, MoreFlagsOfLlamaCpp) {
  const auto run = [](const Args& more) {
    return Pronk(With({"run", "-m", kModel, "-p", "Hi you", "-n", "3", "-s", "1"}, more));
  };
  const std::string plain = Done(run({})).out;
  EXPECT_EQ(Done(run({"-rtr", "-fmoe", "-mla", "2", "-amb", "512", "--swa-full", "--fit", "off",
                      "--no-jinja", "-dt", "0.1", "--reasoning-format", "none", "--repack"}))
                .out,
            plain);
  EXPECT_EQ(Done(run({"--stop", "no such text"})).status, 0);
  ExpectError(run({"--rope-scale", "2"}), 2,
              "--rope-scale: the file says how positions are scaled");
  ExpectError(run({"--in-prefix", "x"}), 2, "chat template frames");
  ExpectError(run({"-ser", "1,1"}), 2, "--override-kv ARCH.expert_used_count");
  const TempDir dir;
  const std::string file = dir.Write("t.jinja", std::string_view("{{ messages[0].content }}"));
  EXPECT_EQ(Done(run({"--chat", "--chat-template-file", file})).out,
            Done(run({"--chat", "--template", file})).out);
  const std::string folder = HfLlama().Write(dir), one = dir.Path("1.gguf"),
                    two = dir.Path("2.gguf");
  ExpectWritten(Done(Pronk({"convert", folder, one, "F16"})), one);
  ExpectWritten(Done(Pronk({"convert", folder, "--outfile", two, "--outtype", "f16"})), two);
  EXPECT_EQ(Done(Pronk({"diff", one, two})).status, 0);
  ExpectWritten(Done(Pronk({"convert", "--outtype", "auto", folder, two})), two);
}

TEST(Help, StaysWithinAScreenAndHasExamples) {
  CommandTable table;
  std::istringstream program(Pronk({"--help"}).out);
  for (std::string line; std::getline(program, line);) EXPECT_LE(line.size(), 100u) << line;
  for (const cli::Command& command : table.line.commands()) {
    const std::string help = Done(Pronk({command.name, "--help"})).out;
    EXPECT_LE(Count(help, "\n"), 60u) << command.name;
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_GE(Count(help, "\n  pronk "), 2u) << command.name;
    EXPECT_LE(Count(help, "\n  pronk "), 3u) << command.name;
    const std::string all = Done(Pronk({"help", command.name, "all"})).out;
    for (const cli::Flag& flag : command.flags) {
      if (flag.group == cli::kAnywhere || flag.names.empty()) continue;
      EXPECT_TRUE(Has(help, flag.names.back()) || Has(help, flag.Title())) << flag.names[0];
      EXPECT_TRUE(Has(all, flag.what.substr(0, 20))) << flag.what;
    }
  }
  // The command's own flags come before the shared flags.
  const std::string help = Pronk({"run", "--help"}).out;
  EXPECT_LT(help.find("--no-display-prompt"), help.find("--threads"));
  EXPECT_TRUE(Has(help, "\n'pronk help run all' describes each of these.\n"));
  EXPECT_TRUE(Has(Pronk({"--help"}).out, "more than fifty families"));
}

TEST(Help, ExamplesRun) {
  const TempDir dir;
  dir.Write("model.gguf", ReadText(kModel));
  dir.Write("other.gguf", ReadText(kModel));
  dir.Write("embedder.gguf", ReadText(DataPath("vectors/bert-cls.gguf")));
  dir.Write("reranker.gguf", ReadText(DataPath("vectors/bert-rank.gguf")));
  std::string text;
  for (int i = 0; i < 30; ++i) text += "Once upon a time there was a text.\n";
  dir.Write("text.txt", text);
  dir.Write("note.txt", std::string_view("A note."));
  dir.Write("schema.json", std::string_view(R"({"type": "object", "properties": {"a": {}}})"));
  dir.Write("messages.json", std::string_view(R"([{"role": "user", "content": "Hi"}])"));
  dir.Write("template.jinja", std::string_view("{{ messages[0].content }}"));
  std::filesystem::rename(HfLlama().Write(dir, "hf"), dir.Path("folder"));
  for (const char* folder : {".local/share/bash-completion/completions", ".config/fish/completions",
                             ".local/share/man/man1", "bin"}) {
    std::filesystem::create_directories(dir.Path(folder));
  }
  for (const cli::Example& example : cli::Examples()) {
    std::string line(example.line);
    if (Has(line, "man -l") && Shell("command -v man").status != 0) continue;
    const Finished run =
        Shell("cd \"$HOME\" && ln -sf \"$PRONK\" bin/pronk && PATH=$PWD/bin:$PATH && " + line +
                  " </dev/null",
              {"HOME=" + dir.Path("")});
    // 4: a text was cut before its grammar ends, as random weights are.
    EXPECT_TRUE(run.status == 0 || (run.status == 4 && Has(line, "-j "))) << line << "\n"
                                                                          << run.err;
  }
}

// Without a terminal, long work reports its progress now and then.
TEST(Progress, IsSaidInLinesWhenPiped) {
  testing::internal::CaptureStderr();
  {
    cli::ProgressLine often("quantize", "MB", 1'000'000, 1e-9), never("convert", "MB", 1'000'000);
    for (size_t mb = 1; mb <= 3; ++mb) {
      often.Update(mb * 1'000'000, 3'000'000);
      never.Update(mb * 1'000'000, 3'000'000);
    }
  }
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Count(text, "\n"), 3u) << text;
  EXPECT_TRUE(Has(text, "quantize 1 of 3 MB, 0:0")) << text;
  EXPECT_TRUE(Has(text, "quantize 3 of 3 MB, 0:00 left\n")) << text;
  EXPECT_FALSE(Has(text, "convert"));
}

TEST(Arguments, HelpNamesAPlaceOnce) {
  const std::string help = Pronk({"run", "--help"}).out;
  EXPECT_TRUE(Has(help,
                  "\nPositionals:\n  MODEL                         As -m\n"
                  "  TEXT                          As -p\n"));
  EXPECT_EQ(Count(help, "\n  MODEL "), 1u);
  EXPECT_EQ(Count(help, "\n  TEXT "), 1u);
}

// The commands that the launcher itself has, and no other commands.
TEST(Arguments, HelpNamesWhatTheLauncherDoes) {
  std::string launcher = ReadText(SourceDir() + "/pronk");
  launcher.erase(0, launcher.find("\ncase ${1:-} in\n"));
  std::istringstream lines(launcher);
  std::set<std::string> commands, named;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  ") && line.ends_with(")") && std::isalpha(line[2]) != 0)
      commands.insert(line.substr(2, line.size() - 3));
  }
  const std::string help = Pronk({"--help"}).out, sign = "'./pronk ";
  for (size_t at = 0; (at = help.find(sign, at)) != std::string::npos;) {
    at += sign.size();
    named.insert(help.substr(at, help.find_first_of(" '", at) - at));
  }
  EXPECT_EQ(named, commands);
  EXPECT_EQ(commands.size(), 4u);
}

}  // namespace
}  // namespace test
