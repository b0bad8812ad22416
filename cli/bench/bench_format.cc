// The results of pronk bench as a table, as CSV and as JSON: a row as soon as it is there.
#include <algorithm>
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

std::string JoinedNotes(const BenchTest& test) {
  std::string text;
  for (const std::string& note : test.Notes()) text += (text.empty() ? "" : "; ") + note;
  return text;
}

// --- The table --------------------------------------------------------------------------------

// "12.3"; "" for 0.
std::string Amount(const char* format, double amount) {
  return amount > 0 ? Format(format, amount) : "";
}

class Markdown : public BenchFormat {
 public:
  explicit Markdown(const BenchSetting& setting) : setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    AddWhatIsMeasured(plan);
    AddResults(plan);
    std::string text = Format("pronk %s (commit %s), %s\n%s (%s)\n", setting_.version.c_str(),
                              setting_.commit.c_str(), setting_.date.c_str(),
                              setting_.cpu_name.c_str(), setting_.cpu_target.c_str());
    const BenchModel* last = nullptr;
    for (const BenchTest& test : plan) {
      if (test.model != last) text += gguf::PrintablePath(test.model->file) + "\n";
      last = test.model;
    }
    table_.emplace(Table::Style::kMarkdown, columns_);
    return text + "\n" + table_->Head();
  }

  std::string Row(const BenchTest& test) override {
    std::vector<std::string> row;
    for (const auto& cell : cells_) row.push_back(cell(test));
    return table_->Row(row);
  }

  std::string End(const std::vector<BenchTest>& done) override {
    std::string text;
    const BenchModel* last = nullptr;
    for (const BenchTest& test : done) {
      const BenchModel& model = *test.model;
      if (&model != std::exchange(last, &model)) {
        text += Format(
            "\n%s: opened in %.1f ms; first token %.1f ms after opening began, with a prompt of 8 "
            "tokens\n",
            model.type.c_str(), model.load_ms, model.first_token_ms);
      }
    }
    return text + Machine(done);
  }

 private:
  void Add(const std::string& title, size_t width,
           std::function<std::string(const BenchTest&)> cell, bool left = false) {
    columns_.push_back({title, !left, width});
    cells_.push_back(std::move(cell));
  }

  // As wide as the widest of the plan.
  void AddKnown(const std::vector<BenchTest>& plan, const std::string& title,
                const std::function<std::string(const BenchTest&)>& cell, bool left = false) {
    size_t width = 2;
    for (const BenchTest& test : plan) width = std::max(width, TextColumns(cell(test)));
    Add(title, width, cell, left);
  }

  void AddWhatIsMeasured(const std::vector<BenchTest>& plan) {
    // One unit a column, in which the smallest is not nothing.
    uint64_t size = UINT64_MAX, n_params = UINT64_MAX;
    for (const BenchTest& test : plan) {
      size = std::min(size, test.model->size);
      n_params = std::min(n_params, test.model->n_params);
    }
    const double size_unit = size >= 100'000'000 ? 1e9 : 1e6;
    const double params_unit = n_params >= 100'000'000 ? 1e9 : 1e6;
    AddKnown(
        plan, "model", [](const BenchTest& test) { return test.model->type; }, true);
    AddKnown(plan, size_unit == 1e9 ? "size, GB" : "size, MB", [=](const BenchTest& test) {
      return Format("%.2f", static_cast<double>(test.model->size) / size_unit);
    });
    AddKnown(plan, params_unit == 1e9 ? "params, B" : "params, M", [=](const BenchTest& test) {
      return Format("%.2f", static_cast<double>(test.model->n_params) / params_unit);
    });
    AddKnown(
        plan, "backend", [this](const BenchTest&) { return "CPU " + setting_.cpu_target; }, true);
    AddKnown(plan, "threads", [](const BenchTest& test) { return std::to_string(test.n_threads); });
    AddIfUnusual(plan, "batch", [](const BenchTest& test) { return std::to_string(test.n_batch); });
    AddIfUnusual(plan, "ubatch",
                 [](const BenchTest& test) { return std::to_string(test.n_ubatch); });
    AddIfUnusual(plan, "cache", [](const BenchTest& test) { return test.kv; });
    AddKnown(plan, "test", [](const BenchTest& test) { return test.Name(); });
  }

  void AddIfUnusual(const std::vector<BenchTest>& plan, const std::string& title,
                    const std::function<std::string(const BenchTest&)>& cell) {
    const std::string usual = cell(BenchTest());
    const auto is_usual = [&](const BenchTest& test) { return cell(test) == usual; };
    if (!std::all_of(plan.begin(), plan.end(), is_usual)) AddKnown(plan, title, cell);
  }

  void AddResults(const std::vector<BenchTest>& plan) {
    Add("t/s, median ± sd", 20, [](const BenchTest& test) {
      return Format("%.2f ± %.2f", test.Median(), test.Deviation());
    });
    if (!setting_.baseline.empty()) {
      Add("of the baseline", 15, [](const BenchTest& test) {
        if (!test.comparison) return std::string();
        return Format("%.3f ± %.3f", test.comparison->ratio, test.comparison->spread);
      });
    }
    Add("limit, t/s", 10, [](const BenchTest& test) { return Format("%.2f", test.Limit()); });
    Add("share", 5, [](const BenchTest& test) { return Format("%.0f%%", 100 * test.Share()); });
    Add("GB/s", 7,
        [](const BenchTest& test) { return Amount("%.2f", test.ReadsPerSecond() / 1e9); });
    Add("TOPS", 7,
        [](const BenchTest& test) { return Amount("%.3f", test.OperationsPerSecond() / 1e12); });
    if (std::any_of(plan.begin(), plan.end(), [](const BenchTest& t) { return t.n_pass > 1; })) {
      Add("pass", 5, [](const BenchTest& test) {
        return test.n_prompt == 0 ? Amount("%.2f", test.PassCost()) : "";
      });
    }
    if (setting_.has_energy) {
      Add("J/token", 8,
          [](const BenchTest& test) { return Format("%.4f", test.JoulesPerToken()); });
    }
    Add("notes", 5, JoinedNotes, true);
  }

  // From the first test to the last.
  static std::string Machine(const std::vector<BenchTest>& done) {
    if (done.empty()) return "";
    const BenchTest &first = done.front(), &last = done.back();
    std::string text =
        Format("clock %.2f GHz before, %.2f GHz after", first.clock_before, last.clock_after);
    if (first.celsius_before && last.celsius_after) {
      text += Format("; %.0f °C before, %.0f °C after", *first.celsius_before, *last.celsius_after);
    }
    return text + "\n";
  }

  const BenchSetting& setting_;
  std::vector<TableColumn> columns_;
  std::vector<std::function<std::string(const BenchTest&)>> cells_;
  std::optional<Table> table_;
};

// --- JSON and CSV: the same fields ------------------------------------------------------------

// Names are llama-bench's where it has the field.
Json TestFields(const BenchSetting& setting, const BenchTest& test) {
  const BenchModel& model = *test.model;
  const auto known = [](bool is_known, double value) { return is_known ? Json(value) : Json(); };
  const std::optional<Comparison>& comparison = test.comparison;
  const auto limits = [&](double BenchLimits::*which) {
    std::vector<double> all;
    for (const BenchLimits& limit : test.limits) all.push_back(limit.*which);
    const double median = MedianOf(all);
    return known(median > 0, median);
  };
  return {
      {"version", setting.version},
      {"build_commit", setting.commit},
      {"cpu_info", setting.cpu_name},
      {"cpu_target", setting.cpu_target},
      {"backends", "CPU"},
      {"model_filename", model.file},
      {"model_type", model.type},
      {"model_size", model.size},
      {"model_n_params", model.n_params},
      {"n_batch", test.n_batch},
      {"n_ubatch", test.n_ubatch},
      {"n_threads", test.n_threads},
      {"type_k", test.kv},
      {"type_v", test.kv},
      {"n_prompt", test.n_prompt},
      {"n_gen", test.n_gen},
      {"n_depth", test.n_depth},
      {"n_pass", test.n_pass},
      {"test_time", test.date},
      {"avg_ts", test.Average()},
      {"stddev_ts", test.Deviation()},
      {"median_ts", test.Median()},
      {"samples_ts", test.samples_ts},
      {"limit_ts", test.Limit()},
      {"share_of_limit", test.Share()},
      {"bytes_per_second", known(test.n_prompt == 0, test.ReadsPerSecond())},
      {"ops_per_second", known(test.n_gen == 0, test.OperationsPerSecond())},
      {"read_limit", limits(&BenchLimits::read)},
      {"dot_limit", limits(&BenchLimits::dot)},
      {"int_rate", limits(&BenchLimits::integer)},
      {"pass_cost", known(test.n_prompt == 0 && test.single_ts > 0, test.PassCost())},
      {"joules_per_token", known(setting.has_energy, test.JoulesPerToken())},
      {"clock_before_ghz", test.clock_before},
      {"clock_after_ghz", test.clock_after},
      {"celsius_before", known(test.celsius_before.has_value(), test.celsius_before.value_or(0))},
      {"celsius_after", known(test.celsius_after.has_value(), test.celsius_after.value_or(0))},
      {"share_alone", test.share_alone},
      {"share_of_cores", test.share_of_cores},
      {"baseline_ts", known(comparison.has_value(), comparison ? comparison->before_ts : 0)},
      {"baseline_ratio", known(comparison.has_value(), comparison ? comparison->ratio : 0)},
      {"baseline_spread", known(comparison.has_value(), comparison ? comparison->spread : 0)},
      {"notes", test.Notes()},
      {"load_ms", model.load_ms},
      {"first_token_ms", model.first_token_ms}};
}

// An array, or an object on each line.
class JsonRows : public BenchFormat {
 public:
  JsonRows(const BenchSetting& setting, bool lines) : setting_(setting), lines_(lines) {}

  std::string Begin(const std::vector<BenchTest>& /*plan*/) override { return lines_ ? "" : "["; }
  std::string Row(const BenchTest& test) override {
    const Json fields = TestFields(setting_, test);
    if (lines_) return JsonText(fields, -1);
    // Within the array, two spaces further in.
    std::string text = std::exchange(first_, false) ? "\n  " : ",\n  ";
    for (const char c : WithoutEnd(JsonText(fields, 2))) {
      text += c;
      if (c == '\n') text += "  ";
    }
    return text;
  }
  std::string End(const std::vector<BenchTest>& /*done*/) override { return lines_ ? "" : "\n]\n"; }

 private:
  static std::string WithoutEnd(std::string text) {
    if (text.ends_with('\n')) text.pop_back();
    return text;
  }

  const BenchSetting& setting_;
  bool lines_;
  bool first_ = true;
};

// RFC 4180, with line feeds alone. Lists have spaces between, what is unknown is empty.
class Csv : public BenchFormat {
 public:
  explicit Csv(const BenchSetting& setting) : setting_(setting) {}

  std::string Begin(const std::vector<BenchTest>& plan) override {
    // The names of the fields, from a sample.
    BenchTest sample = plan.front();
    sample.samples_ts = {1};
    sample.limits = {{1, 1, 1}};
    std::string line;
    const Json fields = TestFields(setting_, sample);
    for (const auto& [name, value] : fields.items()) line += "," + Quoted(name);
    return line.substr(1) + "\n";
  }

  std::string Row(const BenchTest& test) override {
    std::string line;
    const Json fields = TestFields(setting_, test);
    for (const auto& [name, value] : fields.items()) line += "," + Cell(value);
    return line.substr(1) + "\n";
  }

  std::string End(const std::vector<BenchTest>& /*done*/) override { return ""; }

 private:
  static std::string Cell(const Json& value) {
    if (value.is_null()) return "";
    if (value.is_string()) return Quoted(gguf::PrintablePath(value.get<std::string>()));
    if (!value.is_array()) return value.dump();
    std::string text;
    for (const Json& item : value) {
      text += (text.empty() ? "" : item.is_string() ? "; " : " ");
      text += item.is_string() ? item.get<std::string>() : item.dump();
    }
    return Quoted(text);
  }

  static std::string Quoted(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
    return quoted + "\"";
  }

  const BenchSetting& setting_;
};

}  // namespace

std::unique_ptr<BenchFormat> MakeBenchFormat(const std::string& name, const BenchSetting& setting) {
  if (name == "md") return std::make_unique<Markdown>(setting);
  if (name == "csv") return std::make_unique<Csv>(setting);
  return std::make_unique<JsonRows>(setting, name == "jsonl");
}

}  // namespace cli
