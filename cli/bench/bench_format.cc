// The results of pronk bench as a table, and as fields in CSV, JSON and SQL, each row at once.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/bench/machine.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "gguf/error.h"

namespace cli {
namespace {

// --- The table --------------------------------------------------------------------------------

using Result = BenchResult;

std::string Milliseconds(double seconds) { return seconds > 0 ? Figures(1e3 * seconds, 3) : ""; }

std::string RateText(double rate, double unit) { return rate > 0 ? Figures(rate / unit, 3) : ""; }

struct BenchColumn {
  std::string title;
  size_t width;  // 0: known before the measurement, as wide as the widest of the plan
  std::function<std::string(const Result&)> cell;
  bool left = false;
  bool shown = true;
};

// The columns of a test, then of its results.
std::vector<BenchColumn> BenchColumns(const BenchSetting& setting,
                                      const std::vector<BenchTest>& plan) {
  const BenchTest defaults;
  const auto any = [&](auto is) { return std::ranges::any_of(plan, is); };
  using Test = BenchTest;
  const auto number = [&](const char* title, size_t Test::*member, bool shown = false) {
    const auto is_set = [&](const Test& test) { return test.*member != defaults.*member; };
    const auto cell = [=](const Result& result) { return std::to_string(result.test.*member); };
    return BenchColumn{title, 0, cell, false, shown || any(is_set)};
  };
  const bool reads = any([](const Test& test) { return test.n_prompt > 0; });
  const bool writes = any([](const Test& test) { return test.n_gen > 0; });
  std::vector<BenchColumn> columns = {
      {"model", 0, [](const Result& result) { return result.test.model->type; }, true},
      {"size", 0,
       [](const Result& result) {
         return HumanBytes(result.test.model->opened.file.tensor_bytes());
       }},
      number("threads", &Test::n_threads, true),
      number("batch", &Test::n_batch),
      number("ubatch", &Test::n_ubatch),
      {"cache", 0, [](const Result& result) { return result.test.kv; }, false,
       any([&](const Test& test) { return test.kv != defaults.kv; })},
      {"test", 0, [](const Result& result) { return result.test.Name(); }},
      {"t/s, median", 11, [](const Result& result) { return Format("%.2f", result.Speed()); }},
      {"quartiles", 15,
       [](const Result& result) {
         return Figures(result.Speed(0.25), 4) + "-" + Figures(result.Speed(0.75), 4);
       }},
      {"best", 7, [](const Result& result) { return Figures(result.Speed(1), 4); }},
      {"of the other (runs)", 26,
       [](const Result& result) {
         const auto& other = result.comparison;
         return other ? other->Text() + Format(" (%zu)", other->other_ts.size()) : "";
       },
       false, !setting.other.empty()},
      {"limit, t/s", 10, [](const Result& result) { return Format("%.2f", result.Limit()); }},
      {"share", 5, [](const Result& result) { return Format("%.0f%%", 100 * result.Share()); }},
      {"GB/s", 6, [](const Result& result) { return RateText(result.ReadsPerSecond(), 1e9); },
       false, writes},
      {"TOPS", 6, [](const Result& result) { return RateText(result.OperationsPerSecond(), 1e12); },
       false, reads},
      {"first token, ms", 15,
       [](const Result& result) { return Milliseconds(result.FirstTokenSeconds()); }, false, reads},
      {"token p50, p99, ms", 18,
       [](const Result& result) {
         const std::vector<double>& all = result.token_seconds;
         return all.empty()
                    ? ""
                    : Milliseconds(MedianOf(all)) + ", " + Milliseconds(QuantileOf(all, .99));
       },
       false, writes},
      {"memory", 7,
       [](const Result& result) {
         return HumanBytes(static_cast<uint64_t>(result.conditions.peak_bytes));
       }},
      {"notes", 5, [](const Result& result) { return Joined(result.Notes(), "; "); }, true}};
  std::erase_if(columns, [](const BenchColumn& column) { return !column.shown; });
  for (BenchColumn& column : columns) {
    if (column.width > 0) continue;
    column.width = 2;
    for (const Test& test : plan)
      column.width = std::max(column.width, TextColumns(column.cell({.test = test})));
  }
  return columns;
}

class Markdown : public BenchFormat {
 public:
  explicit Markdown(const BenchSetting& setting) : setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    std::vector<std::string> lines = {
        "pronk " + setting_.version + " (commit " + setting_.commit + "), " + setting_.date,
        setting_.Cpu(), Joined(setting_.machine, "; ")};
    const BenchModel* last = nullptr;
    for (const BenchTest& test : plan) {
      const BenchModel& model = *test.model;
      if (&model == std::exchange(last, &model)) continue;
      lines.push_back(gguf::PrintablePath(model.opened.file.path()) +
                      Format(", opened in %.1f ms, limits read from ", model.load_ms) +
                      ReadsFrom(model.opened.LargestStretch().size()));
    }
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    columns_ = BenchColumns(setting_, plan);
    std::vector<TableColumn> heads;
    for (const BenchColumn& column : columns_) {
      heads.push_back({column.title, !column.left, column.width});
    }
    table_.emplace(Table::Style::kMarkdown, heads);
    return text + "\n" + table_->Head();
  }

  std::string Row(const BenchResult& result) override {
    std::vector<std::string> row;
    for (const BenchColumn& column : columns_) row.push_back(column.cell(result));
    return table_->Row(row);
  }

  std::string End(const std::vector<BenchResult>& done) override {
    if (done.empty()) return "";
    return Format("\nclock %.2f GHz before, %.2f GHz after\n", done.front().conditions.clock_before,
                  done.back().conditions.clock_after);
  }

 private:
  const BenchSetting& setting_;
  std::vector<BenchColumn> columns_;
  std::optional<Table> table_;
};

// --- JSON, CSV and SQL: the same fields --------------------------------------------------------

// Puts a text in the quotes of CSV (") or SQL (').
std::string InQuotes(const std::string& text, char quote) {
  return quote + Replaced(text, {{quote, std::string(2, quote)}}) + quote;
}

// A list is a text of its items, and a switch is 0 or 1, as in llama-bench.
std::string Cell(const Json& value, char quote) {
  if (value.is_null()) return quote == '"' ? "" : "NULL";
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  if (value.is_string()) return InQuotes(gguf::PrintablePath(value.get<std::string>()), quote);
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) {
    text += (text.empty() ? "" : item.is_string() ? "; " : " ");
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return InQuotes(text, quote);
}

// The fields' names, or a test's values. CSV follows RFC 4180, but with line feeds only.
std::string Line(bool is_sql, const Json& fields, bool names) {
  std::vector<std::string> cells;
  for (const auto& [name, value] : fields.items()) {
    const bool is_text = value.is_string() || value.is_array();
    const bool is_whole = value.is_number_integer() || value.is_boolean();
    cells.push_back(!names    ? Cell(value, is_sql ? '\'' : '"')
                    : !is_sql ? InQuotes(name, '"')
                              : name + (is_text    ? " TEXT"
                                        : is_whole ? " INTEGER"
                                                   : " REAL"));
  }
  const std::string line = Joined(cells, is_sql ? ", " : ",");
  if (!is_sql) return line + "\n";
  return (names ? "CREATE TABLE IF NOT EXISTS llama_bench (" : "INSERT INTO llama_bench VALUES (") +
         line + ");\n";
}

// One line of CSV or SQL, one object of a JSON array, or one object per line for each test.
class FieldRows : public BenchFormat {
 public:
  FieldRows(std::string format, const BenchSetting& setting)
      : format_(std::move(format)), is_json_(format_.starts_with("json")), setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    if (is_json_) return format_ == "json" ? "[" : "";
    return Line(format_ == "sql", ResultFields(setting_, {.test = plan.front()}), /*names=*/true);
  }
  std::string Row(const BenchResult& result) override {
    const Json fields = ResultFields(setting_, result);
    if (!is_json_) return Line(format_ == "sql", fields, /*names=*/false);
    if (format_ == "jsonl") return JsonText(fields, -1);
    // Printed as an array of one element, without its brackets.
    const std::string text = JsonText(Json::array({fields}), 2);
    return (std::exchange(first_, false) ? "" : ",") + text.substr(1, text.size() - 4);
  }
  std::string End(const std::vector<BenchResult>& /*done*/) override {
    return format_ == "json" ? "\n]\n" : "";
  }

 private:
  std::string format_;
  bool is_json_;  // or jsonl
  const BenchSetting& setting_;
  bool first_ = true;
};

}  // namespace

Json ResultFields(const BenchSetting& setting, const BenchResult& result) {
  const BenchTest& test = result.test;
  const BenchModel& model = *test.model;
  const BenchConditions& conditions = result.conditions;
  const Comparison* const other = result.comparison ? &*result.comparison : nullptr;
  const auto known = [](double value) {  // 0 and infinity were not measured
    return value > 0 && std::isfinite(value) ? Json(value) : Json();
  };
  const auto milliseconds = [&](double seconds) { return known(1e3 * seconds); };
  const auto of_tokens = [&](double quantile) {
    return milliseconds(QuantileOf(result.token_seconds, quantile));
  };
  std::vector<double> nanoseconds;
  for (const BenchSample& sample : result.samples) nanoseconds.push_back(1e9 * sample.seconds);
  const std::vector<double> speeds = result.Speeds();
  Json fields = {{"build_commit", setting.commit},
                 {"build_number", 0},
                 {"cpu_info", setting.cpu_name},
                 {"gpu_info", ""},
                 {"backends", "CPU"},
                 {"model_filename", model.opened.file.path()},
                 {"model_type", model.type},
                 {"model_size", model.opened.file.tensor_bytes()},
                 {"model_n_params", model.opened.file.elements()},
                 {"n_batch", test.n_batch},
                 {"n_ubatch", test.n_ubatch},
                 {"n_threads", test.n_threads},
                 {"type_k", ModelOptions::KeysAndValues(test.kv).first},
                 {"type_v", ModelOptions::KeysAndValues(test.kv).second},
                 {"n_prompt", test.n_prompt},
                 {"n_gen", test.n_gen},
                 {"n_depth", test.n_depth},
                 {"test_time", conditions.date},
                 {"avg_ns", std::llround(MeanOf(nanoseconds))},
                 {"stddev_ns", std::llround(DeviationOf(nanoseconds))},
                 {"avg_ts", MeanOf(speeds)},
                 {"stddev_ts", DeviationOf(speeds)},
                 {"samples_ns", Json::array()},
                 {"samples_ts", speeds},
                 // Our own fields.
                 {"version", setting.version},
                 {"cpu_target", setting.cpu_target},
                 {"machine", setting.machine},
                 {"n_pass", test.n_pass},
                 {"n_parallel", test.n_texts},
                 {"median_ts", result.Speed()},
                 {"q1_ts", result.Speed(0.25)},
                 {"q3_ts", result.Speed(0.75)},
                 {"best_ts", result.Speed(1)},
                 {"first_token_ms", milliseconds(result.FirstTokenSeconds())},
                 {"token_p50_ms", of_tokens(0.5)},
                 {"token_p90_ms", of_tokens(0.9)},
                 {"token_p99_ms", of_tokens(0.99)},
                 {"limit_ts", result.Limit()},
                 {"share_of_limit", result.Share()},
                 {"limit_reads_from", ReadsFrom(model.opened.LargestStretch().size())},
                 {"bytes_per_second", known(result.ReadsPerSecond())},
                 {"ops_per_second", known(result.OperationsPerSecond())},
                 {"read_limit", known(result.MedianLimit(&BenchLimits::read))},
                 {"dot_limit", known(result.MedianLimit(&BenchLimits::dot))},
                 {"instructions_per_cycle", known(conditions.instructions_per_cycle.value_or(0))},
                 {"peak_bytes", std::llround(conditions.peak_bytes)},
                 {"cache_bytes", std::llround(conditions.cache_bytes)},
                 {"clock_before_ghz", conditions.clock_before},
                 {"clock_after_ghz", conditions.clock_after},
                 {"share_of_cores", conditions.share_of_cores},
                 {"baseline_ts", known(other != nullptr ? MedianOf(other->other_ts) : 0)},
                 {"baseline_samples_ts", other != nullptr ? Json(other->other_ts) : Json::array()},
                 {"baseline_ratio", known(other != nullptr ? other->ratio : 0)},
                 {"baseline_low", known(other != nullptr ? other->low : 0)},
                 {"baseline_high", known(other != nullptr ? other->high : 0)},
                 {"notes", result.Notes()},
                 {"load_ms", model.load_ms}};
  for (const double of_sample : nanoseconds)
    fields["samples_ns"].push_back(std::llround(of_sample));
  // Columns without a counterpart here have llama-bench's defaults: its compare script asks for
  // them.
  fields.update(Json::parse(
      R"({"cpu_mask": "0x0", "cpu_strict": false, "poll": 50, "n_gpu_layers": -1, "n_cpu_moe": 0,
          "split_mode": "layer", "main_gpu": 0, "no_kv_offload": false, "flash_attn": -1,
          "devices": "auto", "tensor_split": "0.00", "tensor_buft_overrides": "none",
          "use_mmap": true, "load_mode": "auto", "lazy_mode": "auto", "embeddings": false,
          "no_op_offload": 0, "no_host": false, "repack": true, "fit_target": 0,
          "fit_min_ctx": 0})"));
  return fields;
}

std::unique_ptr<BenchFormat> MakeBenchFormat(const std::string& name, const BenchSetting& setting) {
  if (name == "md") return std::make_unique<Markdown>(setting);
  return std::make_unique<FieldRows>(name, setting);
}

}  // namespace cli
