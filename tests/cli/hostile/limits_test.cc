// The cost of untrusted files and texts, as the system measures it: the program's peak memory,
// including mapped files, and processor time. The bounds are the promise of tests/fuzz/README.md.
// Times are generous, for slow machines and sanitizers: the faults that they must catch take
// minutes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/writer.h"
#include "tests/cli/pronk.h"
#include "tests/support/hf_folder.h"
#include "tests/support/memory_is_ours.h"
#include "tests/support/small_model.h"
#include "tests/support/temp_dir.h"

namespace test {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMB = 1'000'000;

constexpr double kMaxSeconds = kMemoryIsOurs ? 30 : 200;

class Limits : public testing::Test {
 protected:
  // Memory is at most the file's size plus `most_bytes`.
  void ExpectCost(const Finished& run, const std::string& file, size_t most_bytes) const {
    EXPECT_LT(run.seconds, kMaxSeconds);
    const size_t bytes = file.empty() ? 0 : fs::file_size(file);
    if (!kMemoryIsOurs) return;
    EXPECT_LT(run.peak_bytes, bytes + most_bytes);
  }
  std::string Write(const std::string& name, const gguf::Writer& writer) const {
    writer.WriteFile(dir_.Path(name));
    return dir_.Path(name);
  }
  std::string Write(const std::string& name, const SmallModel& model) const {
    return dir_.Write(name, model.Bytes());
  }

  const TempDir dir_;
};

// --- Heads of files ---------------------------------------------------------------------------

TEST_F(Limits, AStringOfAHundredMegabytes) {
  gguf::Writer writer;
  writer.Add("general.name", std::string(100 * kMB, 'x'));
  const std::string path = Write("name.gguf", writer);
  const Finished text = Done(Pronk({"inspect", path}));
  EXPECT_LT(text.out.size(), 1000u);
  ExpectCost(text, path, 64 * kMB);
  const Finished json =
      Done(Shell("exec \"$PRONK\" inspect --json \"$M\" >/dev/null", {"M=" + path}));
  ExpectCost(json, path, 64 * kMB);
}

TEST_F(Limits, AHundredThousandKeysOfLists) {
  gguf::Writer writer;
  const std::vector<std::string_view> texts(8);
  for (uint64_t i = 0; i < gguf::kMaxItems; ++i) writer.AddStrings("k" + std::to_string(i), texts);
  const std::string path = Write("keys.gguf", writer);
  for (const char* form : {"", " --json"}) {
    SCOPED_TRACE(form);
    const Finished run =
        Done(Shell("exec \"$PRONK\" inspect \"$M\" >/dev/null" + std::string(form), {"M=" + path}));
    ExpectCost(run, path, 64 * kMB);
  }
}

TEST_F(Limits, AHundredThousandTensors) {
  const std::vector<std::byte> weights(4);
  gguf::Writer writer;
  for (uint64_t i = 0; i < gguf::kMaxItems; ++i) {
    writer.AddTensor("t" + std::to_string(i), gguf::DType::kF32, {1}, weights);
  }
  const std::string path = Write("tensors.gguf", writer);
  for (const char* form : {"--tensors", "--json"}) {
    const Finished run = Done(
        Shell("exec \"$PRONK\" inspect \"$M\" >/dev/null " + std::string(form), {"M=" + path}));
    ExpectCost(run, path, 64 * kMB);
  }
}

// quantize takes three times the head, and no weights.
TEST_F(Limits, QuantizeOfALargeHead) {
  gguf::Writer writer;
  writer.Add("general.architecture", "llama");
  writer.Add("general.name", std::string(40 * kMB, 'x'));
  const std::vector<float> weights(16 * 256 * 1024);
  writer.AddTensor("token_embd.weight", gguf::DType::kF32, {256, 16 * 1024},
                   std::as_bytes(std::span(weights)));
  const std::string path = Write("head.gguf", writer);
  const Finished run = Done(Pronk({"quantize", path, dir_.Path("out.gguf"), "Q4_0", "-t", "1"}));
  ExpectCost(run, path, 3 * 40 * kMB);
}

// All parts together have at most as many tensors as one file may have.
TEST_F(Limits, ManyTensorsInManyParts) {
  constexpr uint64_t kPerPart = 100'000;
  const std::vector<std::byte> weights(4);
  const auto part = [&](uint32_t no) {
    return dir_.Path("m-0000" + std::to_string(no + 1) + "-of-00003.gguf");
  };
  for (const uint32_t no : {0u, 1u, 2u}) {
    gguf::Writer writer;
    writer.Add("general.architecture", "llama");
    writer.Add("split.no", no);
    writer.Add("split.count", uint32_t{3});
    writer.Add("split.tensors.count", uint32_t{3 * kPerPart});
    for (uint64_t i = 0; i < kPerPart; ++i) {
      writer.AddTensor(std::to_string(no * kPerPart + i), gguf::DType::kF32, {1}, weights);
    }
    writer.WriteFile(part(no));
  }
  for (const Args& args : {Args{"inspect", "--json", part(0)}, {"run", "-m", part(0), "-p", "x"}}) {
    const Finished run = Pronk(args);
    ExpectError(run, 1,
                part(1) +
                    ": byte 8: expected at most 31072 tensors besides those of the parts "
                    "before, found a count of 100000");
    ExpectCost(run, part(0), 64 * kMB);
  }
}

// --- Vocabularies -----------------------------------------------------------------------------

// Tokens of 16,000 equal letters, and a text with many such tokens, or near matches.
TEST_F(Limits, LongEqualSpecialTokens) {
  for (const char* family : {"llama", "gpt2"}) {
    SCOPED_TRACE(family);
    SmallModel model = {.tokenizer = family};
    model.chat_template =
        "{% for i in range(20) %}{{ 'aaaaaaaaaa' * 100000 }}{{ 'b' }}{% endfor %}";
    model.change_vocabulary = [](VocabSpec& spec) {
      for (size_t i = 0; i < 200; ++i) {
        spec.Add(std::string(16'000 + i, 'a'), 0,
                 i % 2 == 0 ? TokenType::kControl : TokenType::kUserDefined);
      }
    };
    const std::string path = Write("long.gguf", model);
    const Finished run = Pronk({"run", "-m", path, "--chat", "-p", "Hi", "-n", "1"});
    ExpectError(run, 1, "the context has room for 64");
    // With room for all that the template makes: it is cut, and then there is too much of it.
    const Finished wide = Pronk({"run", "-m", path, "--chat", "-p", "Hi", "-n", "1", "-c", "8000"});
    EXPECT_LT(wide.seconds, kMaxSeconds);
  }
}

TEST_F(Limits, AMillionUserDefinedTokens) {
  for (const char* family : {"llama", "gpt2"}) {
    SCOPED_TRACE(family);
    SmallModel model = {.tokenizer = family};
    model.change_vocabulary = [](VocabSpec& spec) {
      while (spec.tokens.size() < tokenizer::kMaxVocabularySize) {
        spec.Add("\u2581token" + std::to_string(spec.tokens.size()), 0, TokenType::kUserDefined);
      }
    };
    const std::string path = Write("many.gguf", model);
    const Finished run = Done(Pronk({"tokenize", "-m", path, "-p", "a token300 b", "--ids"}));
    ExpectCost(run, path, 300 * kMB);
  }
}

TEST_F(Limits, LongTokensOfSpm) {
  SmallModel model;
  model.change_vocabulary = [](VocabSpec& spec) {
    for (size_t i = 0; i < 1000; ++i) {
      std::string token = std::to_string(i);
      token.resize(tokenizer::kMaxTokenBytes, 'x');
      spec.Add(token);
    }
  };
  const std::string path = Write("long.gguf", model);
  const Finished run = Done(Pronk({"tokenize", "-m", path, "-p", "a token300 b", "--ids"}));
  ExpectCost(run, path, 250 * kMB);
}

TEST_F(Limits, AVocabularyOfTooManyBytes) {
  SmallModel model;
  model.change_vocabulary = [](VocabSpec& spec) {
    for (size_t i = 0; i < 2000; ++i) spec.Add(std::string(tokenizer::kMaxTokenBytes - i, 'x'));
  };
  const std::string path = Write("long.gguf", model);
  const Finished run = Pronk({"tokenize", "-m", path, "-p", "x"});
  ExpectError(run, 1,
              "tokenizer.ggml.tokens\": expected tokens of at most 16777216 bytes together");
  ExpectCost(run, path, 64 * kMB);
}

// --- Texts and templates ----------------------------------------------------------------------

TEST_F(Limits, ATemplateThatMakesMuch) {
  SmallModel model = {.chat_template = "{{ '\\n' * 40000000 }}"};
  for (const char* family : {"llama", "gpt2"}) {
    SCOPED_TRACE(family);
    model.tokenizer = family;
    const std::string path = Write("much.gguf", model);
    const Finished run = Pronk({"run", "-m", path, "--chat", "-p", "Hi"});
    ExpectError(run, 1, "tokens, and the context has room for 64");
    ExpectCost(run, path, 250 * kMB);
    const Finished chat = Pronk({"chat", "-m", path}, "Hi\n");
    ExpectError(chat, 1, "tokens, and the context has room for 64");
    ExpectCost(chat, path, 250 * kMB);
  }
}

// A token so long that a text's size proves nothing: tokenizing stops at the limit.
TEST_F(Limits, ATemplateThatMakesMuchOfLongTokens) {
  SmallModel model = {.chat_template = "{{ '\\n' * 40000000 }}"};
  model.change_vocabulary = [](VocabSpec& spec) {
    spec.Add(std::string(tokenizer::kMaxTokenBytes, 'x'));
  };
  for (const char* family : {"llama", "gpt2"}) {
    SCOPED_TRACE(family);
    model.tokenizer = family;
    const std::string path = Write("much.gguf", model);
    const Finished run = Pronk({"run", "-m", path, "--chat", "-p", "Hi", "-c", "4096", "-n", "1"});
    ExpectError(run, 1, "tokens, and the context has room for 4096");
    ExpectCost(run, path, 300 * kMB);
  }
}

TEST_F(Limits, ALineOfTwentyMegabytes) {
  const Finished run =
      Shell("head -c 20000000 /dev/zero | tr '\\0' x | \"$PRONK\" chat -m \"$MODEL\"");
  ExpectError(run, 1, "tokens, and the context has room for");
  ExpectCost(run, kModel, (4 * 20 + 64) * kMB);
}

// A refused text costs at most the readable size; a longer file costs nothing.
TEST_F(Limits, TextsWithoutEnd) {
  constexpr size_t kText = size_t{256} << 20, kLine = size_t{64} << 20,
                   kDocument = size_t{16} << 20;
  const std::string long_file = dir_.Write("long", "");
  fs::resize_file(long_file, kText + 1);  // without blocks on the disk
  const auto expect = [&](const std::string& command, const std::string& says, size_t most_read) {
    SCOPED_TRACE(command);
    const Finished run =
        Shell("exec \"$PRONK\" " + command, {"LONG=" + long_file, "OUT=" + dir_.Path("out")});
    ExpectError(run, 1, says);
    ExpectCost(run, kModel, most_read + 64 * kMB);
  };
  const std::string long_text = "is longer than 268435456 bytes", zero = "/dev/zero: ";
  for (const std::string command :
       {"run -m \"$MODEL\" -f", "tokenize -m \"$MODEL\" -f", "embed -m \"$MODEL\" -f",
        "perplexity -m \"$MODEL\" -f", "compare \"$MODEL\" -f", "trace -m \"$MODEL\" -f",
        "logits \"$MODEL\" \"$OUT\" -f", "imatrix -m \"$MODEL\" \"$OUT\" -f"}) {
    expect(command + " \"$LONG\"", long_text, 0);
    if (command.starts_with("run")) expect(command + " /dev/zero", zero + long_text, kText);
  }
  expect("run -m \"$MODEL\" </dev/zero", "stdin: " + long_text, kText);
  expect("tokenize -m \"$MODEL\" <\"$LONG\"", "stdin: " + long_text, 0);
  // A line grows in memory that doubles.
  expect("chat -m \"$MODEL\" </dev/zero", "stdin: a line is longer than 67108864 bytes", 2 * kLine);
  const std::string long_document = zero + "is longer than 16777216 bytes";
  expect("template -m \"$MODEL\" --messages /dev/zero", long_document, kDocument);
  expect("run -m \"$MODEL\" -p x --grammar-file /dev/zero", long_document, kDocument);
  expect("run -m \"$MODEL\" -p x --json-schema-file /dev/zero", long_document, kDocument);
  expect("run -m \"$MODEL\" -p x --chat --tools /dev/zero", long_document, kDocument);
  const std::string long_template = zero + "is longer than 1048576 bytes";
  expect("run -m \"$MODEL\" --chat -p x --template /dev/zero", long_template, 0);
  expect("bench -m \"$MODEL\" --baseline /dev/zero", long_template, 0);
  const std::string device = ", found a device";
  expect("run -m /dev/zero -p x", zero + "expected a GGUF file" + device, 0);
  expect("quantize --imatrix /dev/zero \"$MODEL\" \"$OUT\" Q4_0",
         zero + "expected an importance matrix" + device, 0);
  EXPECT_FALSE(fs::exists(dir_.Path("out")));
}

// The longest readable text takes its own size and little more before it is refused, since it
// cannot fit into the context.
TEST_F(Limits, TheLongestText) {
  const std::string text = dir_.Write("text", "");
  fs::resize_file(text, size_t{256} << 20);
  for (const std::string from : {"-f \"$T\"", "<\"$T\""}) {
    const Finished run = Shell("exec \"$PRONK\" run -m \"$MODEL\" " + from, {"T=" + text});
    ExpectError(run, 1, "tokens, and the context has room for");
    ExpectCost(run, text, 64 * kMB);
  }
}

// --- JSON -------------------------------------------------------------------------------------

// "[0],[0],": what values of a library take many times the text's size for.
std::string Repeated(const std::string& text, size_t bytes) {
  std::string all;
  while (all.size() < bytes) all += text;
  return all;
}

TEST_F(Limits, JsonTakesItsOwnSize) {
  // This test's memory at the start of the program counts, so it frees its texts.
  const std::string folder = dir_.Path("model"), out = dir_.Path("out.gguf");
  {
    HfLlama llama;
    const std::string unread = "\"unread\":[" + Repeated("{\"\":0},", 14 * kMB) + "0]";
    llama.config += "," + unread;
    llama.files["tokenizer.json"] = "{\"truncation\"" + unread.substr(unread.find(':')) + "}";
    llama.files["tokenizer_config.json"].replace(0, 1, "{" + unread + ",");
    llama.Write(dir_);
  }
  const Finished converted = Done(Pronk({"convert", folder, out}));
  ExpectCost(converted, folder + "/tokenizer.json", (14 + 64) * kMB);

  const auto write = [&](const std::string& head, const std::string& unit, size_t bytes,
                         const std::string& tail) {
    return dir_.Write("json", head + Repeated(unit, bytes) + tail);
  };
  for (const auto& [head, unit, tail] : std::vector<std::array<std::string, 3>>{
           {"{\"enum\":[", "0,", "0]}"},
           {"{\"enum\":[", "{\"\":[]},", "0]}"},
           {"{\"description\":[", "{\"\":0},", "0],\"type\":\"null\"}"},
           {"{\"allOf\":[", R"({"properties":{"a":{"enum":[1,2,3,4,5]}}},)", "true]}"}}) {
    const Finished run =
        Pronk({"run", "-m", kModel, "-p", "x", "-n", "1", "-j", write(head, unit, 2 * kMB, tail)});
    EXPECT_TRUE(run.status <= 1 || run.status == 4) << run.err;  // 4: cut by -n
    ExpectCost(run, "", (64 + 16) * kMB);
  }
  for (const auto& [head, unit, tail] :
       std::vector<std::array<std::string, 3>>{{"[", "[0],", "0]"},
                                               {"[", R"({"role":"","content":""},)", "0]"},
                                               {R"([{"role":"user","content":")", "x", "\"}]"}}) {
    const std::string file = write(head, unit, 9 * kMB, tail);
    const Finished chat = Pronk({"chat", "-m", kModel}, "/load " + file + "\n");
    ExpectError(chat, 1, "json: ");
    ExpectCost(chat, "", (10 * 9 + 16) * kMB);
  }
  // The longest conversation, by its number of values, and a longer one.
  const std::string message = R"({"role":"user","content":"a"},)";
  for (const auto& [bytes, status] :
       std::vector<std::pair<size_t, int>>{{600'000, 0}, {14 * kMB, 1}}) {
    const std::string file = write("[", message, bytes, R"({"role":"user","content":"a"}])");
    const Finished run = Pronk({"template", "-m", "default", "--messages", file});
    EXPECT_EQ(run.status, status) << run.err;
    ExpectCost(run, "", 64 * kMB);
  }
  const std::string row =
      R"({"model_size":1,"model_n_params":1,"n_prompt":1,"n_gen":1,"n_depth":0,"n_threads":1,)"
      "\"samples_ts\":[1,2]}\n";
  const Finished bench = Pronk({"bench", "-m", kModel, "-p", "1", "-n", "0", "-r", "1",
                                "--baseline", write("", row, 22 * kMB, "")});
  ExpectError(bench, 1, "json: is longer than 1048576 bytes");
  ExpectCost(bench, "", 64 * kMB);
}

// At every limit at which the program starts, it gives an answer or one line.
TEST_F(Limits, MemoryThatRunsOut) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "sanitizers reserve memory of their own";
  HfLlama llama;
  llama.config += ",\"unread\":[" + Repeated("[0],", 10 * kMB) + "0]";
  const std::vector<std::string> environment = {
      "FOLDER=" + llama.Write(dir_), "D=" + dir_.Path(""),
      "SCHEMA=" + dir_.Write("s", "{\"enum\":[" + Repeated("[0],", 2 * kMB) + "0]}"),
      "MESSAGES=" + dir_.Write("m", "[" + Repeated(R"({"role":"","content":""},)", 9 * kMB) + "0]"),
      "ROWS=" + dir_.Write("rows", Repeated("{\"model_size\":1}\n", kMB / 2))};
  for (const std::string command :
       {"convert \"$FOLDER\" \"$D/out.gguf\" -t 1",
        "run -m \"$MODEL\" -p x -n 1 -t 1 -j \"$SCHEMA\"", "chat -m \"$MODEL\" -t 1",
        "bench -m \"$MODEL\" -p 1 -n 0 -r 1 -t 1 --baseline \"$ROWS\"",
        "run -m \"$MODEL\" -p x -n 1 -t 1", "inspect --json \"$MODEL\"",
        "quantize \"$MODEL\" \"$D/out.gguf\" Q4_0 -t 1"}) {
    SCOPED_TRACE(command);
    const Finished run = Shell(
        "for v in $(seq 20 10 180); do "
        "(ulimit -v ${v}000; exec \"$PRONK\" --version) >/dev/null 2>&1 || continue; "
        "echo \"/load $MESSAGES\" | (ulimit -v ${v}000; exec \"$PRONK\" " +
            command +
            ") >/dev/null 2>\"$D/err\"; s=$?; "
            "echo $v; [ $s = 0 ] || [ $s = 1 -a $(wc -l <\"$D/err\") = 1 ] || "
            "{ echo \"$v MB: status $s\"; cat \"$D/err\"; } >&2; done",
        environment);
    EXPECT_EQ(run.err, "");
    EXPECT_GE(std::count(run.out.begin(), run.out.end(), '\n'), 10);
  }
}

// sentencepiece's protobuf crashes if one of its allocations fails and memory is not zero by
// chance, so all its memory must be allocated before (glibc fills memory if the environment says
// so).
TEST_F(Limits, MemoryThatRunsOutInAVocabulary) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "sanitizers reserve memory of their own";
  SmallModel model;
  model.change_vocabulary = [](VocabSpec& spec) {
    for (size_t i = 0; i < 20'000; ++i) spec.Add("\u2581t" + std::to_string(i));
  };
  const Finished run = Shell(
      "try() { (ulimit -v $v; exec \"$PRONK\" \"$@\") >/dev/null 2>\"$D/err\"; }\n"
      "v=14000; until try --version; do v=$((v + 250)); done\n"
      "until try tokenize -m \"$D/m\" -p x; do\n"
      "  s=$?; [ $s = 1 ] || { echo \"$v KB: status $s\" >&2; cat \"$D/err\" >&2; }\n"
      "  echo $v; v=$((v + 250)); done",
      {"D=" + dir_.Path(""), "MALLOC_PERTURB_=85", "M=" + Write("m", model)});
  EXPECT_EQ(run.err, "");
  EXPECT_GE(std::count(run.out.begin(), run.out.end(), '\n'), 5);
}

// --- Stacks and threads -----------------------------------------------------------------------

TEST_F(Limits, SmallStacks) {
  ExpectError(Shell("ulimit -s 256; exec \"$PRONK\" run -m \"$MODEL\" -p x -n 1"), 1,
              "expected a stack of at least 2048 KB, found a limit of 256 KB (ulimit -s)");
#ifndef __clang__  // whose OpenMP prints a line of its own
  ExpectError(Shell("exec \"$PRONK\" run -m \"$MODEL\" -p x -n 1 -t 2", {"OMP_STACKSIZE=32K"}), 1,
              "OMP_STACKSIZE: expected at least 512K");
  // Attention takes most of a stack.
  const std::string text = dir_.Write("text", std::string(99, 'x'));
  for (const std::string kv : {"f32", "f16", "q8_0", "q4_0", "f16,q4_0"}) {
    const std::string line = "exec \"$PRONK\" run -m \"$MODEL\" -f \"$TEXT\" -n 2 -t 2 --kv " + kv;
    EXPECT_EQ(Shell(line, {"OMP_STACKSIZE=512K", "TEXT=" + text}).status, 0) << kv;
  }
#endif
}

// At the limit of memory, a stack cannot grow.
TEST_F(Limits, StacksThatCannotGrow) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "sanitizers reserve memory of their own";
  const Finished run = Shell(
      "v=14000; until (ulimit -v $v; exec \"$PRONK\" run -m \"$MODEL\" -p x -n 1 -t 1) >/dev/null "
      "2>&1; do s=$?; echo $v; [ $s = 1 -o $s = 127 ] || echo \"$v KB: status $s\" >&2; "
      "v=$((v + 100)); done");
  EXPECT_EQ(run.err, "");
  EXPECT_GE(std::count(run.out.begin(), run.out.end(), '\n'), 10);
}

// The deepest allowed nesting, with the smallest allowed stack.
TEST_F(Limits, DeepTemplatesOnTheSmallestStack) {
  if (!kMemoryIsOurs) GTEST_SKIP() << "sanitizers' stacks are larger";
  std::string deep;
  for (int i = 0; i < 390; ++i) deep += "{% if 1 %}";
  deep += "{{ ";
  for (int i = 0; i < 300; ++i) deep += "(";
  const std::string source = dir_.Write("t", deep);
  const Finished run =
      Shell("ulimit -s 2048; exec \"$PRONK\" template --template \"$T\" --messages \"$J\"",
            {"T=" + source, "J=" + dir_.Write("j", "[]")});
  EXPECT_EQ(run.status, 1) << run.err;
  std::string call = "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}";
  const Finished recursion =
      Shell("ulimit -s 2048; exec \"$PRONK\" template --template \"$T\" --messages \"$J\"",
            {"T=" + dir_.Write("r", call), "J=" + dir_.Write("j", "[]")});
  ExpectError(recursion, 1, "nested more than 400 levels deep");
}

TEST_F(Limits, ThreadsThatCannotStart) {
#ifdef __clang__
  GTEST_SKIP() << "clang's OpenMP has words of its own to say about such environments";
#endif
  const TempDir out;
  const std::string in = DataPath("tiny/llama.gguf");
  ExpectError(Shell("exec \"$PRONK\" run -m \"$MODEL\" -p x -n 1 -t 2", {"OMP_STACKSIZE=1000G"}), 1,
              "2 threads cannot be started");
  if (kMemoryIsOurs) {
    ExpectError(Shell("ulimit -v 400000; exec \"$PRONK\" run -m \"$MODEL\" -p x -n 1 -t 200"), 1,
                "200 threads cannot be started");
    const Finished run = Shell(
        "ulimit -v 400000; exec \"$PRONK\" bench -m \"$MODEL\" -p 4 -n 0 -r 1 -t 200 "
        "--plot \"$D/plot\"",
        {"D=" + out.Path("")});
    EXPECT_EQ(run.status, 1);
    EXPECT_TRUE(fs::is_empty(out.Path("")));
  }
}

// --- Interrupts -------------------------------------------------------------------------------

// While a long text is cut, which takes seconds. On a busy machine the text may not be read yet
// when the signal comes, and the program ends without a word: then it gets more time.
TEST_F(Limits, InterruptsWhileCutting) {
  const std::string text = dir_.Path("text");
  ASSERT_EQ(Shell("seq -s ' ' 30000000 | head -c 200000000 >\"$T\"", {"T=" + text}).status, 0);
  Finished run;
  for (const std::string seconds : {"1.5", "5", "15"}) {
    run = Shell("timeout --foreground --preserve-status -s INT " + seconds +
                    " \"$PRONK\" run -m \"$MODEL\" -f \"$T\" -c 1073741824",
                {"T=" + text});
    if (!run.err.empty()) break;
  }
  EXPECT_EQ(run.err, "pronk: interrupted\n");
  EXPECT_LT(run.seconds, 10);
}

// As with nohup and shells' background jobs.
TEST_F(Limits, InterruptsThatAParentIgnores) {
  const Finished run = Done(
      Shell("trap '' INT; \"$PRONK\" run -m \"$MODEL\" -p Hello -n 400 --ignore-eos -c 500 --json "
            ">\"$D/out\" & sleep 0.2; kill -INT $!; wait $! && cat \"$D/out\"",
            {"D=" + dir_.Path("")}));
  EXPECT_TRUE(Has(run.out, "\"stop_reason\": \"length\""));
}

}  // namespace
}  // namespace test
