// pronk bench: what it measures, and what it notes about a result. Nothing here depends on how fast
// the machine is; whether the figures can be trusted is measured by hand (README of cli/bench).
#include "cli/bench/bench.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/cli/bench/bench_run.h"

namespace test {
namespace {

TEST(Bench, MeasuresEveryCombination) {
  const Finished run = Done(
      Pronk({"bench", "-m",  kModel, "-p", "4,8",  "-n",       "4",  "-pg", "4,2", "-d",  "0,3",
             "-t",    "1-2", "-ub",  "4",  "-ctk", "f16,q8_0", "-r", "1",   "-o",  "json"}));
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

// Texts generated together are beside one; a prompt is read as ever.
TEST(Bench, TextsTogether) {
  const Finished run = Done(Pronk({"bench", "-m", kModel, "-p", "4", "-n", "6", "-d", "0,2", "-np",
                                   "1,3", "-t", "2", "-r", "1", "-oe", "json"}));
  const Json tests = Json::parse(run.err);
  EXPECT_EQ(SchemaFaults(tests, BenchSchema()), std::vector<std::string>());
  ASSERT_EQ(tests.size(), 6u);
  EXPECT_TRUE(Has(run.out, "| 3 x tg6 @ d2 |"));
  const Json& together = tests[5];
  EXPECT_EQ(together["n_parallel"], 3);
  EXPECT_GT(together["dot_limit"], 0);
  // Three tokens take a pass: its cost is theirs.
  EXPECT_NEAR(together["pass_cost"],
              3 * tests[4]["median_ts"].get<double>() / together["median_ts"].get<double>(), 1e-9);
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
  for (const char* list : {"", "1,", "1-", "1-2+", "x", "1-8*1", "1-8+0", "1 2"}) {
    ExpectError(Bench({"-t", list}), 2, "-t: expected numbers such as");
  }
  ExpectError(Bench({"-t", "1-2000"}), 2, "-t: expected a number from 1 to 1024");
  ExpectError(Bench({"-p", "0-1073741824"}), 2, "-p: expected at most 1000 numbers");
}

// A minute of tests, of which nobody reads more than the first row.
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
  ExpectError(Bench({"-ctk", "f16", "-ctv", "q8_0"}), 2, "keys and values have one type");
  ExpectError(Bench({"-ctk", "f17"}), 2, "expected f16, f32 or q8_0");
  ExpectError(Bench({"-pg", "4"}), 2, "-pg: expected two numbers");
  ExpectError(Pronk({"bench", "-m", kModel, "-p", "0", "-n", "0"}), 2, "nothing to measure");
  ExpectError(Bench({"-ub", "0"}), 2, "-ub: expected a number from 1 to 4096");
  ExpectError(Bench({"--minutes", "2", "--baseline", "x"}), 2, "--minutes: not with");
  // A model that cannot be read is reported before the first one is measured.
  ExpectError(Bench({"-m", "no/such.gguf"}), 1, "no/such.gguf");
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
      "-r 1 --delay 100 --minutes 2 -o json -oe csv");
  EXPECT_EQ(run.status, 130);
  const Json tests = Json::parse(run.out);
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(tests[0]["n_prompt"], 4);
  const size_t message = run.err.find("pronk: interrupted: 1 of 3 tests are done");
  ASSERT_NE(message, std::string::npos) << run.err;
  EXPECT_EQ(Count(run.err.substr(0, message), "\n"), 2u);
}

TEST(BenchNotes, NothingWhereAllIsWell) {
  const cli::BenchTest test = Measured();
  EXPECT_EQ(test.Notes(), std::vector<std::string>());
  EXPECT_DOUBLE_EQ(test.Median(), 9);
  EXPECT_DOUBLE_EQ(test.Limit(), 11);
  EXPECT_DOUBLE_EQ(test.Share(), 0.8);  // of 9/11.5, 10/11, 8/10
}

TEST(BenchNotes, SayWhatSpoilsAResult) {
  const auto note = [](auto change) {
    cli::BenchTest test = Measured();
    change(test);
    const std::vector<std::string> notes = test.Notes();
    return notes.size() == 1 ? notes[0] : std::to_string(notes.size()) + " notes";
  };
  EXPECT_TRUE(Has(note([](auto& test) { test.samples_ts = {13, 10, 11}; }), "above the limit"));
  EXPECT_EQ(note([](auto& test) { test.clock_after = 2.5; }), "slowed down: 3.00 to 2.50 GHz");
  EXPECT_EQ(note([](auto& test) { test.limits[0].read = 14e9; }), "limit moved: 10 to 14");
  EXPECT_EQ(note([](auto& t) { t.n_threads = 8, t.n_cores = 2, t.share_alone = 0.5; }),
            "8 threads on 2 cores");
  EXPECT_EQ(note([](auto& t) { t.n_threads = 2, t.n_cores = 1; }), "2 threads on 1 core");
  EXPECT_EQ(note([](auto& t) { t.minutes = 5, t.first_end = 1, t.last_begin = 2; }),
            "minute 1: 9 t/s, minute 5: 8 t/s");
  EXPECT_EQ(note([](auto& t) {
              t.minutes = 5, t.first_end = 1, t.last_begin = 2;
              t.bytes_per_token = 1e5, t.samples_ts = {90000, 100000, 80000};
            }),
            "minute 1: 90000 t/s, minute 5: 80000 t/s");
  EXPECT_EQ(note([](auto& test) { test.share_alone = 0.5; }),
            "one thread did 50% of the passes alone");
  EXPECT_EQ(note([](auto& test) { test.share_of_cores = 0.6; }),
            "cores taken: had 60% of its time");
  const auto verdict = [&](double low, double high) {
    return note([=](auto& test) {
      test.comparison = {10, 0.97, low, high};
      test.comparison->verdict = test.comparison->For(0.05);
    });
  };
  EXPECT_EQ(verdict(0.96, 0.98), "not slower");  // but by less than 5%
  EXPECT_EQ(verdict(0.94, 0.98), "slower");
  EXPECT_EQ(verdict(0.94, 1.02), "could not tell");
  EXPECT_EQ(verdict(1.01, 1.02), "faster");
}

TEST(BenchNotes, TellWhereLimitsOfRowsDiffer) {
  const auto moved = [](auto change) {
    cli::BenchTest test = Measured();
    change(test);
    test.CompareLimits({Measured()});
    return test.moved;
  };
  EXPECT_EQ(moved([](auto&) {}), "");
  EXPECT_EQ(moved([](auto& test) { test.limits[0].read = 20e9; }), "");  // the median is the same
  const auto fall = [](auto& test) { test.limits = {{9e9, 0, 1e9}}; };
  EXPECT_EQ(moved(fall), "limit moved since tg10: 11 to 9 GB/s");
  EXPECT_EQ(moved([&](auto& test) {
              fall(test);
              test.n_threads = 2;
            }),
            "");
}

// 50 joules in 1 + 1 + 0.5 seconds.
TEST(BenchNotes, Watts) {
  cli::BenchTest test = Measured();
  test.samples_ts = {10, 10, 20};
  test.joules = 50;
  EXPECT_DOUBLE_EQ(test.Watts(), 20);
}

// A prompt is computed, tokens are read: the limit of both is the sum of their times.
TEST(BenchNotes, LimitOfBoth) {
  cli::BenchTest test = Measured();
  test.n_prompt = 30;
  test.operations_per_token = 1e9;
  test.limits = {{10e9, 30e9, 1e9}};
  // 30 tokens in a second, 10 tokens in another.
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 20);
  test.n_gen = 0;
  test.n_prompt = 2;
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 20);  // few tokens: reading the weights once takes longer
}

// Eight texts of ten tokens take ten passes, in each of which 8e9 operations or 1e9 bytes.
TEST(BenchNotes, LimitOfTextsTogether) {
  cli::BenchTest test = Measured();
  test.n_pass = 8;
  test.of_texts = true;
  test.operations_per_token = 1e9;
  test.limits = {{10e9, 32e9, 1e9}};
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 32);
  EXPECT_DOUBLE_EQ(test.LimitOf(0), test.Tokens() / 2.5);
  test.limits[0].dot = 160e9;
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 80);
  EXPECT_DOUBLE_EQ(test.ReadsPerSecond(), 9e9 / 8);
  test.cache_bytes = 5e8;  // of each text
  EXPECT_DOUBLE_EQ(test.LimitOf(0), 16);
  EXPECT_DOUBLE_EQ(test.ReadsPerSecond(), 5 * 9e9 / 8);
  test.of_texts = false;  // of one text, as if all drafts were right
  EXPECT_DOUBLE_EQ(test.ReadsPerSecond(), 1.5 * 9e9 / 8);
}

}  // namespace
}  // namespace test
