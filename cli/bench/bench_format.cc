// The results of pronk bench as a table, as CSV and as JSON, each row written at once.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bench/bench.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "gguf/error.h"

namespace cli {
namespace {

// --- The table --------------------------------------------------------------------------------

// "12.3"; "" for 0.
std::string Amount(const char* format, double amount) {
  return amount > 0 ? Format(format, amount) : "";
}

std::string InUnits(uint64_t n, double unit) {
  return Format("%.2f", static_cast<double>(n) / unit);
}

struct BenchColumn {
  std::string title;
  size_t width;  // 0: known before the measurement, as wide as the widest of the plan
  std::function<std::string(const BenchTest&)> cell;
  bool left = false;
  bool shown = true;
};

// What is measured, then the results.
std::vector<BenchColumn> BenchColumns(const BenchSetting& setting,
                                      const std::vector<BenchTest>& plan) {
  // One unit per column, small enough that the smallest value is not shown as 0.
  uint64_t size = UINT64_MAX, n_params = UINT64_MAX;
  bool batches = false, ubatches = false, caches = false, passes = false;  // not the default
  const BenchTest usual;
  for (const BenchTest& test : plan) {
    size = std::min(size, test.model->opened.file.tensor_bytes());
    n_params = std::min(n_params, test.model->opened.file.elements());
    batches |= test.n_batch != usual.n_batch;
    ubatches |= test.n_ubatch != usual.n_ubatch;
    caches |= test.kv != usual.kv;
    passes |= test.n_pass > 1;
  }
  const double size_unit = size >= 100'000'000 ? 1e9 : 1e6;
  const double params_unit = n_params >= 100'000'000 ? 1e9 : 1e6;
  using Test = BenchTest;
  std::vector<BenchColumn> columns = {
      {"model", 0, [](const Test& test) { return test.model->type; }, true},
      {size_unit == 1e9 ? "size, GB" : "size, MB", 0,
       [=](const Test& test) {
         return InUnits(test.model->opened.file.tensor_bytes(), size_unit);
       }},
      {params_unit == 1e9 ? "params, B" : "params, M", 0,
       [=](const Test& test) { return InUnits(test.model->opened.file.elements(), params_unit); }},
      {"backend", 0, [&](const Test&) { return "CPU " + setting.cpu_target; }, true},
      {"threads", 0, [](const Test& test) { return std::to_string(test.n_threads); }},
      {"batch", 0, [](const Test& test) { return std::to_string(test.n_batch); }, false, batches},
      {"ubatch", 0, [](const Test& test) { return std::to_string(test.n_ubatch); }, false,
       ubatches},
      {"cache", 0, [](const Test& test) { return test.kv; }, false, caches},
      {"test", 0, [](const Test& test) { return test.Name(); }},
      {"t/s, median ± sd", 20,
       [](const Test& test) {
         const std::string median = Format("%.2f", test.Median());
         const bool alone = test.samples_ts.size() < 2;
         return alone ? median : median + Format(" ± %.2f", test.Deviation());
       }},
      {"of the other", 21,
       [](const Test& test) {
         if (!test.comparison) return std::string();
         const Comparison& found = *test.comparison;
         return Figures(found.ratio, 4) + " (" + Figures(found.low, 4) + "-" +
                Figures(found.high, 4) + ")";
       },
       false, !setting.other.empty()},
      {"limit, t/s", 10, [](const Test& test) { return Format("%.2f", test.Limit()); }},
      {"share", 5, [](const Test& test) { return Format("%.0f%%", 100 * test.Share()); }},
      {"GB/s", 7, [](const Test& test) { return Amount("%.2f", test.ReadsPerSecond() / 1e9); }},
      {"TOPS", 7,
       [](const Test& test) { return Amount("%.3f", test.OperationsPerSecond() / 1e12); }},
      {"pass", 5,
       [](const Test& test) { return test.n_prompt == 0 ? Amount("%.2f", test.PassCost()) : ""; },
       false, passes},
      {"J/token", 8, [](const Test& test) { return Format("%.4f", test.JoulesPerToken()); }, false,
       setting.has_energy},
      {"W", 5, [](const Test& test) { return Format("%.1f", test.Watts()); }, false,
       setting.has_energy},
      {"notes", 5, [](const Test& test) { return Joined(test.Notes(), "; "); }, true}};
  std::erase_if(columns, [](const BenchColumn& column) { return !column.shown; });
  for (BenchColumn& column : columns) {
    if (column.width > 0) continue;
    column.width = 2;
    for (const Test& test : plan) {
      column.width = std::max(column.width, TextColumns(column.cell(test)));
    }
  }
  return columns;
}

class Markdown : public BenchFormat {
 public:
  explicit Markdown(const BenchSetting& setting) : setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    std::vector<std::string> lines = {
        "pronk " + setting_.version + " (commit " + setting_.commit + "), " + setting_.date,
        setting_.Cpu()};
    lines.insert(lines.end(), setting_.machine.begin(), setting_.machine.end());
    const BenchModel* last = nullptr;
    for (const BenchTest& test : plan) {
      if (test.model != last) lines.push_back(gguf::PrintablePath(test.model->opened.file.path()));
      last = test.model;
    }
    std::string text;
    for (const std::string& line : lines) text += (IsCard() ? "- " : "") + line + "\n";
    columns_ = BenchColumns(setting_, plan);
    std::vector<TableColumn> heads;
    for (const BenchColumn& column : columns_) {
      heads.push_back({column.title, !column.left, column.width});
    }
    table_.emplace(Table::Style::kMarkdown, heads);
    return text + "\n" + table_->Head();
  }

  std::string Row(const BenchTest& test) override {
    std::vector<std::string> row;
    for (const BenchColumn& column : columns_) row.push_back(column.cell(test));
    return table_->Row(row);
  }

  std::string End(const std::vector<BenchTest>& done) override {
    std::string text;
    const BenchModel* last = nullptr;
    for (const BenchTest& test : done) {
      const BenchModel& model = *test.model;
      if (&model == std::exchange(last, &model)) continue;
      text += "\n" + model.type +
              Format(
                  ": opened in %.1f ms; first token %.1f ms after opening began, with a prompt of "
                  "8 tokens\n",
                  model.load_ms, model.first_token_ms);
    }
    for (const BenchTest& test : done) {
      if (IsCard() && test.n_prompt > 0 && test.n_gen > 0) text += Waiting(test, done);
    }
    if (done.empty()) return text;
    const BenchTest &first = done.front(), &test = done.back();
    text += Format("clock %.2f GHz before, %.2f GHz after", first.clock_before, test.clock_after);
    if (first.celsius_before && test.celsius_after) {
      text += Format("; %.0f °C before, %.0f °C after", *first.celsius_before, *test.celsius_after);
    }
    return text + "\n";
  }

 private:
  bool IsCard() const { return !setting_.machine.empty(); }

  // "pp4096+tg128: 21.3 s, the first token after 15.9 s": what a user waits for.
  static std::string Waiting(const BenchTest& test, const std::vector<BenchTest>& done) {
    std::string text = test.Name() + ": " + Figures(test.Tokens() / test.Median(), 3) + " s";
    // Planned before it: the same prompt alone, by as many threads or by those that suit a prompt.
    for (const BenchTest* other = &test; other != done.data();) {
      --other;
      if (other->model != test.model || other->n_prompt != test.n_prompt || other->n_gen > 0 ||
          other->n_depth != test.n_depth)
        continue;
      text += ", the first token after " +
              Figures(static_cast<double>(other->n_prompt) / other->Median(), 3) + " s";
      break;
    }
    return text + "\n";
  }

  const BenchSetting& setting_;
  std::vector<BenchColumn> columns_;
  std::optional<Table> table_;
};

// --- JSON and CSV: the same fields ------------------------------------------------------------

// Fields that llama-bench also has get its names.
Json TestFields(const BenchSetting& setting, const BenchTest& test) {
  const BenchModel& model = *test.model;
  const auto known = [](bool is_known, double value) {
    return is_known && std::isfinite(value) ? Json(value) : Json();
  };
  const auto limit = [&](double BenchLimits::*which) {
    const double median = test.MedianLimit(which);
    return known(median > 0, median);
  };
  const bool compared = test.comparison.has_value();
  const Comparison comparison = test.comparison.value_or(Comparison());
  return {
      {"version", setting.version},
      {"build_commit", setting.commit},
      {"cpu_info", setting.cpu_name},
      {"cpu_target", setting.cpu_target},
      {"backends", "CPU"},
      {"model_filename", model.opened.file.path()},
      {"model_type", model.type},
      {"model_size", model.opened.file.tensor_bytes()},
      {"model_n_params", model.opened.file.elements()},
      {"n_batch", test.n_batch},
      {"n_ubatch", test.n_ubatch},
      {"n_threads", test.n_threads},
      {"type_k", test.kv},
      {"type_v", test.kv},
      {"n_prompt", test.n_prompt},
      {"n_gen", test.n_gen},
      {"n_depth", test.n_depth},
      {"n_pass", test.n_pass / test.n_texts()},
      {"n_parallel", test.n_texts()},
      {"test_time", test.date},
      {"avg_ts", MeanOf(test.samples_ts)},
      {"stddev_ts", test.Deviation()},
      {"median_ts", test.Median()},
      {"samples_ts", test.samples_ts},
      {"limit_ts", test.Limit()},
      {"share_of_limit", test.Share()},
      {"bytes_per_second", known(test.n_prompt == 0, test.ReadsPerSecond())},
      {"ops_per_second", known(test.n_gen == 0, test.OperationsPerSecond())},
      {"read_limit", limit(&BenchLimits::read)},
      {"dot_limit", limit(&BenchLimits::dot)},
      {"int_rate", limit(&BenchLimits::integer)},
      {"pass_cost", known(test.n_prompt == 0 && test.single_ts > 0, test.PassCost())},
      {"joules_per_token", known(setting.has_energy, test.JoulesPerToken())},
      {"clock_before_ghz", test.clock_before},
      {"clock_after_ghz", test.clock_after},
      {"celsius_before", known(test.celsius_before.has_value(), test.celsius_before.value_or(0))},
      {"celsius_after", known(test.celsius_after.has_value(), test.celsius_after.value_or(0))},
      {"share_alone", test.share_alone},
      {"share_of_cores", test.share_of_cores},
      {"baseline_ts", known(compared, comparison.other_ts)},
      {"baseline_ratio", known(compared, comparison.ratio)},
      {"baseline_low", known(compared, comparison.low)},
      {"baseline_high", known(compared, comparison.high)},
      {"notes", test.Notes()},
      {"load_ms", model.load_ms},
      {"first_token_ms", model.first_token_ms}};
}

// In the quotes of CSV (") or SQL (').
std::string InQuotes(const std::string& text, char quote) {
  std::string quoted(1, quote);
  for (const char c : text) quoted += c == quote ? std::string(2, c) : std::string(1, c);
  return quoted + quote;
}

// A list is a text of its items.
std::string Cell(const Json& value, char quote) {
  if (value.is_null()) return quote == '"' ? "" : "NULL";
  if (value.is_string()) return InQuotes(gguf::PrintablePath(value.get<std::string>()), quote);
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& item : value) {
    text += (text.empty() ? "" : item.is_string() ? "; " : " ");
    text += item.is_string() ? item.get<std::string>() : item.dump();
  }
  return InQuotes(text, quote);
}

// The fields' names, or those of a test. CSV is that of RFC 4180, with line feeds only.
std::string Line(bool is_sql, const Json& fields, bool names) {
  std::vector<std::string> cells;
  for (const auto& [name, value] : fields.items()) {
    const bool is_text = value.is_string() || value.is_array();
    cells.push_back(!names    ? Cell(value, is_sql ? '\'' : '"')
                    : !is_sql ? InQuotes(name, '"')
                              : name + (is_text                     ? " TEXT"
                                        : value.is_number_integer() ? " INTEGER"
                                                                    : " REAL"));
  }
  const std::string line = Joined(cells, is_sql ? ", " : ",");
  if (!is_sql) return line + "\n";
  return (names ? "CREATE TABLE IF NOT EXISTS pronk_bench (" : "INSERT INTO pronk_bench VALUES (") +
         line + ");\n";
}

// One line of CSV or SQL, one object of a JSON array, or one object per line for each test.
class FieldRows : public BenchFormat {
 public:
  FieldRows(std::string format, const BenchSetting& setting)
      : format_(std::move(format)), is_json_(format_.starts_with("json")), setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    if (is_json_) return format_ == "json" ? "[" : "";
    BenchTest sample = plan.front();
    sample.samples_ts = {1};
    sample.limits = {{1, 1, 1}};
    return Line(format_ == "sql", TestFields(setting_, sample), /*names=*/true);
  }
  std::string Row(const BenchTest& test) override {
    const Json fields = TestFields(setting_, test);
    if (!is_json_) return Line(format_ == "sql", fields, /*names=*/false);
    if (format_ == "jsonl") return JsonText(fields, -1);
    // Printed as an array of one element, without its brackets.
    const std::string text = JsonText(Json::array({fields}), 2);
    return (std::exchange(first_, false) ? "" : ",") + text.substr(1, text.size() - 4);
  }
  std::string End(const std::vector<BenchTest>& /*done*/) override {
    return format_ == "json" ? "\n]\n" : "";
  }

 private:
  std::string format_;
  bool is_json_;  // or jsonl
  const BenchSetting& setting_;
  bool first_ = true;
};

}  // namespace

std::unique_ptr<BenchFormat> MakeBenchFormat(const std::string& name, const BenchSetting& setting) {
  if (name == "md") return std::make_unique<Markdown>(setting);
  return std::make_unique<FieldRows>(name, setting);
}

}  // namespace cli
