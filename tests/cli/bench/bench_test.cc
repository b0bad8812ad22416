// pronk bench: its measurements, and its notes about a result. No test here depends on the
// machine's speed; whether the figures can be trusted is measured by hand (README of cli/bench).
#include "cli/bench/bench.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "tests/cli/bench/bench_run.h"

namespace test {
namespace {

TEST(Bench, MeasuresEveryCombination) {
  const Finished run = Done(
      Pronk({"bench", "-m",  kModel, "-p", "4,8",  "-n",       "4",  "-pg", "4,2", "-d",  "0,3",
             "-t",    "1-2", "-ub",  "4",  "--kv", "f16,q8_0", "-r", "1",   "-o",  "json"}));
  const Json tests = Json::parse(run.out);
  std::map<std::string, int> seen;
  for (const Json& test : tests) {
    ++seen[test["n_prompt"].dump() + " " + test["n_gen"].dump() + " " + test["n_depth"].dump() +
           " " + test["n_threads"].dump() + " " + test["type_k"].dump()];
    EXPECT_EQ(test["n_ubatch"], 4);
  }
  EXPECT_EQ(tests.size(), 4u * 2 * 2 * 2);
  EXPECT_EQ(seen.size(), tests.size());
  EXPECT_EQ(seen[R"(4 2 3 2 "q8_0")"], 1);
}

// As in llama-bench: each type of keys with each type of values.
TEST(Bench, KeysAndValuesOfTwoTypes) {
  const Finished run = Done(Pronk({"bench", "-m", kModel, "-p", "4", "-n", "0", "-ctk", "f16,q8_0",
                                   "-ctv", "q8_0,q4_0", "-r", "1", "-o", "json"}));
  std::string seen;
  for (const Json& test : Json::parse(run.out)) {
    seen += test["type_k"].get<std::string>() + "/" + test["type_v"].get<std::string>() + " ";
  }
  EXPECT_EQ(seen, "f16/q8_0 f16/q4_0 q8_0/q8_0 q8_0/q4_0 ");
}

// Texts generated together, compared with one text; their prompts are read one after the other.
TEST(Bench, TextsTogether) {
  const Finished run = Done(Pronk({"bench", "-m", kModel, "-p", "4", "-n", "6", "-d", "0,2", "-npl",
                                   "1,3", "-t", "2", "-r", "1", "-oe", "json"}));
  const Json tests = Json::parse(run.err);
  EXPECT_EQ(SchemaFaults(tests, BenchSchema()), std::vector<std::string>());
  ASSERT_EQ(tests.size(), 8u);
  EXPECT_TRUE(Has(run.out, "| 3 x tg6 @ d2 |"));
  EXPECT_TRUE(Has(run.out, "| 3 x pp4 @ d2 |"));
  const Json& together = tests[7];
  EXPECT_EQ(together["n_parallel"], 3);
  EXPECT_GT(together["dot_limit"], 0);
  ExpectError(Bench({"--parallel", "17"}), 2, "--parallel: expected a number from 1 to 16");
  ExpectError(Bench({"--parallel", "2", "--draft", "2"}), 2, "give one of them");
}

TEST(Bench, ReadsRanges) {
  const auto threads = [](const std::string& list) {
    std::vector<int> numbers;
    const Finished run =
        Pronk({"bench", "-m", kModel, "-p", "1", "-n", "0", "-r", "1", "-o", "json", "-t", list});
    for (const Json& test : Json::parse(run.out)) numbers.push_back(test["n_threads"]);
    return numbers;
  };
  EXPECT_EQ(threads("1-3"), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(threads("1-4+2"), (std::vector<int>{1, 3}));
  EXPECT_EQ(threads("1-4*2"), (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(threads("2,1-2"), (std::vector<int>{2, 1, 2}));
  for (const char* list : {"", "1,", "1-", "1-2+", "x", "1-8*1", "1-8+0", "1 2", "2-1"}) {
    ExpectError(Bench({"-t", list}), 2, "-t: expected numbers such as");
  }
  ExpectError(Bench({"-t", "1-2000"}), 2, "-t: expected a number from 1 to 1024");
  ExpectError(Bench({"-p", "0-1073741824"}), 2, "-p: expected at most 1000 numbers");
  ExpectError(Bench({"-d", "8-1", "-o", "csv"}), 2, "-d: expected numbers such as");
}

// A minute of tests, whose reader closes the pipe after the first row.
TEST(Bench, StopsWhereNobodyReads) {
  const Finished run = Shell(
      R"({ "$PRONK" bench -m "$MODEL" -o csv -p 4-900 -n 0; echo "status $?" >&2; } | head -n 2 | wc -l)");
  EXPECT_EQ(run.err, "status 0\n");
  EXPECT_TRUE(Has(run.out, "2"));
}

TEST(Bench, GoesOnWhileStderrIsRead) {
  const Finished run =
      Shell(R"("$PRONK" bench -m "$MODEL" -o csv -oe json -p 4-9 -n 0 -r 1 | true)");
  EXPECT_EQ(Json::parse(run.err).size(), 6u);
}

TEST(Bench, RefusesWhatItCannotDo) {
  ExpectError(Bench({"-ctk", "f16", "--kv", "q8_0"}), 2, "--kv: not with -ctk or -ctv");
  ExpectError(Bench({"-ctk", "f17"}), 2, "expected f16, f32, q8_0 or q4_0");
  ExpectError(Bench({"-pg", "4"}), 2, "-pg: expected two numbers");
  ExpectError(Pronk({"bench", "-m", kModel, "-p", "0", "-n", "0"}), 2, "nothing to measure");
  ExpectError(Bench({"-ub", "0"}), 2, "-ub: expected a number from 1 to 4096");
  // A model that cannot be read is reported before the first one is measured.
  ExpectError(Bench({"-m", "no/such.gguf"}), 1, "no/such.gguf");
}

TEST(Bench, RefusesFlagsWithoutEffect) {
  ExpectError(Bench({"--detect", "3%"}), 2, "--detect: only with --against, --baseline or --diff");
  ExpectError(Bench({"--max-time", "9"}), 2, "--max-time: only with --against");
  ExpectError(Bench({"--max-time", "9", "--baseline", "b"}), 2, "--max-time: only with --against");
  ExpectError(Bench({"--draft", "2"}), 2, "--draft: expected tests that only generate (-n)");
  for (const Args& more : {Args{"-r", "2"}, {"-oe", "json"}, {"--against", "b"}, {"-t", "1"}}) {
    ExpectError(Pronk(With({"bench", "--diff", "a", "b"}, more)), 2,
                more[0] + ": not with --diff, which measures nothing");
  }
}

TEST(Bench, TakesSeveralModels) {
  const std::string other = DataPath("tiny/qwen2.gguf");
  const Finished run = Done(Bench({"-m", other, "-o", "json", "--delay", "1"}));
  const Json tests = Json::parse(run.out);
  ASSERT_EQ(tests.size(), 2u);
  EXPECT_EQ(tests[0]["model_filename"], kModel);
  EXPECT_EQ(tests[1]["model_filename"], other);
}

// Ctrl-C ends the measuring, here while it waits for the second test; finished rows stay, and the
// output is whole.
TEST(Bench, KeepsRowsOnCtrlC) {
  const Finished run = Shell(
      "timeout --foreground --preserve-status -s INT 3 \"$PRONK\" bench -m \"$MODEL\" -p 4,8 -n 0 "
      "-r 1 --delay 100 -o json -oe csv");
  EXPECT_EQ(run.status, 130);
  const Json tests = Json::parse(run.out);
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0]["n_prompt"], 4);
  const size_t message = run.err.find("pronk: interrupted: 1 of 2 tests are done");
  ASSERT_NE(message, std::string::npos) << run.err;
  EXPECT_EQ(Count(run.err.substr(0, message), "\n"), 2u);
}

TEST(BenchNotes, NothingWhereAllIsWell) {
  const cli::BenchResult result = Measured();
  EXPECT_EQ(result.Notes(), std::vector<std::string>());
  EXPECT_DOUBLE_EQ(result.Speed(), 9);
  EXPECT_DOUBLE_EQ(result.Speed(1), 10);
  EXPECT_DOUBLE_EQ(result.Limit(), 11);
  EXPECT_DOUBLE_EQ(result.Share(), 0.8);  // of 9/11.5, 10/11, 8/10
}

// R's type 7, which is also NumPy's default.
TEST(BenchNotes, Quantiles) {
  EXPECT_EQ(cli::QuantileOf({}, 0.5), 0);
  EXPECT_EQ(cli::QuantileOf({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(cli::QuantileOf({4, 1, 3, 2}, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(cli::QuantileOf({4, 1, 3, 2}, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(cli::DeviationOf({2, 4, 4, 4, 5, 5, 7, 9}), std::sqrt(32.0 / 7));
}

TEST(BenchNotes, SayWhatSpoilsAResult) {
  const auto note = [](auto change) {
    cli::BenchResult result = Measured();
    change(result);
    const std::vector<std::string> notes = result.Notes();
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  };
  EXPECT_TRUE(Has(note([](auto& r) { r.samples[0].seconds = r.samples[2].seconds = 0.8; }),
                  "above the limit"));
  EXPECT_EQ(note([](auto& r) { r.conditions.clock_after = 2.5; }), "slowed down: 3.00 to 2.50 GHz");
  EXPECT_EQ(note([](auto& r) { r.samples[0].limits.read = 14e9; }), "limit moved: 10 to 14");
  EXPECT_EQ(note([](auto& r) { r.test.n_threads = 8, r.conditions.n_cores = 2; }),
            "8 threads on 2 cores");
  EXPECT_EQ(note([](auto& r) { r.test.n_threads = 2, r.conditions.n_cores = 1; }),
            "2 threads on 1 core");
  EXPECT_EQ(note([](auto& r) { r.conditions.share_of_cores = 0.6; }),
            "cores taken: had 60% of its time");
  const auto verdict = [&](double low, double high) {
    return note([=](auto& r) {
      r.comparison = {.ratio = 0.97, .low = low, .high = high};
      r.comparison->verdict = r.comparison->For(0.05);
    });
  };
  EXPECT_EQ(verdict(0.96, 0.98), "not slower");  // slower, but by less than 5%
  EXPECT_EQ(verdict(0.94, 0.98), "slower");
  EXPECT_EQ(verdict(0.94, 1.02), "could not tell");
  EXPECT_EQ(verdict(1.01, 1.02), "faster");
}

// Arithmetic limits a prompt, bandwidth limits tokens: the limit of both is the sum of their times.
TEST(BenchNotes, LimitOfBoth) {
  cli::BenchResult result = Measured();
  result.test.n_prompt = 30;
  result.cost.operations = 1e9;
  const cli::BenchSample sample = {1, {10e9, 30e9}};
  // 30 tokens in a second, 10 tokens in another.
  EXPECT_DOUBLE_EQ(result.LimitOf(sample), 20);
  result.test.n_gen = 0;
  result.test.n_prompt = 2;
  EXPECT_DOUBLE_EQ(result.LimitOf(sample), 20);  // few tokens: reading the weights takes longer
  result.test.n_texts = 2;                       // their prompts are read one after the other
  EXPECT_DOUBLE_EQ(result.LimitOf(sample), 20);
}

// Eight texts of ten tokens take ten passes, in each of which 8e9 operations or 1e9 bytes.
TEST(BenchNotes, LimitOfTextsTogether) {
  cli::BenchResult result = Measured();
  result.test.n_texts = 8;
  result.cost.operations = 1e9;
  result.samples = {{80.0 / 9, {10e9, 32e9}}};
  EXPECT_DOUBLE_EQ(result.Limit(), 32);
  EXPECT_DOUBLE_EQ(result.Limit(), result.test.Tokens() / 2.5);
  result.samples[0].limits.dot = 160e9;
  EXPECT_DOUBLE_EQ(result.Limit(), 80);
  EXPECT_DOUBLE_EQ(result.ReadsPerSecond(), 9e9 / 8);
  result.cost.cache = 5e8;  // for each text
  EXPECT_DOUBLE_EQ(result.Limit(), 16);
  EXPECT_DOUBLE_EQ(result.ReadsPerSecond(), 5 * 9e9 / 8);
  result.test.n_texts = 1;  // one text, as if all drafts were right
  result.test.n_pass = 8;
  result.samples = {{10.0 / 9, {10e9, 160e9}}};
  // Two passes, of eight and of two tokens.
  EXPECT_DOUBLE_EQ(result.ReadsPerSecond(), 1.5e9 * 2 / (10.0 / 9));
  EXPECT_DOUBLE_EQ(result.Limit(), 10 / (2 * 0.15));
  result.samples[0].limits.dot = 5e9;  // computing takes longer than reading: ten tokens
  EXPECT_DOUBLE_EQ(result.Limit(), 10 / (10 * 0.2));
}

}  // namespace
}  // namespace test
