// What a benchmark measures. commands/bench.cc plans the tests, bench_measure.cc measures one,
// bench_format.cc and bench_plot.cc show the results, bench_baseline.cc reads earlier ones,
// bench_pairs.cc measures beside another program, bench_gate.cc decides whether one is slower.
//
// The result of a test is the median of its repetitions, in tokens per second. Limits are in tokens
// per second, too: the speed if the machine only read the weights and multiplied. They are measured
// before and after each repetition, by the same threads, because the speed of a shared machine
// changes from second to second; each time the middle of three tries counts.
#ifndef PRONK_CLI_BENCH_BENCH_H_
#define PRONK_CLI_BENCH_BENCH_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "engine/stopwatch.h"
#include "gguf/json.h"

namespace cli {

struct BenchModel {
  engine::Model opened;
  std::string type = {};      // "llama 1.10B Q4_0"
  double load_ms = 0;         // to open the file
  double first_token_ms = 0;  // from opening to the first token after a prompt of 8
};

// The program and the machine, the same for all tests.
struct BenchSetting {
  std::string version;       // "0.1.0"
  std::string commit, date;  // date: when the run started
  std::string cpu_name, cpu_target;
  bool has_energy = false;
  std::string other;  // the file or program to compare results with; "" for none
  std::vector<std::string> machine = {};  // MachineLines() of a card, else empty

  std::string Cpu() const { return cpu_name + " (" + cpu_target + ")"; }
};
BenchSetting ThisSetting(const std::string& sysfs, const std::string& other = "");

// Measured right before or after a repetition.
struct BenchLimits {
  double read = 0;     // bytes per second
  double dot = 0;      // operations per second; 0 where no prompt is read
  double integer = 0;  // operations per second: no limit, but shows whether others share the cores
};

// A test's speed relative to an earlier run's or another program's.
enum class Verdict { kNotSlower, kSlower, kUnknown };
struct Comparison {
  double other_ts = 0;       // the other's median
  double ratio = 0;          // of the speeds, this / other
  double low = 0, high = 0;  // the interval that holds the true ratio, at the gate's confidence
  // By the change that is looked for (0.05: slower by 5%); the interval may be too wide for either.
  Verdict For(double detect) const {
    if (low > 1 - detect) return Verdict::kNotSlower;
    return high < 1 ? Verdict::kSlower : Verdict::kUnknown;
  }
  Verdict verdict = Verdict::kUnknown;
};

struct BenchTest {
  const BenchModel* model = nullptr;
  size_t n_prompt = 0;  // tokens read, then tokens generated
  size_t n_gen = 0;
  size_t n_depth = 0;  // tokens already in the cache
  // Generated tokens read in one pass: of several texts, or of one whose drafts are all right.
  size_t n_pass = 1;
  bool of_texts = false;
  size_t n_threads = 1;
  size_t n_batch = 2048;       // tokens of a prompt per call
  size_t n_ubatch = 512;       // tokens of a batch computed at once
  std::string kv = "f16";      // type of the cache
  size_t minutes = 0;          // how long it is repeated; 0: as often as all others
  double bytes_per_token = 0;  // of weights
  double cache_bytes = 0;      // of a text's keys and values, which each generated token reads
  double operations_per_token = 0;

  // What was measured.
  std::string date;
  size_t n_cores = 0;                    // that this process may use; 0 if unknown
  std::vector<double> samples_ts;        // tokens per second of each repetition,
  std::vector<BenchLimits> limits;       // and the higher of the limits before and after it
  size_t first_end = 0, last_begin = 0;  // with minutes: samples of the first one and the last
  std::string moved;                     // how a limit differs from an earlier test's
  double clock_before = 0;               // GHz under load
  double clock_after = 0;
  std::optional<double> celsius_before, celsius_after;
  double joules = 0;          // of all repetitions, where known
  double share_alone = 0;     // of the passes: run by one thread, as several waited for long
  double share_of_cores = 1;  // CPU time / (wall time * threads)
  std::optional<Comparison> comparison;
  double single_ts = 0;  // median of the same test with passes of one token; 0 if not measured

  // "pp512", "tg128 @ d4096", "pp512+tg128", "tg128 by 4", "8 x tg128"
  std::string Name() const;
  size_t n_texts() const { return of_texts ? n_pass : 1; }
  double Tokens() const { return static_cast<double>(n_prompt + n_gen * n_texts()); }
  double Median() const;
  double Deviation() const;                 // standard deviation of the samples
  double LimitOf(size_t repetition) const;  // tokens per second
  double Limit() const;                     // the median
  double MedianLimit(double BenchLimits::*which) const;
  double Share() const;  // median over repetitions of speed / limit
  double JoulesPerToken() const;
  double Watts() const;
  // The time of a pass relative to a pass of one token; 0 if not measured.
  double PassCost() const;
  double BytesOfPass() const {
    return bytes_per_token + static_cast<double>(n_texts()) * cache_bytes;
  }
  // Bytes read and operations per second; 0 for tests that do both.
  double ReadsPerSecond() const {
    return n_prompt == 0 ? Median() * BytesOfPass() / static_cast<double>(n_pass) : 0;
  }
  double OperationsPerSecond() const { return n_gen == 0 ? Median() * operations_per_token : 0; }
  // True if nothing else differs, so that this number's effect can be seen.
  bool DiffersIn(size_t BenchTest::*number, const BenchTest& other) const;
  // Whether this test's limits are those of the earlier ones.
  void CompareLimits(const std::vector<BenchTest>& earlier);
  // What a reader has to know about this result, a few words each.
  std::vector<std::string> Notes() const;
};

// Whether to measure once more, after a repetition.
using WantsMore = std::function<bool(const BenchTest&)>;

// Runs a test in its own session: warm-up, then the repetitions with limits measured in between.
// options sets what the test does not. `sysfs` is "/sys". Returns false if Ctrl-C ended it.
bool Measure(const engine::Model& model, const engine::SessionOptions& options, int repetitions,
             const std::string& sysfs, BenchTest& test, const WantsMore& more = {});

// Writes tests one by one, in one format. Each function returns the text to write now.
class BenchFormat {
 public:
  virtual ~BenchFormat() = default;
  // All tests before they are measured: widths and units depend on them.
  virtual std::string Begin(const std::vector<BenchTest>& plan) = 0;
  virtual std::string Row(const BenchTest& test) = 0;
  virtual std::string End(const std::vector<BenchTest>& done) = 0;
};
// name: md, csv, json, jsonl or sql. The setting must outlive the format.
std::unique_ptr<BenchFormat> MakeBenchFormat(const std::string& name, const BenchSetting& setting);

// The results as an SVG picture.
std::string BenchSvg(const BenchSetting& setting, const std::vector<BenchTest>& tests);

// Input of a comparison: repetitions, and what the machine gave meanwhile, 0 where unknown.
struct BenchSamples {
  std::vector<double> ts;   // tokens per second
  double limit = 0;         // tokens per second
  double integer_rate = 0;  // operations per second
  double cores = 0;         // CPU time that the test had / CPU time it could have had
};

// Results of an earlier run, as written by -o json or jsonl, or by llama-bench.
class Baseline {
 public:
  // Throws engine::Error.
  explicit Baseline(const std::string& path);
  bool Has(const BenchTest& test) const { return Find(test) != nullptr; }
  Comparison Compare(const BenchTest& test, double error) const;  // one that it has

 private:
  // Fields that an older or another program does not write are assumed to be equal.
  struct Row {
    double model_size, model_n_params, n_prompt, n_gen, n_depth, n_threads, n_drafted, n_texts;
    std::optional<double> n_batch, n_ubatch;
    std::string kv;
    BenchSamples samples;
  };
  void Add(const gguf::JsonView& json, const std::string& path);
  const Row* Find(const BenchTest& test) const;
  std::vector<Row> rows_;
};

// Statistics of one test's repetitions.
double MedianOf(std::vector<double> values);
double MeanOf(const std::vector<double>& values);
double SquaredDeviations(const std::vector<double>& values);  // sum, from the mean

// The ratio of the medians. error: the probability that the interval misses the true ratio; with
// too few samples for it the interval is everything.
Comparison CompareSamples(const BenchSamples& before, const BenchSamples& now, double error);
// The same for two programs that took turns: each entry of `now` has its partner in `other`.
Comparison ComparePairs(const std::vector<double>& other, const std::vector<double>& now,
                        double error);

// When to end one test's comparison: it is looked at when the samples have doubled in number, and
// ends if it is decided or the time is over. All looks at all tests share the error of 1%.
class Gate {
 public:
  using Compare = std::function<Comparison(double error)>;
  // first: samples at the first look; seconds: for this test.
  Gate(double detect, size_t n_tests, size_t first, double seconds)
      : detect_(detect), n_tests_(n_tests), next_(first), seconds_(seconds) {}
  // After n samples: true if more are wanted, otherwise `result` is final.
  bool WantsMore(size_t n, const Compare& compare, Comparison& result);

 private:
  double detect_;
  size_t n_tests_, next_;
  double seconds_;
  size_t looks_ = 0;
  engine::Stopwatch watch_;
};

// Measures a test by running two programs in turn, each in processes of its own with --repetitions
// each: `other` (a pronk, or a llama-bench) and this one. Returns false if Ctrl-C ended it.
bool MeasurePairs(const std::string& other, int repetitions, const std::string& cpu, Gate gate,
                  BenchTest& test);

}  // namespace cli

#endif  // PRONK_CLI_BENCH_BENCH_H_
