// The program as a user sees it: its output, its streams, its status.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/pronk.h"
#include "tests/support/json.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

TEST(Run, PrintsThePromptAndItsCompletion) {
  const Finished run = Done(Pronk({"run", "-m", kModel, "-p", "Hello", "-n", "4", "--temp", "0"}));
  EXPECT_EQ(run.out.rfind("Hello", 0), 0u) << run.out;
  EXPECT_GT(run.out.size(), 7u);
  EXPECT_EQ(run.err, "");  // without a terminal only errors are printed
  const Finished without =
      Pronk({"run", "-m", kModel, "-p", "Hello", "-n", "4", "--temp", "0", "--no-display-prompt"});
  EXPECT_EQ("Hello" + without.out, run.out);
}

TEST(Run, PromptFromFileAndStdin) {
  const TempDir dir;
  const auto with = [](const Args& more, const std::string& input) {
    return Pronk(With({"run", "-m", kModel, "-n", "4", "--temp", "0"}, more), input).out;
  };
  const std::string expected = with({"-p", "Hello"}, "");
  EXPECT_EQ(with({}, "Hello\n"), expected);
  EXPECT_EQ(with({"-f", dir.Write("prompt", "Hello\n")}, ""), expected);
}

TEST(Run, SameSeedSameTextWithAnyThreads) {
  const auto with = [&](const std::string& seed, const std::string& threads) {
    return Pronk({"run", "-m", kModel, "-p", "Hello", "-n", "20", "-s", seed, "-t", threads, "-tb",
                  threads})
        .out;
  };
  EXPECT_EQ(with("7", "1"), with("7", "2"));
  EXPECT_NE(with("7", "1"), with("8", "1"));
}

TEST(Run, Json) {
  const Finished run = Done(Pronk({"run", "-m", kModel, "-p", "Hello", "-n", "3", "--ignore-eos",
                                   "--json", "-t", "1", "-tb", "2"}));
  const Json json = Json::parse(run.out);
  EXPECT_EQ(json["tokens"].size(), 3u);
  EXPECT_EQ(json["stop_reason"], "length");
  EXPECT_GT(json["prompt_tokens"], 1);
  for (const char* key :
       {"load_ms", "prompt_ms", "prompt_per_second", "predicted_ms", "predicted_per_second"}) {
    EXPECT_TRUE(json["timings"][key].is_number()) << key;
  }
  EXPECT_EQ(json["timings"]["threads"], 1);
  EXPECT_EQ(json["timings"]["threads_batch"], 2);
}

TEST(Run, WrongInputIsOneClearLine) {
  const TempDir dir;
  ExpectError(Pronk({"run", "-m", dir.Path("none.gguf"), "-p", "x"}), 1, "no such file");
  ExpectError(Pronk({"run", "-m", dir.Path(""), "-p", "x"}), 1, "directory");
  ExpectError(Pronk({"run", "-m", dir.Write("empty", ""), "-p", "x"}), 1, "empty");
  const std::string whole = ReadText(kModel);
  ExpectError(Pronk({"run", "-m", dir.Write("half", whole.substr(0, whole.size() / 2)), "-p", "x"}),
              1, "half");
  const std::string safetensors = std::string("\x40\0\0\0\0\0\0\0", 8) + "{\"weight\":{}}";
  ExpectError(Pronk({"run", "-m", dir.Write("model.safetensors", safetensors), "-p", "x"}), 1,
              "safetensors");
  ExpectError(Pronk({"run", "-m", kModel, "-c", "4", "-p", "more than four tokens"}), 1,
              "room for 4");
  // The largest values that the flags allow, more than any machine has memory for.
  ExpectError(Pronk({"bench", "-m", kModel, "-p", "1073741824", "-d", "1073741824"}), 1,
              "one of at most ");
  ExpectError(Pronk({"trace", "-m", kModel, "-d", "1073741824"}), 1, "one of at most ");
}

TEST(Run, WrongUsage) {
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--temp", "hot"}), 2, "--temp");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--temp", "nan"}), 2, "from 0 to");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--cpu", "z80"}), 2, "z80");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--logit-bias", "x+1"}), 2, "ID+BIAS");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--logit-bias", "15--5"}), 2, "ID+BIAS");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "--samplers", "top_q"}), 2, "top_q");
  ExpectError(Pronk({"run", "-m", kModel, "-p", "x", "-t", "2000000"}), 2, "from 1 to 1024");
  ExpectError(Pronk({"bench", "-m", kModel, "-t", "1,2000000"}), 2, "from 1 to 1024");
  ExpectError(Pronk({"bench", "-m", kModel, "-t", "0"}), 2, "from 1 to 1024");
  for (const char* flag : {"-p", "-n", "-d"}) {
    ExpectError(Pronk({"bench", "-m", kModel, flag, "1,18446744073709551615"}), 2, "from 0 to");
    ExpectError(Pronk({"bench", "-m", kModel, flag, "-1"}), 2, "from 0 to");
  }
  ExpectError(Pronk({"trace", "-m", kModel, "-d", "18446744073709551615"}), 2, "from 0 to");
  EXPECT_EQ(Pronk({}).status, 2);
  EXPECT_EQ(Pronk({"dance"}).status, 2);
  EXPECT_EQ(Pronk({"--help"}).status, 0);
  EXPECT_EQ(Pronk({"run", "--help"}).status, 0);
}

TEST(Version, AfterACommandToo) {
  const Finished run = Done(Pronk({"--version"}));
  EXPECT_EQ(run.out.rfind("pronk ", 0), 0u) << run.out;
  EXPECT_EQ(Pronk({"run", "--version"}).out, run.out);
  EXPECT_EQ(Pronk({"perplexity", "--version"}).out, run.out);  // although -f is required
}

TEST(Run, AnswersDoNotDependOnTheInstructionSet) {
  // An unknown name lists the known ones: "... this machine and build have sse4 avx2".
  const std::string says = Pronk({"run", "-m", kModel, "-p", "x", "--cpu", "?"}).err;
  std::istringstream names(says.substr(says.find("have ") + 5));
  std::vector<std::string> texts;
  for (std::string name; names >> name;) {
    texts.push_back(
        Pronk({"run", "-m", kModel, "-p", "Hello", "-n", "12", "-s", "5", "--cpu", name}).out);
    EXPECT_EQ(texts.back(), texts.front()) << name;
  }
  EXPECT_FALSE(texts.empty());
}

TEST(Logits, WritesEveryPosition) {
  const TempDir dir;
  const std::string out = dir.Path("logits.f32");
  ASSERT_EQ(Pronk({"logits", kModel, "--ids", "1 300 12", out}).status, 0);
  EXPECT_EQ(ReadFloats(out).size(), 3u * 320);
  ExpectError(Pronk({"logits", kModel, "--ids", "1 x", out}), 2, "--ids");
  ExpectError(Pronk({"logits", kModel, "--ids", "9999", dir.Path("b")}), 1,
              "not in the vocabulary");
  ExpectError(Pronk({"logits", kModel, "--ids", "1", dir.Path("no/such")}), 1,
              "there is no folder");
  const std::filesystem::directory_iterator files(dir.Path(""));
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "half-written output stays";
}

// A link to a stream of the shell: output goes where the shell sends it.
TEST(Logits, ToStandardOutput) {
  const TempDir dir;
  const std::string link = dir.Path("stdout"), file = dir.Path("f");
  std::filesystem::create_symlink("/dev/stdout", link);
  const Finished run = Done(Shell("\"$PRONK\" logits \"$MODEL\" --ids 1 \"$LINK\" >\"$FILE\"",
                                  {"LINK=" + link, "FILE=" + file}));
  EXPECT_EQ(ReadFloats(file).size(), 320u);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

// Computed from the output of `pronk logits` for each window.
TEST(Perplexity, IsWhatTheLogitsSay) {
  const TempDir dir;
  const std::string text = dir.Write("text", "It was a day like any other day, and it rained.");
  const Finished run = Done(Pronk({"perplexity", "-m", kModel, "-f", text, "-c", "8"}));

  const Json all = Json::parse(Pronk({"tokenize", "-m", kModel, "--ids"}, ReadText(text)).out);
  double surprisal = 0;
  int n = 0;
  for (size_t begin = 0; begin + 8 <= all.size(); begin += 8) {
    std::string ids = "1";  // begins a text
    for (size_t i = 1; i < 8; ++i) ids += " " + all[begin + i].dump();
    ASSERT_EQ(Pronk({"logits", kModel, "--ids", ids, dir.Path("logits")}).status, 0);
    const std::vector<float> logits = ReadFloats(dir.Path("logits"));
    for (size_t i = 4; i < 7; ++i) {  // the second half
      double sum = 0;
      for (size_t id = 0; id < 320; ++id) sum += std::exp(double{logits[i * 320 + id]});
      const size_t next = all[begin + i + 1];
      surprisal += std::log(sum) - logits[i * 320 + next];
      ++n;
    }
  }
  ASSERT_GT(n, 6);
  const double expected = std::exp(surprisal / n);
  double found = 0;
  ASSERT_EQ(std::sscanf(run.out.c_str(), "perplexity %lf", &found), 1) << run.out;
  EXPECT_NEAR(found, expected, 1e-4 + 1e-6 * expected) << run.out;  // printed with four digits

  ExpectError(Pronk({"perplexity", "-m", kModel, "-f", text, "-c", "200"}), 1, "expected at least");
  ExpectError(Pronk({"perplexity", "-m", kModel, "-f", dir.Path("none")}), 1, "cannot be opened");
}

TEST(Inspect, FitsATerminal) {
  const Finished run = Done(Pronk({"inspect", kModel, "--tensors"}));
  std::istringstream lines(run.out);
  std::string line;
  std::getline(lines, line);  // the path may be long
  EXPECT_EQ(line, kModel);
  while (std::getline(lines, line)) {
    size_t columns = 0;
    for (const char c : line) columns += (c & 0xC0) != 0x80;
    EXPECT_LE(columns, 80u) << line;
  }
  // Rows first; in JSON, dims as the file has them.
  EXPECT_TRUE(Has(run.out, "  blk.0.ffn_down.weight            F32      64 x 128 "));
}

TEST(Inspect, Json) {
  const Json json = Json::parse(Pronk({"inspect", kModel, "--json"}).out);
  EXPECT_EQ(json["metadata"]["general.architecture"], "llama");
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["count"], 320);
  EXPECT_EQ(json["tensors"].size(), 21u);
  for (const Json& tensor : json["tensors"]) {
    if (tensor["name"] != "blk.0.ffn_down.weight") continue;
    EXPECT_EQ(tensor["dims"], (std::vector<int>{128, 64}));
  }
}

TEST(Tokenize, IdsAndPieces) {
  const Finished ids = Done(Pronk({"tokenize", "-m", kModel, "-p", "Hi", "--ids"}));
  EXPECT_EQ(ids.out.rfind("[1, ", 0), 0u) << ids.out;
  const Finished no_bos = Pronk({"tokenize", "-m", kModel, "-p", "Hi", "--ids", "--no-bos"});
  EXPECT_EQ("[1, " + no_bos.out.substr(1), ids.out);
  // Positions are counted from 1, as by trace --token.
  const std::string table = Pronk({"tokenize", "-m", kModel}, "Hi\n").out;
  EXPECT_EQ(table.rfind("position       id  text\n       1        1  \"<s>\"\n       2 ", 0), 0u)
      << table;
  EXPECT_TRUE(Has(table, "\"H\""));
}

// A model without a template gets the plain transcript, which a base model can continue.
TEST(Template, RendersAConversation) {
  const TempDir dir;
  const std::string messages = dir.Write(
      "messages.json",
      R"([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello!"}])");
  const Finished plain = Pronk({"template", "-m", kModel, "--messages", messages});
  EXPECT_EQ(plain.out, "<s>Be kind.\n\nUser: Hello!\nAssistant:") << plain.err;
  const std::string source =
      dir.Write("t.jinja",
                "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token "
                "}}{% endfor %}"
                "{% if add_generation_prompt %}[assistant]{% endif %}{{ strftime_now('%Y')[:2] }}");
  const Finished own =
      Pronk({"template", "-m", kModel, "--template", source, "--messages", messages});
  EXPECT_EQ(own.out, "<s>[system]Be kind.</s>[user]Hello!</s>[assistant]20") << own.err;
  ExpectError(
      Pronk({"template", "--template", dir.Write("bad", "{% if %}"), "--messages", messages}), 1,
      "line 1");
  ExpectError(Pronk({"template", "-m", kModel, "--messages", dir.Write("b.json", "{")}), 1, "JSON");
  ExpectError(Pronk({"template", "-m", kModel, "--messages",
                     dir.Write("d.json", std::string(100000, '['))}),
              1, "is nested deeper than 64 levels");
  // Calls, results and tools as the model sees them, in a template that shows none.
  const std::string chat = R"([{"role": "user", "content": "Warm?"}, {"role": "assistant",
      "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f",
      "arguments": "{}"}}]}, {"role": "tool", "tool_call_id": "a", "content": "22"}])";
  const std::string tool = R"({"type": "function", "function": {"name": "f"}})";
  const Args bare = {"template", "--template",
                     dir.Write("b.jinja",
                               "{% for m in messages %}"
                               "[{{ m.role }}]{{ m.content }}{% endfor %}"),
                     "--messages"};
  const std::string called = "[user]Warm?[assistant]{\"name\": \"f\", \"arguments\": {}}[user]";
  EXPECT_TRUE(Has(Done(Pronk(With(bare, {dir.Write("c", chat)}))).out, called));
  const Finished flag = Done(Pronk(With(bare, {dir.Write("c", chat), "--tools", tool})));
  EXPECT_TRUE(flag.out.starts_with("[system]") && Has(flag.out, called)) << flag.out;
  const std::string object = R"({"messages": )" + chat + R"(, "tools": [)" + tool + "]}";
  EXPECT_EQ(Done(Pronk(With(bare, {dir.Write("o", object)}))).out, flag.out);
  const auto with_keys = [&](int n) {
    std::string json = R"({"messages": [{"role": "user", "content": "a")";
    for (int i = 2; i < n; ++i) json += ",\"" + std::to_string(i) + "\": {}";
    return Pronk({"template", "--template", source, "--messages",
                  dir.Write("keys.json", json + "}, {}, {}]}")});
  };
  EXPECT_EQ(with_keys(1000).status, 0);
  ExpectError(with_keys(1001), 1, "more than 1000 keys in one object");
}

}  // namespace
}  // namespace test
