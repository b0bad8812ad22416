// The measurements of a benchmark. commands/bench.cc plans the tests, bench_measure.cc measures
// one, bench_format.cc and bench_plot.cc show the results, bench_earlier.cc reads earlier runs'
// results, bench_pairs.cc measures beside another program, bench_gate.cc decides whether a test is
// slower.
//
// The result of a test is the median of its repetitions, in tokens per second. Limits are in tokens
// per second, too: the speed if the machine only read the weights and multiplied. They are measured
// before and after each repetition, by the same threads, because the speed of a shared machine
// changes from second to second; each measurement is the median of three.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/json_file.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "engine/stopwatch.h"
#include "kernels/threads/thread_pool.h"

namespace cli {

struct BenchModel {
  engine::Model opened;
  std::string type = {};  // "llama 1.10B Q4_0"
  double load_ms = 0;     // time to open the file
};
BenchModel DescribeModel(engine::Model opened, double load_seconds = 0);

// The program and the machine, for all tests of a run.
struct BenchSetting {
  std::string version;       // "0.1.0"
  std::string commit, date;  // date: when the run started
  std::string cpu_name, cpu_target;
  std::string other;                      // the program to compare results with; "" for none
  std::vector<std::string> machine = {};  // MachineLines()

  std::string Cpu() const { return cpu_name + " (" + cpu_target + ")"; }
};
BenchSetting ThisSetting(const std::string& other = "");

// A row of the plan: a model, its work and how it is run.
struct BenchTest {
  const BenchModel* model = nullptr;
  size_t n_prompt = 0, n_gen = 0;  // tokens of each text that are read, then generated
  size_t n_depth = 0;              // tokens of each text already in the cache
  size_t n_texts = 1;              // generated together
  size_t n_pass = 1;               // tokens of a pass, as if all drafts were right
  size_t n_threads = 1;
  size_t n_batch = 2048, n_ubatch = 512;  // tokens of a prompt in a call, and computed at once
  std::string kv = "f16";                 // type of the cache

  std::string Name() const;  // "pp512", "tg128 @ d4096", "pp512+tg128", "tg128 by 4", "8 x tg128"
  const char* Kind() const { return n_prompt == 0 ? "tg" : n_gen == 0 ? "pp" : "both"; }
  double Tokens() const { return static_cast<double>((n_prompt + n_gen) * n_texts); }
  // Passes that generate; the last one may have fewer tokens than n_pass.
  size_t Passes() const { return (n_gen + n_pass - 1) / n_pass; }
  // True if all other members are equal, so that this number's effect can be seen.
  bool DiffersIn(size_t BenchTest::*number, const BenchTest& other) const;
};

// The machine's work: the bytes of weights and of a text's cache that each generated token reads,
// and the operations of a token.
struct BenchCost {
  double weights = 0, cache = 0, operations = 0;
};

BenchCost CostOf(const BenchTest& test, kernels::KvTypes kv_type);

// The machine's limits, measured right before or after a repetition.
struct BenchLimits {
  double read = 0;  // bytes per second
  double dot = 0;   // operations per second
};
BenchLimits MeasureLimits(kernels::ThreadPool& pool, const engine::Model& model);

struct BenchSample {
  double seconds = 0;
  BenchLimits limits = {};         // the higher limits of before and after
  double first_token_seconds = 0;  // after the prompt; 0 without a prompt
};

// The machine's state during a test.
struct BenchConditions {
  std::string date;
  size_t n_cores = 0;                        // cores that this process may use; 0 if unknown
  double clock_before = 0, clock_after = 0;  // GHz under load
  double share_of_cores = 1;                 // CPU time / (wall time * threads)
  double peak_bytes = 0, cache_bytes = 0;    // resident memory at most; all texts' whole caches
  std::optional<double> instructions_per_cycle;
};

// A test's speed relative to an earlier run's or another program's.
enum class Verdict { kNotSlower, kSlower, kUnknown };
struct Comparison {
  double ratio = 0;          // ratio of the speeds, this / other
  double low = 0, high = 0;  // the interval that holds the true ratio, at the gate's confidence
  std::vector<double> other_ts = {};  // the other's speeds; with --against each is a sample's pair
  Verdict verdict = Verdict::kUnknown;
  double seconds_more = 0;  // time that a decision would take, if the scatter stays; 0: unknown

  // Not slower if the interval excludes a slowdown by `detect` (0.05: 5%), slower if it lies below
  // 1; otherwise unknown.
  Verdict For(double detect) const {
    if (low > 1 - detect) return Verdict::kNotSlower;
    return high < 1 ? Verdict::kSlower : Verdict::kUnknown;
  }
  bool HasInterval() const { return high < 1e3 * ratio; }  // else there are too few samples
  std::string Text() const;                                // "0.97 (0.95-0.99)"
  std::string Word() const;                                // "not slower"
};

struct BenchResult {
  BenchTest test;
  BenchCost cost = {};
  std::vector<BenchSample> samples = {};
  std::vector<double> token_seconds = {};  // between generated tokens, all repetitions
  BenchConditions conditions = {};
  std::optional<Comparison> comparison = {};

  // Statistics of the samples, 0 without one. Speeds and limits are in tokens per second.
  std::vector<double> Speeds() const;
  double Speed(double quantile = 0.5) const;
  double LimitOf(const BenchSample& sample) const;
  double Limit() const;
  double Share() const;  // median of speed / limit
  double MedianLimit(double BenchLimits::*which) const;
  double FirstTokenSeconds() const;
  double BytesOfPass() const {
    return cost.weights + static_cast<double>(test.n_texts) * cost.cache;
  }
  // Bytes read and operations per second; 0 for tests that both read and generate.
  double ReadsPerSecond() const;
  double OperationsPerSecond() const;
  // Remarks that a reader of this result needs, a few words each.
  std::vector<std::string> Notes() const;
};

// Asked after each repetition: whether to measure once more.
using WantsMore = std::function<bool(const BenchResult&)>;
// Runs a test in its own session: warm-up, then repetitions, which are added to the result, with
// limits measured in between. options: settings that the test lacks. Returns false if Ctrl-C ended
// it.
bool Measure(const engine::SessionOptions& options, BenchResult& result, const WantsMore& more);

// Writes results one by one, in one format. Each function returns the text to write now.
class BenchFormat {
 public:
  virtual ~BenchFormat() = default;
  // Takes all tests before they are measured, because column widths depend on them.
  virtual std::string Begin(const std::vector<BenchTest>& plan) = 0;
  virtual std::string Row(const BenchResult& result) = 0;
  virtual std::string End(const std::vector<BenchResult>& done) = 0;
};
// name: md, csv, json, jsonl or sql. The setting must outlive the format.
std::unique_ptr<BenchFormat> MakeBenchFormat(const std::string& name, const BenchSetting& setting);
// The fields of all formats but md: llama-bench's under its names, then ours.
Json ResultFields(const BenchSetting& setting, const BenchResult& result);

// The results as an SVG picture.
std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchResult>& results);

// Input of a comparison: the repetitions, and the machine's limits meanwhile; 0 where unknown.
struct BenchSamples {
  std::vector<double> ts;  // tokens per second
  double limit = 0;        // tokens per second
  double dot_limit = 0;    // operations per second
  double cores = 0;        // CPU time that the test had / CPU time it could have had
};

// Results of an earlier run, as written by -o json or jsonl, or by llama-bench.
class EarlierResults {
 public:
  struct Row {
    std::map<std::string, std::string> fields;  // identify test and machine
    BenchSamples samples;
    std::string Name() const;  // the test's name, with its model and threads
  };
  // Throws engine::Error.
  explicit EarlierResults(const std::string& path);
  static Row RowOf(const Json& fields);  // ResultFields() of a test, perhaps not yet measured

  // The earlier result of this test; nullptr if the file has no such test.
  const Row* Find(const Row& test) const;
  // The field in which a test differs from a row of the file, if it is the only one: "n_threads: 4,
  // here 2"; or "".
  std::string NearMiss(const Row& test) const;
  // "cpu_info: AMD EPYC, here Intel Xeon"; "" if the machine is the same or unknown.
  std::string OtherMachine(const Row& test) const;
  // Throws engine::Error if the file has none of the tests. what: "that were asked for".
  void Expect(const std::vector<Row>& tests, const std::string& what) const;
  // Sets `text` to a table that compares the tests of `now` with the file's. Returns the exit
  // status.
  int Compare(const std::vector<Row>& now, double detect, std::string& text) const;
  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::string path_;
  std::vector<Row> rows_;
};

// Statistics of one test's repetitions; 0 without repetitions.
double QuantileOf(std::vector<double> values, double share);
double MedianOf(const std::vector<double>& values);
double MeanOf(const std::vector<double>& values);
double SquaredDeviations(const std::vector<double>& values);  // sum, from the mean
double DeviationOf(const std::vector<double>& values);        // standard deviation

// The ratio of the medians. error: the probability that the interval misses the true ratio; with
// too few samples for that, the interval holds every ratio.
Comparison CompareSamples(const BenchSamples& before, const BenchSamples& now, double error);
// CompareSamples for two programs that took turns: entry i of `now` is paired with entry i of
// `other`.
Comparison ComparePairs(const std::vector<double>& other, const std::vector<double>& now,
                        double error);

inline constexpr double kGateError = 0.01;  // error of all evaluations of a gate together

// When to end one test's comparison: the samples are evaluated whenever their number has doubled,
// and the comparison ends once it is decided or the time is over. All evaluations of all tests
// share the gate's error.
class Gate {
 public:
  using Compare = std::function<Comparison(double error)>;
  // first: samples at the first evaluation; seconds: time for this test.
  Gate(double detect, size_t n_tests, size_t first, double seconds)
      : detect_(detect), n_tests_(n_tests), next_(first), seconds_(seconds) {}
  // Called after n samples. True if more are wanted; otherwise `result` is final.
  bool WantsMore(size_t n, const Compare& compare, Comparison& result);

 private:
  double detect_;
  size_t n_tests_, next_;
  double seconds_;
  size_t looks_ = 0;
  engine::Stopwatch watch_;
};

// Measures a test by running two programs in turn, each in processes of its own with --repetitions
// each: `other` (a pronk, or a llama-bench) and this one. `say` gets the result of each evaluation.
// Returns false if Ctrl-C ended it.
bool MeasurePairs(const std::string& other, int repetitions, const std::string& cpu, Gate gate,
                  const std::function<void(const std::string&)>& say, BenchResult& result);

}  // namespace cli
