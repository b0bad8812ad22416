// pronk bench --baseline: finds the same tests in an earlier run and compares their speed.
#include <algorithm>
#include <sstream>

#include "cli/bench/bench.h"
#include "cli/output/json_file.h"
#include "cli/terminal/terminal.h"
#include "engine/folder/json.h"
#include "engine/error.h"

namespace cli {

// The file holds an array of objects, or one object per line.
Baseline::Baseline(const std::string& path) {
  constexpr size_t kMaxBytes = size_t{1} << 20;
  const std::string text = ReadText(path, kMaxBytes);
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    throw engine::Error(path, ": expected what pronk bench -o json writes, found nothing");
  }
  if (text[begin] == '[') {
    for (const auto& item : ParseJson(text, path)) Add(item.value, path);
    return;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    Add(ParseJson(line, path + ": line " + std::to_string(rows_.size() + 1)), path);
  }
}

void Baseline::Add(const JsonView& json, const std::string& path) {
  const engine::Fields fields(path + ": result " + std::to_string(rows_.size() + 1), json);
  const auto if_there = [&](const char* key) {
    return fields.Has(key) ? std::optional(fields.Number(key)) : std::nullopt;
  };
  const std::vector<double> speeds = fields.Numbers("samples_ts");
  if (speeds.empty() || std::ranges::min(speeds) <= 0)
    fields.Fail("samples_ts", "expected a list of numbers above 0");
  rows_.push_back({fields.Number("model_size"),
                   fields.Number("model_n_params"),
                   fields.Number("n_prompt"),
                   fields.Number("n_gen"),
                   fields.Number("n_depth"),
                   fields.Number("n_threads"),
                   fields.NumberOr("n_pass", 1),
                   fields.NumberOr("n_parallel", 1),
                   if_there("n_batch"),
                   if_there("n_ubatch"),
                   fields.TextOr("type_k", ""),
                   {speeds, fields.NumberOr("limit_ts", 0), fields.NumberOr("int_rate", 0),
                    fields.NumberOr("share_of_cores", 0)}});
}

const Baseline::Row* Baseline::Find(const BenchTest& test) const {
  const auto same = [](double before, auto now) { return before == static_cast<double>(now); };
  for (const Row& before : rows_) {
    if (same(before.model_size, test.model->opened.file.tensor_bytes()) &&
        same(before.model_n_params, test.model->opened.file.elements()) &&
        same(before.n_prompt, test.n_prompt) && same(before.n_gen, test.n_gen) &&
        same(before.n_depth, test.n_depth) && same(before.n_threads, test.n_threads) &&
        same(before.n_drafted * before.n_texts, test.n_pass) &&
        same(before.n_texts, test.n_texts()) &&
        same(before.n_batch.value_or(static_cast<double>(test.n_batch)), test.n_batch) &&
        same(before.n_ubatch.value_or(static_cast<double>(test.n_ubatch)), test.n_ubatch) &&
        (before.kv.empty() || before.kv == test.kv))
      return &before;
  }
  return nullptr;
}

Comparison Baseline::Compare(const BenchTest& test, double error) const {
  return CompareSamples(
      Find(test)->samples,
      {test.samples_ts, test.Limit(), test.MedianLimit(&BenchLimits::integer), test.share_of_cores},
      error);
}

}  // namespace cli
