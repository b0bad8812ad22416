// What a benchmark measured, and the ways to show it. bench.cc measures, bench_report.cc shows.
#ifndef PRONK_ENGINE_CLI_BENCH_H_
#define PRONK_ENGINE_CLI_BENCH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cli {

struct BenchTest {
  size_t n_prompt = 0;  // one of n_prompt and n_gen is 0
  size_t n_gen = 0;
  size_t n_depth = 0;  // tokens already in the cache
  int n_threads = 1;
  std::vector<double> samples_ts;  // tokens per second of each repetition
  double work_per_token = 0;       // bytes read (generating) or operations (reading a prompt)
  double ceiling = 0;              // of this machine: bytes or operations per second

  std::string Name() const;  // "pp512", "tg128 @ d4096"
  double Average() const;
  double Median() const;
  double Deviation() const;  // standard deviation of the samples
  double WorkPerSecond() const { return Median() * work_per_token; }
  double Share() const { return WorkPerSecond() / ceiling; }
};

struct BenchReport {
  std::string model_file;
  std::string model_type;  // "llama 1.1B Q4_0"
  uint64_t model_size = 0;
  uint64_t model_n_params = 0;
  std::string cpu_target;
  double load_ms = 0;         // opening the model
  double first_token_ms = 0;  // from the start of the program to the first token behind 8
  std::vector<BenchTest> tests;
};

std::string BenchMarkdown(const BenchReport& report);
std::string BenchCsv(const BenchReport& report);
std::string BenchJson(const BenchReport& report);
std::string BenchSvg(const BenchReport& report);

}  // namespace cli

#endif  // PRONK_ENGINE_CLI_BENCH_H_
