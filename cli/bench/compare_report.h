// pronk compare: several files side by side, with the measurements of each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/prediction/divergence.h"
#include "cli/prediction/text_windows.h"

namespace cli {

struct ComparedModel {
  BenchModel model;
  std::optional<double> bits_per_byte = {};  // if there is a text
  // Set if there is a text, and the tokens are the first model's; divergence is from that model.
  std::optional<Estimate> perplexity = {};
  std::optional<Divergence> divergence = {};
  BenchResult prompt = {}, generation = {};  // with samples, if measured

  uint64_t bytes() const { return model.opened.file.file_bytes(); }
  double bits_per_weight() const;
  std::string Name() const;  // the file's name without ".gguf"
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
