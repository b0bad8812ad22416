// pronk bench compared with earlier runs and with another program: when a result counts as slower.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/bench/bench_run.h"

namespace test {
namespace {

namespace fs = std::filesystem;

TEST(BenchBaseline, IntervalOfRatios) {
  EXPECT_EQ(cli::CompareSamples({{1}}, {{1}}, 0.05).high, HUGE_VAL);
  // Without any spread, only drift is uncertain.
  const auto same = cli::CompareSamples({{10, 10, 10}, 100, 1e9}, {{9, 9, 9}, 100, 1e9}, 0.05);
  EXPECT_DOUBLE_EQ(same.ratio, 0.9);
  EXPECT_DOUBLE_EQ(same.low, 0.9);
  EXPECT_DOUBLE_EQ(same.high, 0.9);
  for (const cli::BenchSamples& now :
       {cli::BenchSamples{{9, 9, 9}, 85, 1e9, 1}, cli::BenchSamples{{9, 9, 9}, 0, 0.85e9, 1},
        cli::BenchSamples{{9, 9, 9}, 100, 0, 0.85}}) {
    const auto drifted = cli::CompareSamples({{10, 10, 10}, 100, 1e9, 1}, now, 0.05);
    EXPECT_NEAR(drifted.high, 0.9 / 0.85, 1e-12);
    EXPECT_NEAR(drifted.low, 0.9 * 0.85, 1e-12);
  }
  // Two pairs that differ by a factor of e^0.02: their pooled variance is 0.02^2 / 2. Student's t
  // for two degrees of freedom, and for 1, 3, 5 and 20, is as in printed tables.
  const double e = std::exp(0.01);
  const std::vector<double> pair = {10 / e, 10 * e};
  EXPECT_NEAR(cli::CompareSamples({pair}, {pair}, 0.05).high, std::exp(4.30265 * 0.02), 1e-7);
  const auto t = [&](size_t freedom, double error) {
    std::vector<double> more = pair;
    while (more.size() < freedom + 1) more.push_back(10);
    const double deviation = 0.01 * std::sqrt(4.0 / static_cast<double>(freedom));
    const cli::Comparison found = cli::CompareSamples({more}, {{10}}, error);
    return std::log(found.high / found.ratio) / deviation;
  };
  EXPECT_NEAR(t(1, 0.05), 12.7062, 1e-3);
  EXPECT_NEAR(t(3, 0.01), 5.84091, 1e-4);
  EXPECT_NEAR(t(5, 0.01), 4.03214, 1e-4);
  EXPECT_NEAR(t(20, 0.001), 3.84952, 1e-4);
}

// Wilcoxon's tables: with 8 pairs and an error of 5% the 4th smallest and largest means count.
TEST(BenchGate, IntervalOfPairs) {
  const std::vector<double> ones(8, 1);
  std::vector<double> now, means;
  for (int i = 0; i < 8; ++i) now.push_back(std::exp(std::pow(2, i) / 1000));
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k <= i; ++k) means.push_back((std::pow(2, i) + std::pow(2, k)) / 2000);
  }
  std::sort(means.begin(), means.end());
  const cli::Comparison found = cli::ComparePairs(ones, now, 0.05);
  EXPECT_NEAR(std::log(found.low), means[3], 1e-12);
  EXPECT_NEAR(std::log(found.high), means[means.size() - 4], 1e-12);
  EXPECT_NEAR(std::log(found.ratio), cli::MedianOf(means), 1e-12);
  EXPECT_EQ(cli::ComparePairs(ones, now, 0.005).high, HUGE_VAL);  // 2 of 256 signs are more
}

// Logarithms of the ratios of 64 pairs of turns of one binary (tg64, two threads), in thousandths,
// measured on two cores of a server with a load of 11.
constexpr std::array kNoise = {-16, -9,  -104, -23, 1,   4,   -5, -221, -30, 1,   -219, 26,   74,
                               19,  -39, 104,  -10, 27,  11,  4,  25,   -43, 0,   25,   -15,  -27,
                               -14, 30,  -16,  20,  -12, 0,   -7, 166,  4,   -16, 7,    -19,  -529,
                               153, 15,  -2,   -17, 3,   0,   4,  16,   238, 15,  -41,  -116, -83,
                               0,   -89, -356, -23, 32,  336, 5,  -3,   -60, -9,  -8,   19};

// How many of n gates, with a true ratio and noise like the measured noise, end with a verdict.
size_t Gates(size_t n, double true_ratio, cli::Verdict verdict, size_t max_pairs) {
  std::mt19937 random(1);
  size_t count = 0;
  for (size_t i = 0; i < n; ++i) {
    std::vector<double> other, now;
    cli::Comparison result;
    cli::Gate gate(0.05, 2, 12, 1e9);
    const auto compare = [&](double error) { return cli::ComparePairs(other, now, error); };
    do {
      const double noise = kNoise[random() % kNoise.size()] * (random() % 2 == 0 ? 1e-3 : -1e-3);
      other.push_back(100);
      now.push_back(100 * true_ratio * std::exp(noise));
    } while (gate.WantsMore(now.size(), compare, result) && now.size() < max_pairs);
    count += result.verdict == verdict;
  }
  return count;
}

TEST(BenchGate, EndsRightlyWithNoiseOfRealRuns) {
  EXPECT_LE(Gates(400, 1, cli::Verdict::kSlower, 96), 2u);
  EXPECT_GE(Gates(200, 0.95, cli::Verdict::kSlower, 96), 190u);
}

// A program that reports a thousand times our speed, after more than a pipe's 64 KB.
TEST(BenchGate, TakesTurnsWithAnotherProgram) {
  const TempDir dir;
  const std::string other =
      dir.Write("other's", "#!/bin/sh\nprintf '%70000s'\n" + Program() + R"( "$@" |
    sed 's/"samples_ts": *.[0-9]*/&000/')");
  fs::permissions(other, fs::perms::owner_all);
  const Finished run = Bench({"-r", "1", "--against", other, "-o", "json"});
  EXPECT_EQ(run.status, 3) << run.err;
  EXPECT_TRUE(Has(run.err, "other's: slower: pp4 0.0")) << run.err;
  EXPECT_TRUE(Has(run.err, ") after 12 pairs"));
  const Json row = Json::parse(run.out)[0];
  EXPECT_EQ(SchemaFaults(Json::array({row}), BenchSchema()), std::vector<std::string>());
  EXPECT_EQ(row["samples_ts"].size(), 12u);
  EXPECT_EQ(row["baseline_samples_ts"].size(), 12u);
  EXPECT_LT(row["baseline_high"], 1);
}

// A pair that takes longer than all pairs may.
TEST(BenchGate, SaysThatPairsAreTooFew) {
  const TempDir dir;
  const std::string other =
      dir.Write("other", "#!/bin/sh\nsleep 1\nexec " + Program() + " \"$@\"\n");
  fs::permissions(other, fs::perms::owner_all);
  const Finished run = Bench({"--against", other, "--max-time", "1"});
  EXPECT_EQ(run.status, 5);
  EXPECT_TRUE(Has(run.err, "other: could not tell, --max-time allows too few pairs: pp4 "))
      << run.err;
  EXPECT_TRUE(Has(run.err, " (too few to tell) after 1 pair\n")) << run.err;
}

TEST(BenchGate, RefusesWhatCannotTakeTurns) {
  ExpectError(Bench({"--against", "/"}), 1, "/: is not executable");
  ExpectError(Bench({"--against", "/no/such"}), 1, "/no/such: there is no such program");
  ExpectError(Bench({"--against", "a", "--baseline", "b"}), 2, "one of them");
  ExpectError(Bench({"--against", "a", "--override-kv", "llama.x="}), 2, "--override-kv: not with");
  ExpectError(Bench({"--detect", "0"}), 2, "--detect: expected from 0.1% to 50%, found 0");
}

class BaselineTest : public testing::Test {
 protected:
  // A current run, to be compared with faster and slower runs.
  Json Now() { return Json::parse(Bench({"-o", "json"}).out); }
  Finished Against(const std::string& text) {
    return Bench({"-o", "json", "--baseline", dir_.Write("old.json", text)});
  }
  TempDir dir_;
};

TEST_F(BaselineTest, ExitsWith3WhereSomethingIsSlower) {
  Json old = Now();
  // The difference is so large that no pause of a busy machine matters.
  for (const auto& [speed, status] : std::vector<std::pair<double, int>>{{1e250, 3}, {1e-100, 0}}) {
    old[0]["samples_ts"] = {speed, speed};
    old[0]["limit_ts"] = old[0]["dot_limit"] = nullptr;
    old[0]["share_of_cores"] = nullptr;
    const Finished run = Against(old.dump());
    EXPECT_EQ(run.status, status) << run.err;
    EXPECT_TRUE(Has(run.err, status == 3 ? "| slower " : "| faster ")) << run.err;
    EXPECT_EQ(SchemaFaults(Json::parse(run.out), BenchSchema()), std::vector<std::string>());
  }
}

// Lines of objects, and the output of other or older programs, which has fewer fields.
TEST_F(BaselineTest, TakesLinesAndFewerFields) {
  Json old = Now()[0];
  old["samples_ts"] = {1e250, 1e250};
  for (const char* key :
       {"limit_ts", "dot_limit", "share_of_cores", "n_batch", "n_ubatch", "type_k", "version"})
    old.erase(key);
  Json other = old;
  other["n_prompt"] = 77;
  EXPECT_EQ(Against(other.dump() + "\n" + old.dump() + "\n").status, 3);
  EXPECT_EQ(Against("\n" + other.dump() + "\r\n\r\n" + old.dump() + "\r\n").status, 3);
  ExpectError(Against("\n\n" + old.dump() + "\n\n{\n"), 1, "old.json: line 5: is not JSON");
}

// The types of keys and of values each make another test.
TEST_F(BaselineTest, KnowsTypesOfTheCache) {
  const Json old = Now();
  for (const char* key : {"type_k", "type_v"}) {
    Json other = old;
    other[0][key] = "q8_0";
    ExpectError(Against(other.dump()), 1,
                std::string("has none of the tests that were asked for; ") + key + ": q8_0, here ");
  }
}

TEST_F(BaselineTest, RefusesOtherFiles) {
  Json old = Now();
  ExpectError(Against(""), 1, "found nothing");
  ExpectError(Against("[{"), 1, "old.json: is not JSON from byte");
  ExpectError(Against("[1]"), 1, "old.json: result 1: expected a JSON object, found 1");
  old[0]["n_gen"] = "4";
  ExpectError(Against(old.dump()), 1, "result 1: n_gen: expected a number, found a text");
  old[0]["n_gen"] = 0;
  old[0]["samples_ts"] = Json::array({1, -1});
  ExpectError(Against(old.dump()), 1, "samples_ts: expected a list of numbers above 0");
  old[0]["samples_ts"] = {1, 1};
  old[0]["n_threads"] = 1000;
  ExpectError(Against(old.dump()), 1,
              "has none of the tests that were asked for; n_threads: 1000, here ");
}

// A measurement on another machine says nothing about the program; another file of the same size is
// compared, with a warning.
TEST_F(BaselineTest, KnowsMachinesAndFiles) {
  Json old = Now();
  old[0]["samples_ts"] = {1e-100, 1e-100};
  old[0]["limit_ts"] = old[0]["dot_limit"] = old[0]["share_of_cores"] = nullptr;
  old[0]["model_filename"] = "/elsewhere/other.gguf";
  const Finished run = Against(old.dump());
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(Has(run.err, "| model_filename: other.gguf, here llama.gguf |")) << run.err;
  for (const char* key : {"cpu_info", "cpu_target"}) {
    Json other = old;
    other[0][key] = "none";
    ExpectError(Against(other.dump()), 1,
                std::string("was measured on another machine, ") + key + ": none, here ");
  }
  old[0]["cpu_info"] = "CPU";  // a llama-bench that does not know its machine
  EXPECT_EQ(Against(old.dump()).status, 0);
}

// Two files are compared like a run and a file, without measuring.
TEST_F(BaselineTest, DiffOfTwoFiles) {
  Json row = {{"model_size", 100}, {"model_n_params", 100}, {"n_prompt", 0},
              {"n_gen", 8},        {"n_depth", 0},          {"n_threads", 2},
              {"cpu_info", "A"},   {"model_type", "llama"}, {"samples_ts", {100, 101, 99, 100}}};
  Json other = row;
  other["samples_ts"] = {50, 51, 50, 49};
  other["cpu_info"] = "B";
  const std::string before = dir_.Write("before.json", Json::array({row}).dump());
  const std::string now = dir_.Write("now.jsonl", other.dump() + "\n");
  const Finished slower = Pronk({"bench", "--diff", before, now});
  EXPECT_EQ(slower.status, 3);
  EXPECT_TRUE(Has(slower.out, "| llama, 2 threads, tg8 |        100 |      50 | 0.5 ("));
  EXPECT_TRUE(Has(slower.out, "| slower ")) << slower.out;
  EXPECT_TRUE(Has(slower.out, "| cpu_info: A, here B "));
  const Finished faster = Pronk({"bench", "--diff", now, before});
  EXPECT_EQ(faster.status, 0);
  EXPECT_TRUE(Has(faster.out, "| faster "));
  other["n_threads"] = 4;
  const std::string apart = dir_.Write("apart.json", other.dump());
  ExpectError(Pronk({"bench", "--diff", before, apart}), 1,
              "before.json: has none of the tests of ");
  ExpectError(Pronk({"bench", "--diff", before}), 2, "--diff: expected two files");
}

// The interval of an undecided gate predicts the remaining time: twice the necessary width takes
// four times as long.
TEST(BenchGate, SaysHowMuchLonger) {
  cli::Gate gate(0.05, 1, 1, 0);
  cli::Comparison result;
  const double needed = -std::log(0.95);
  const auto twice = [&](double) {
    return cli::Comparison{.ratio = 1, .low = std::exp(-2 * needed), .high = std::exp(2 * needed)};
  };
  usleep(20'000);
  EXPECT_FALSE(gate.WantsMore(12, twice, result));
  EXPECT_EQ(result.verdict, cli::Verdict::kUnknown);
  EXPECT_GE(result.seconds_more, 3 * 0.02 * 0.999);
  EXPECT_EQ(result.Word(), "could not tell");
}

}  // namespace
}  // namespace test
