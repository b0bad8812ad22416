// pronk compare: several files side by side, and what was measured of each.
#ifndef PRONK_CLI_BENCH_COMPARE_REPORT_H_
#define PRONK_CLI_BENCH_COMPARE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/loss/divergence.h"
#include "cli/loss/text_windows.h"

namespace cli {

struct ComparedModel {
  engine::Model opened;
  std::string type = {};  // of most of its bytes
  uint64_t bytes = 0;     // of the file
  double bits_per_weight = 0;
  std::optional<Estimate> perplexity = {};    // if there is a text
  std::optional<Divergence> divergence = {};  // from the first model, if the tokens are the same
  BenchTest prompt = {}, generation = {};     // their samples, if they were measured

  std::string Name() const;  // the file's, without ".gguf"
};

struct CompareReport {
  BenchSetting setting;
  std::string text;  // the file with the text; "" for none
  size_t n_windows = 0, window = 0;
  std::vector<ComparedModel> models;
};

// A Markdown table, aligned for terminals, followed by the machine and the text.
std::string CompareTable(const CompareReport& report);
std::string CompareJson(const CompareReport& report);
std::string CompareSvg(const CompareReport& report);

}  // namespace cli

#endif  // PRONK_CLI_BENCH_COMPARE_REPORT_H_
