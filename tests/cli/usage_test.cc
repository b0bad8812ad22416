// Invalid arguments, untrusted JSON, and the messages about them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/gguf_bytes.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

TEST(Usage, NumbersThatAreNone) {
  const Args run = {"run", "-m", kModel, "-p", "x"};
  const auto expect = [&](const Args& more, const std::string& says) {
    SCOPED_TRACE(more[0] + " " + more[1]);
    ExpectError(Pronk(With(run, more)), 2, says);
  };
  expect({"-s", "12345678901234567890"}, "expected a smaller number, found 12345678901234567890");
  expect({"-c", "12345678901234567890"},
         "-c: expected a number from 0 to 1073741824, found 1234567");
  expect({"-s", "-2"}, "expected a number from -1 on, found -2");
  expect({"-s", "0x10"}, "expected a whole number, found 0x10");
  expect({"-n", "+-5"}, "expected a whole number, found +-5");
  for (const char* flag : {"--presence-penalty", "--frequency-penalty"}) {
    for (const std::string value : {"nan", "inf", "1e999"}) {
      expect({flag, value}, "expected a number from -1000000000 to 1000000000, found " + value);
    }
    expect({flag, "1x"}, "expected a number, found 1x");
  }
  for (const char* value : {"nan", "inf", "1e999"}) {
    expect({"--top-p", value}, std::string("expected a number from 0 to 1, found ") + value);
  }
  // A range is printed in the usual notation of numbers.
  expect({"-n", "1e3"}, "-n: expected a whole number, found 1e3");
  expect({"--predict", "x"}, "--predict: expected a whole number, found x");  // as it was typed
  expect({"-n", "2000000000"}, "-n: expected a number from -2 to 1073741824, found 2000000000");
  EXPECT_EQ(Pronk(With(run, {"-s", "9223372036854775807", "-n", "+1", "--temp", "1e0"})).status, 0);
}

TEST(Usage, FlagsWithoutEffect) {
  const Args run = {"run", "-m", kModel, "-p", "x", "-n", "1"};
  for (const Args& more : {Args{"--system", "Be kind."},
                           {"--template", "t"},
                           {"--think"},
                           {"--no-think"},
                           {"--template-var", "a=1"}}) {
    ExpectError(Pronk(With(run, more)), 2, more[0] + " has no effect without --chat");
  }
  ExpectError(Pronk(With(run, {"--chat", "--special"})), 2,
              "--special has no effect in a conversation");
  EXPECT_EQ(Pronk({"run", "-m", "none", "-m", kModel, "-p", "x", "-n", "1"}).status,
            0);  // an alias
  ExpectError(Pronk({"list", "--json", "--names"}), 2, "give one of them");
  ExpectError(Pronk({"logits", "out", "-m", kModel, "--ids", "1", "text", "/dev/null"}), 2,
              "does not take \"/dev/null\"");
}

// With a template of another file, the named model gives the texts of its tokens.
TEST(Usage, ATemplateAndAModel) {
  const TempDir dir;
  const Args args = {"template", "--template", dir.Write("t", "[{{ bos_token }}]"), "--messages",
                     dir.Write("m", "[]")};
  EXPECT_EQ(Pronk(args).out, "[]");
  EXPECT_EQ(Pronk(With(args, {"-m", kModel})).out, "[<s>]");
}

TEST(Usage, Subcommands) {
  ExpectError(Pronk({"frobnicate"}), 2, "there is no subcommand \"frobnicate\"");
  ExpectError(Pronk({"\x1b[2J"}), 2, "there is no subcommand \"\\x1b[2J\"");
  ExpectError(Pronk({"compare"}), 2, "MODEL is required: pronk compare [OPTIONS] MODEL...; ");
}

TEST(Usage, JsonFromOutside) {
  const TempDir dir;
  const auto messages = [&](const std::string& json) {
    return Pronk({"template", "-m", kModel, "--messages", dir.Write("j", json)});
  };
  ExpectError(messages("[1, 2,, 3]"), 1, "j: is not JSON from byte 7 on");
  ExpectError(messages("[1e999]"), 1, "j: has a number that is too large");
  ExpectError(messages("[0" + std::string(2'200'000, '0')), 1, "j: is not JSON from byte 3 on");
  std::string many = "[0";
  for (int i = 0; i < 1'100'000; ++i) many += ",0";
  ExpectError(messages(many + "]"), 1, "j: has more than 65536 values");
  for (const std::string command : {"template", "chat", "run"}) {
    std::vector<std::string> args = {command, "-m", kModel, "--template-var",
                                     "a=" + std::string(30'000, '[')};
    if (command == "run") args.insert(args.end(), {"--chat", "-p", "x"});
    if (command == "template") args.insert(args.end(), {"--messages", dir.Write("m", "[]")});
    ExpectError(Pronk(args), 2, "is nested deeper than 64 levels");
  }
  // Numbers beyond a machine word keep their digits.
  EXPECT_EQ(Pronk({"template", "--template", dir.Write("t", "{{ a }} {{ messages[0].id }}"),
                   "--messages", dir.Write("m", R"([{"role": "user", "content": "x",
                   "id": 18446744073709551615}])"),
                   "--template-var", "a=-123456789012345678901"})
                .out,
            "-123456789012345678901 18446744073709551615");
}

TEST(Usage, PathsThatCannotBeOpened) {
  const TempDir dir;
  fs::create_symlink("b", dir.Path("a"));
  fs::create_symlink("a", dir.Path("b"));
  const auto in_folder = [&](const std::string& model) {
    return Shell("cd \"$D\" && exec \"$PRONK\" run -m " + model + " -p x", {"D=" + dir.Path("")});
  };
  ExpectError(in_folder("a"), 1, "a: cannot be opened: Too many levels of symbolic links");
}

// Root may enter every folder, so its program runs as another user here.
TEST(Usage, FoldersThatMayNotBeEntered) {
  const TempDir dir;
  fs::create_directory(dir.Path("closed"));
  dir.Write("closed/model.gguf", "GGUF");
  fs::permissions(dir.Path("closed"), fs::perms::none);
  fs::permissions(dir.Path(""), fs::perms::owner_all | fs::perms::others_exec);
  const std::string as_other =
      geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  const auto run = [&](const std::string& args) {
    return Shell("exec " + as_other + "\"$PRONK\" " + args, {"D=" + dir.Path("")});
  };
  const bool can_run = run("--version").status == 0;
  const Finished refused = run("run -m \"$D/closed/model.gguf\" -p x");
  fs::permissions(dir.Path("closed"), fs::perms::owner_all);
  if (!can_run) GTEST_SKIP() << "no other user may run the program";
  ExpectError(refused, 1, "closed/model.gguf: cannot be read: permission denied");
}

TEST(Usage, APathIsSaidOnce) {
  const TempDir dir;
  const std::string bad = dir.Write("bad", "{"), model = dir.Write("model.gguf", "GGUF");
  const Args run = {"run", "-m", kModel, "-p", "x"}, out = {dir.Path("out"), "Q8_0"};
  for (const auto& [args, path] : std::vector<std::pair<Args, std::string>>{
           {{"run", "-p", "x", "-m", model}, model},
           {With({"quantize", model}, out), model},
           {With({"quantize", "--imatrix", bad, kModel}, out), bad},
           {{"diff", model, kModel}, model},
           {With(run, {"--grammar", bad}), bad},
           {With(run, {"--json-schema-file", bad}), bad},
           {With(run, {"--prompt-cache", bad}), bad},
           {With(run, {"-f", dir.Path("none")}), dir.Path("none")},
           {{"run", "-m", kModel, "--jsonl", "-f", bad}, bad},
           {{"chat", "-m", kModel, "--load", bad}, bad},
           {{"template", "-m", kModel, "--messages", bad}, bad},
           {{"perplexity", "-m", kModel, "--kl", bad}, bad},
           {{"bench", "-m", kModel, "--baseline", bad}, bad}}) {
    const Finished refused = Pronk(args);
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(Count(refused.err, path), 1u) << refused.err;
  }
}

// These subcommands have no -c to choose a smaller context.
TEST(Usage, ContextsOfBenchAndTrace) {
  for (const Args& args : {Args{"bench", "-m", kModel, "-p", "1073741824", "-n", "0"},
                           {"trace", "-m", kModel, "-d", "1073741823"}}) {
    const Finished run = Pronk(args);
    ExpectError(run, 1, "one of at most ");
    EXPECT_FALSE(Has(run.err, "-c"));
  }
}

TEST(Usage, InspectShowsAllKindsOfValues) {
  const TempDir dir;
  gguf::Writer writer;
  writer.Add("a.nan", std::nanf(""));
  writer.Add("b.infinity", -std::numeric_limits<double>::infinity());
  const std::vector<float> odd = {1, std::nanf("")};
  writer.AddArray<float>("c.odd", odd);
  GgufBytes nested(0, 1);
  nested.Key("n", gguf::ValueType::kArray).Array(gguf::ValueType::kArray, 10);
  for (int i = 0; i < 10; ++i) {
    nested.Array(gguf::ValueType::kString, 9);
    for (int j = 0; j < 9; ++j) nested.String(std::to_string(j));
  }
  const std::string plain = dir.Path("plain.gguf");
  writer.WriteFile(plain);
  const std::string text = Pronk({"inspect", plain}).out;
  EXPECT_TRUE(Has(text, " NaN\n"));
  EXPECT_TRUE(Has(text, " -Infinity\n"));
  EXPECT_TRUE(Has(text, "2 x f32 [1.0,NaN]\n"));
  const auto json = Json::parse(Pronk({"inspect", "--json", plain}).out)["metadata"];
  EXPECT_EQ(json["a.nan"], "NaN");
  EXPECT_EQ(json["b.infinity"], "-Infinity");
  EXPECT_EQ(json["c.odd"]["first"], Json::parse("[1.0, \"NaN\"]"));

  const std::string deep = dir.Write("deep.gguf", nested.bytes());
  const std::string deep_text = Pronk({"inspect", deep}).out;
  EXPECT_TRUE(Has(deep_text, "10 x array [[\"0\",\"1\""));
  const auto list = Json::parse(Pronk({"inspect", "--json", deep}).out)["metadata"]["n"];
  EXPECT_EQ(list["count"], 10);
  EXPECT_EQ(list["first"].size(), 8u);
  EXPECT_EQ(list["first"][7]["count"], 9);
  EXPECT_EQ(list["first"][7]["first"][7], "7");
}

}  // namespace
}  // namespace test
