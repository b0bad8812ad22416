#include "cli/bench/compare_report.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "cli/output/json_file.h"
#include "cli/output/svg.h"
#include "cli/output/text.h"
#include "gguf/error.h"

namespace cli {
namespace {

struct CompareColumn {
  std::string title;
  std::function<std::string(const ComparedModel&)> cell;
  bool shown = true;
};

bool HasSpeed(const BenchTest& test) { return !test.samples_ts.empty(); }

std::string Size(const ComparedModel& model) { return HumanBytes(model.bytes); }

std::string Speed(const BenchTest& test) {
  return HasSpeed(test) ? Format("%.1f", test.Median()) : "";
}

// The loss to show: the divergence from the first model (0 may be rounded below 0), or perplexity.
double Loss(const ComparedModel& model) {
  return model.divergence ? std::max(0.0, model.divergence->MeanDivergence().value)
                          : model.perplexity->value;
}

bool HasDivergences(const CompareReport& report) {
  const auto has = [](const ComparedModel& model) { return model.divergence.has_value(); };
  return std::any_of(report.models.begin(), report.models.end(), has);
}

// The first model that is no larger, no slower and no further from the first one, and better in
// something; nullptr if none is, or if there is no text.
const ComparedModel* BetterOne(const CompareReport& report, const ComparedModel& model) {
  // Perplexities of different vocabularies cannot be compared.
  if (!model.divergence) return nullptr;
  for (const ComparedModel& other : report.models) {
    if (!other.divergence) continue;
    // Speeds within 3% of each other are no reason to choose.
    constexpr double kSame = 0.97;
    const auto is_slower = [&](const BenchTest& a, const BenchTest& b) {
      return HasSpeed(a) && HasSpeed(b) && a.Median() < kSame * b.Median();
    };
    const bool is_worse = other.bytes > model.bytes || Loss(other) > Loss(model) ||
                          is_slower(other.generation, model.generation) ||
                          is_slower(other.prompt, model.prompt);
    const bool is_better = other.bytes < model.bytes || Loss(other) < Loss(model);
    if (!is_worse && is_better) return &other;
  }
  return nullptr;
}

std::vector<CompareColumn> CompareColumns(const CompareReport& report) {
  const BenchTest &prompt = report.models[0].prompt, &generation = report.models[0].generation;
  const bool text = !report.text.empty(), distances = HasDivergences(report);
  const bool reads = HasSpeed(prompt), writes = HasSpeed(generation);
  using Model = ComparedModel;
  std::vector<CompareColumn> columns = {
      {"file", [](const Model& model) { return model.Name(); }},
      {"size", Size},
      {"bits", [](const Model& model) { return Format("%.2f", model.bits_per_weight); }},
      {"perplexity", [](const Model& model) { return Format("%.3f", model.perplexity->value); },
       text},
      {"KL", [](const Model& model) { return model.divergence ? Format("%.4f", Loss(model)) : ""; },
       distances},
      {"same top",
       [](const Model& model) {
         return model.divergence ? Format("%.1f%%", 100 * model.divergence->SameTop().value) : "";
       },
       distances},
      {prompt.Name(), [](const Model& model) { return Speed(model.prompt); }, reads},
      {generation.Name(), [](const Model& model) { return Speed(model.generation); }, writes},
      {"J/token", [](const Model& model) { return Figures(model.generation.JoulesPerToken(), 3); },
       writes && report.setting.has_energy},
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
  const BenchTest& generation = report.models[0].generation;
  const bool distances = HasDivergences(report);
  using Model = ComparedModel;
  const auto is_known = [=](const Model& model) { return !distances || model.divergence; };
  std::vector<BarColumn> columns = {
      {"size", "both", [](const Model& model) { return static_cast<double>(model.bytes); }, Size},
      {distances ? "KL divergence" : "perplexity", "pp",
       [=](const Model& model) { return is_known(model) ? Loss(model) : 0; },
       [=](const Model& model) { return is_known(model) ? Format("%.4f", Loss(model)) : "?"; },
       !report.text.empty()},
      {"tokens/s, " + generation.Name(), "tg",
       [](const Model& model) { return model.generation.Median(); },
       [](const Model& model) { return Speed(model.generation); }, HasSpeed(generation)}};
  std::erase_if(columns, [](const BarColumn& column) { return !column.shown; });
  return columns;
}

}  // namespace

std::string ComparedModel::Name() const {
  const std::string name = ShortPath(opened.file.path());
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

std::string CompareTable(const CompareReport& report) {
  const std::vector<CompareColumn> columns = CompareColumns(report);
  std::vector<TableColumn> heads;
  for (const CompareColumn& column : columns) heads.push_back({column.title, !heads.empty()});
  std::vector<std::vector<std::string>> rows;
  for (const ComparedModel& model : report.models) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const CompareColumn& column : columns) row.push_back(column.cell(model));
  }
  const std::string text = Table(Table::Style::kMarkdown, heads).All(rows) + "\n" +
                           report.setting.Cpu() + ", " +
                           Counted(report.models[0].generation.n_threads, "thread") + ", " +
                           report.setting.date + ", version " + report.setting.version + "\n";
  if (report.text.empty()) return text + "-f TEXT compares what they predict, too.\n";
  return text + "Text: " + gguf::PrintablePath(report.text) +
         Format(", %zu windows of %zu tokens; KL divergence is from the first file\n",
                report.n_windows, report.window);
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
    Json one = {{"path", model.opened.file.path()},
                {"type", model.type},
                {"bytes", model.bytes},
                {"bits_per_weight", model.bits_per_weight}};
    if (model.perplexity) one["perplexity"] = EstimateJson(*model.perplexity);
    if (model.divergence) one["divergence"] = model.divergence->ToJson();
    for (const BenchTest* test : {&model.prompt, &model.generation}) {
      if (!HasSpeed(*test)) continue;
      one["speeds"].push_back({{"test", test->Name()},
                               {"threads", test->n_threads},
                               {"tokens_per_second", test->Median()},
                               {"samples", test->samples_ts},
                               {"limit", test->Limit()}});
      if (report.setting.has_energy) {
        one["speeds"].back()["joules_per_token"] = test->JoulesPerToken();
      }
    }
    if (const ComparedModel* better = BetterOne(report, model))
      one["better"] = better->opened.file.path();
    json["models"].push_back(one);
  }
  return JsonText(json, 2);
}

std::string CompareSvg(const CompareReport& report) {
  constexpr double kNames = 130, kGap = 14, kRow = 34;
  const std::vector<BarColumn> columns = BarColumns(report);
  const double width =
      (kSvgWidth - 2 * kSvgMargin - kNames) / static_cast<double>(columns.size()) - kGap;
  const auto left = [&](size_t i) {
    return kSvgMargin + kNames + kGap + static_cast<double>(i) * (width + kGap);
  };
  std::string body = SvgText(kSvgMargin, 30, "title", "Which file?") +
                     SvgText(kSvgMargin, 52, "small",
                             report.setting.Cpu() + ", " + report.setting.date.substr(0, 10));
  double y = 82;
  for (size_t i = 0; i < columns.size(); ++i)
    body += SvgText(left(i), y, "small", columns[i].title);
  for (const ComparedModel& model : report.models) {
    y += kRow;
    body += SvgText(kSvgMargin, y, "", model.Name());
    for (size_t i = 0; i < columns.size(); ++i) {
      double most = 0;
      for (const auto& other : report.models) most = std::max(most, columns[i].value(other));
      const double share = most > 0 ? columns[i].value(model) / most : 0;
      body += SvgText(left(i), y - 4, "small", columns[i].text(model)) +
              Format(
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"6\" class=\"limit\"/>\n"
                  "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"6\" class=\"%s\"/>\n",
                  left(i), y, width, left(i), y, std::max(0.0, share) * width, columns[i].classes);
    }
  }
  return Svg("pronk compare on " + report.setting.cpu_name, static_cast<int>(y) + 26, body);
}

}  // namespace cli
