// What a benchmark measures. commands/bench.cc plans the tests, bench_measure.cc measures one,
// bench_format.cc and bench_plot.cc show the results, bench_baseline.cc compares with earlier ones.
//
// The result of a test is the median of its repetitions, in tokens per second. Limits are in tokens
// per second, too: the speed if the machine only read the weights and multiplied. They are measured
// before and after each repetition, by the same threads, because the speed of a shared machine
// changes from second to second.
#ifndef PRONK_CLI_BENCH_BENCH_H_
#define PRONK_CLI_BENCH_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/json.h"

namespace cli {

struct BenchModel {
  std::string file;
  std::string type;   // "llama 1.10B Q4_0"
  uint64_t size = 0;  // bytes of all tensors
  uint64_t n_params = 0;
  double load_ms = 0;         // to open the file
  double first_token_ms = 0;  // from opening to the first token after a prompt of 8
};

// The program and the machine, the same for all tests.
struct BenchSetting {
  std::string version;       // "0.1.0"
  std::string commit, date;  // date: when the run started
  std::string cpu_name, cpu_target;
  bool has_energy = false;
  std::string baseline;  // the file to compare results with; "" for none

  std::string Cpu() const { return cpu_name + " (" + cpu_target + ")"; }
};
BenchSetting ThisSetting(const std::string& sysfs, const std::string& baseline = "");

// Measured right before or after a repetition.
struct BenchLimits {
  double read = 0;     // bytes per second
  double dot = 0;      // operations per second; 0 where no prompt is read
  double integer = 0;  // operations per second: no limit, but shows whether others share the cores
};

// A test's result now compared with an earlier one.
struct Comparison {
  double before_ts = 0;  // the earlier median
  double ratio = 0;      // now / before
  double spread = 0;     // of the ratio: 19 of 20 runs of an equal program are within it
  bool IsSlower() const { return ratio + spread < 1; }
  bool IsFaster() const { return ratio - spread > 1; }
};

struct BenchTest {
  const BenchModel* model = nullptr;
  size_t n_prompt = 0;  // tokens read, then tokens generated
  size_t n_gen = 0;
  size_t n_depth = 0;  // tokens already in the cache
  size_t n_pass = 1;   // generated tokens read in one pass, as if all drafts were right
  int n_threads = 1;
  size_t n_batch = 2048;   // tokens of a prompt per call
  size_t n_ubatch = 512;   // tokens of a batch computed at once
  std::string kv = "f16";  // type of the cache
  double bytes_per_token = 0;
  double operations_per_token = 0;

  // What was measured.
  std::string date;
  std::vector<double> samples_ts;   // tokens per second of each repetition,
  std::vector<BenchLimits> limits;  // and the higher of the limits before and after it
  double clock_before = 0;          // GHz under load
  double clock_after = 0;
  std::optional<double> celsius_before, celsius_after;
  double joules = 0;          // of all repetitions, where known
  double share_alone = 0;     // of the passes: run by one thread, because cores were taken
  double share_of_cores = 1;  // CPU time / (wall time * threads)
  std::optional<Comparison> comparison;
  double single_ts = 0;  // median of the same test with passes of one token; 0 if not measured

  // "pp512", "tg128 @ d4096", "pp512+tg128", "tg128 by 4"
  std::string Name() const;
  double Median() const;
  double Deviation() const;                 // standard deviation of the samples
  double LimitOf(size_t repetition) const;  // tokens per second
  double Limit() const;                     // the median
  double MedianLimit(double BenchLimits::*which) const;
  double Share() const;  // median over repetitions of speed / limit
  double JoulesPerToken() const;
  // The time of a pass relative to a pass of one token; 0 if not measured.
  double PassCost() const;
  // Bytes of weights and operations per second; 0 for tests that do both.
  double ReadsPerSecond() const {
    return n_prompt == 0 ? Median() * bytes_per_token / static_cast<double>(n_pass) : 0;
  }
  double OperationsPerSecond() const { return n_gen == 0 ? Median() * operations_per_token : 0; }
  // True if the two tests differ only in tokens per pass, so that their pass costs can be compared.
  bool DiffersInPasses(const BenchTest& other) const;
  // What a reader has to know about this result, a few words each.
  std::vector<std::string> Notes() const;
};

// Runs a test in its own session: warm-up, then the repetitions with limits measured in between.
// options sets what the test does not. `sysfs` is "/sys". Returns false if Ctrl-C ended it.
bool Measure(const engine::Model& model, const engine::SessionOptions& options, int repetitions,
             const std::string& sysfs, BenchTest& test);

// Writes tests one by one, in one format. Each function returns the text to write now.
class BenchFormat {
 public:
  virtual ~BenchFormat() = default;
  // All tests before they are measured: widths and units depend on them.
  virtual std::string Begin(const std::vector<BenchTest>& plan) = 0;
  virtual std::string Row(const BenchTest& test) = 0;
  virtual std::string End(const std::vector<BenchTest>& done) = 0;
};
// name: md, csv, json or jsonl. The setting must outlive the format.
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
  // Empty if there is no such test, or too few repetitions to estimate their spread.
  std::optional<Comparison> Compare(const BenchTest& test) const;

 private:
  // Fields that an older or another program does not write are assumed to be equal.
  struct Row {
    double model_size, model_n_params, n_prompt, n_gen, n_depth, n_threads, n_pass;
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
// The ratio of the medians and its spread. Empty if either side has fewer than two repetitions.
std::optional<Comparison> CompareSamples(const BenchSamples& before, const BenchSamples& now);

}  // namespace cli

#endif  // PRONK_CLI_BENCH_BENCH_H_
