// Writes the report of pronk compare: a table, JSON, and a picture of the models.
#include "cli/bench/compare_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/output/json_file.h"
#include "cli/output/svg.h"
#include "cli/output/text.h"
#include "convert/quantize_plan.h"
#include "gguf/error.h"

namespace cli {
namespace {

struct CompareColumn {
  std::string title;
  std::function<std::string(const ComparedModel&)> cell;
  bool shown = true;
};

bool HasSpeed(const BenchResult& result) { return !result.samples.empty(); }

std::string Size(const ComparedModel& model) { return HumanBytes(model.bytes()); }

std::string SpeedText(const BenchResult& result) {
  return HasSpeed(result) ? Format("%.1f", result.Speed()) : "";
}

// The divergence from the first model, which may be rounded below 0.
double Loss(const ComparedModel& model) {
  return std::max(0.0, model.divergence->MeanDivergence().value);
}

bool HasDivergences(const CompareReport& report) {
  const auto has = [](const ComparedModel& model) { return model.divergence.has_value(); };
  return std::any_of(report.models.begin(), report.models.end(), has);
}

// The first model that is no larger, no slower and no further from the first one, and better in
// something; nullptr if there is no such model, or no text.
const ComparedModel* BetterOne(const CompareReport& report, const ComparedModel& model) {
  // Perplexities of different vocabularies cannot be compared.
  if (!model.divergence) return nullptr;
  for (const ComparedModel& other : report.models) {
    if (!other.divergence) continue;
    // Speeds within 3% of each other are not a reason to choose.
    constexpr double kSame = 0.97;
    const auto is_slower = [&](const BenchResult& a, const BenchResult& b) {
      return HasSpeed(a) && HasSpeed(b) && a.Speed() < kSame * b.Speed();
    };
    const bool is_worse = other.bytes() > model.bytes() || Loss(other) > Loss(model) ||
                          is_slower(other.generation, model.generation) ||
                          is_slower(other.prompt, model.prompt);
    const bool is_better = other.bytes() < model.bytes() || Loss(other) < Loss(model);
    if (!is_worse && is_better) return &other;
  }
  return nullptr;
}

std::vector<CompareColumn> CompareColumns(const CompareReport& report) {
  const BenchResult &prompt = report.models[0].prompt, &generation = report.models[0].generation;
  const bool text = !report.text.empty(), distances = HasDivergences(report);
  const bool reads = HasSpeed(prompt), writes = HasSpeed(generation);
  using Model = ComparedModel;
  std::vector<CompareColumn> columns = {
      {"file", [](const Model& model) { return model.Name(); }},
      {"type", [](const Model& model) { return convert::FileTypeName(model.model.opened.file); }},
      {"size", Size},
      {"bits", [](const Model& model) { return Format("%.2f", model.bits_per_weight()); }},
      {"bits/byte", [](const Model& model) { return Format("%.4f", *model.bits_per_byte); }, text},
      {"perplexity",
       [](const Model& model) {
         return model.perplexity ? Format("%.3f", model.perplexity->value) : "";
       },
       text},
      {"KL", [](const Model& model) { return model.divergence ? Format("%.4f", Loss(model)) : ""; },
       distances},
      {"same top",
       [](const Model& model) {
         return model.divergence ? Format("%.1f%%", 100 * model.divergence->SameTop().value) : "";
       },
       distances},
      {prompt.test.Name(), [](const Model& model) { return SpeedText(model.prompt); }, reads},
      {generation.test.Name(), [](const Model& model) { return SpeedText(model.generation); },
       writes},
      {"better in all",
       [&](const Model& model) {
         const Model* const better = BetterOne(report, model);
         return better != nullptr ? better->Name() : "";
       },
       text}};
  std::erase_if(columns, [](const CompareColumn& column) { return !column.shown; });
  return columns;
}

// For the picture: a name, then a bar in each of three columns.
struct BarColumn {
  std::string title;
  const char* classes;
  std::function<double(const ComparedModel&)> value;
  std::function<std::string(const ComparedModel&)> text;
  bool shown = true;
};

std::vector<BarColumn> BarColumns(const CompareReport& report) {
  const BenchResult& generation = report.models[0].generation;
  using Model = ComparedModel;
  const bool alike = std::ranges::all_of(
      report.models, [](const Model& model) { return model.divergence.has_value(); });
  std::vector<BarColumn> columns = {
      {"size", "both", [](const Model& model) { return static_cast<double>(model.bytes()); }, Size},
      {alike ? "KL divergence" : "bits per byte", "pp",
       [=](const Model& model) { return alike ? Loss(model) : *model.bits_per_byte; },
       [=](const Model& model) {
         return Format("%.4f", alike ? Loss(model) : *model.bits_per_byte);
       },
       !report.text.empty()},
      {"t/s, " + generation.test.Name(), "tg",
       [](const Model& model) { return model.generation.Speed(); },
       [](const Model& model) { return SpeedText(model.generation); }, HasSpeed(generation)}};
  std::erase_if(columns, [](const BarColumn& column) { return !column.shown; });
  return columns;
}

}  // namespace

double ComparedModel::bits_per_weight() const {
  const gguf::File& file = model.opened.file;
  return 8 * static_cast<double>(file.tensor_bytes()) / static_cast<double>(file.elements());
}

std::string ComparedModel::Name() const {
  const std::string name = ShortPath(model.opened.file.path());
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

std::string CompareTable(const CompareReport& report) {
  const std::vector<CompareColumn> columns = CompareColumns(report);
  std::vector<TableColumn> heads;
  for (const CompareColumn& column : columns) heads.push_back({column.title, heads.size() > 1});
  std::vector<std::vector<std::string>> rows;
  for (const ComparedModel& model : report.models) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const CompareColumn& column : columns) row.push_back(column.cell(model));
  }
  const std::string text = Table(Table::Style::kMarkdown, heads).All(rows) + "\n" +
                           report.setting.Cpu() + ", " +
                           Counted(report.models[0].generation.test.n_threads, "thread") + ", " +
                           report.setting.date + ", version " + report.setting.version + "\n";
  if (report.text.empty()) return text + "-f TEXT compares what they predict, too.\n";
  return text + "Text: " + gguf::PrintablePath(report.text) +
         Format(", %s of %zu tokens of the first file; KL divergence is from it\n",
                Counted(report.n_windows, "window").c_str(), report.window);
}

std::string CompareJson(const CompareReport& report) {
  Json json = {{"version", report.setting.version},
               {"date", report.setting.date},
               {"cpu", report.setting.cpu_name},
               {"target", report.setting.cpu_target},
               {"text", report.text},
               {"windows", report.n_windows},
               {"window", report.window},
               {"models", Json::array()}};
  for (const ComparedModel& model : report.models) {
    const gguf::File& file = model.model.opened.file;
    Json one = {{"path", file.path()},
                {"type", convert::FileTypeName(file)},
                {"bytes", model.bytes()},
                {"bits_per_weight", model.bits_per_weight()}};
    if (model.bits_per_byte) one["bits_per_byte"] = *model.bits_per_byte;
    if (model.perplexity) one["perplexity"] = EstimateJson(*model.perplexity);
    if (model.divergence) one["divergence"] = model.divergence->ToJson();
    for (const BenchResult* result : {&model.prompt, &model.generation}) {
      if (!HasSpeed(*result)) continue;
      one["speeds"].push_back({{"test", result->test.Name()},
                               {"threads", result->test.n_threads},
                               {"tokens_per_second", result->Speed()},
                               {"samples", result->Speeds()},
                               {"limit", result->Limit()}});
    }
    if (const ComparedModel* better = BetterOne(report, model))
      one["better"] = better->model.opened.file.path();
    json["models"].push_back(one);
  }
  return JsonText(json, 2);
}

std::string CompareSvg(const CompareReport& report) {
  constexpr double kGap = 14, kRow = 56;
  const std::vector<BarColumn> columns = BarColumns(report);
  const auto n = static_cast<double>(columns.size());
  const double width = (kSvgWidth - 2 * kSvgMargin + kGap) / n - kGap;
  std::string body = SvgText(kSvgMargin, 30, "title", "Which file?") +
                     SvgText(kSvgMargin, 52, "small",
                             report.setting.Cpu() + ", " + report.setting.date.substr(0, 10));
  double y = 82 - kRow + 24;
  for (const ComparedModel& model : report.models) {
    y += kRow;
    body += SvgText(kSvgMargin, y, "", Cut(model.Name(), 60));
    for (size_t i = 0; i < columns.size(); ++i) {
      const BarColumn& column = columns[i];
      double most = 0;
      for (const auto& other : report.models) most = std::max(most, column.value(other));
      const double share = most > 0 ? column.value(model) / most : 0;
      const double left = kSvgMargin + static_cast<double>(i) * (width + kGap);
      body += SvgText(left, y + 16, "small", column.text(model)) +
              SvgText(left + width, y + 16, "small right", column.title) +
              Format(
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"6\" class=\"limit\"/>\n"
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"6\" class=\"%s\"/>\n",
                  left, y + 20, width, left, y + 20, std::max(0.0, share) * width, column.classes);
    }
  }
  return Svg("pronk compare on " + report.setting.cpu_name, static_cast<int>(y) + 46, body);
}

}  // namespace cli
