#include "cli/trace/trace_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/options/loading.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "gguf/error.h"

namespace cli {
namespace {

using engine::TraceStep;

// A line of the table. Steps of one kind are summed up in one, too.
struct Line {
  std::string kind, tensors, type, shape;
  uint64_t bytes = 0;
  double seconds = 0;

  void Add(const TraceStep& step) {
    bytes += step.bytes;
    seconds += step.seconds;
  }
};

size_t Rows(const TraceStep& step) {
  size_t rows = 0;
  for (const engine::TraceWeights& weights : step.weights) rows += weights.rows;
  return rows;
}

Line LineOf(const TraceStep& step) {
  Line line{std::string(step.kind), StepTensors(step, /*with_layer=*/false), "", ""};
  if (!step.weights.empty()) {
    line.type = gguf::Info(step.weights[0].tensor->dtype).name;
    line.shape = std::to_string(Rows(step)) + "x" + std::to_string(step.weights[0].cols);
  }
  line.Add(step);
  return line;
}

std::string Text(const Line& line, double ceiling) {
  std::string text = Format("%-9s %s %-7s %-11s %8.1f %8.1f", line.kind.c_str(),
                            Column(line.tensors, 20).c_str(), line.type.c_str(), line.shape.c_str(),
                            static_cast<double>(line.bytes) / 1e3, line.seconds * 1e6);
  if (line.bytes > 0 && line.seconds > 0) {
    const double speed = static_cast<double>(line.bytes) / line.seconds;
    text += Format(" %5.1f %3.0f%%", speed / 1e9, 100 * speed / ceiling);
  }
  return text + "\n";
}

// The part a step belongs to: 0 reads a token's row of the embedding, 1 + i is layer i, and the
// output follows the last layer.
size_t PartOf(const engine::Trace& trace, size_t step) {
  if (trace.steps[step].kind == "embed" && step == 0) return 0;
  const auto behind = std::upper_bound(trace.layer_ends.begin(), trace.layer_ends.end(), step);
  return 1 + static_cast<size_t>(behind - trace.layer_ends.begin());
}

std::string PartName(const engine::Trace& trace, size_t part) {
  if (part == 0) return "token";
  return part > trace.layer_ends.size() ? "output" : "layer " + std::to_string(part - 1);
}

// A token in quotes, in at most this many columns.
std::string TokenText(const TraceReport& report, tokenizer::TokenId id, size_t columns) {
  std::string text = JsonText(Json(report.model.tokenizer->Piece(id, /*special=*/true)), -1);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return Cut(text, columns - 1);
}

// "name     A   B   C": those that fit into the line.
std::string ItemsLine(const std::string& name, const std::vector<std::string>& items) {
  std::string line = "  " + Padded(name, 10);
  for (const std::string& item : items) {
    if (TextColumns(line + item) + 2 > kColumns) break;
    line += "  " + item;
  }
  return line + "\n";
}

std::string SeenLine(const TraceReport& report, const std::string& name,
                     const std::vector<SeenPosition>& seen) {
  std::vector<std::string> items;
  for (const auto& [position, weight] : seen) {
    if (weight < 0.005) break;
    items.push_back(TokenText(report, report.tokens[position], 14) +
                    Format("@%zu %.0f%%", position + 1, 100 * weight));
  }
  return ItemsLine(name, items);
}

Json SeenJson(const std::vector<SeenPosition>& seen) {
  Json list = Json::array();
  for (const auto& [position, weight] : seen) {
    list.push_back({{"position", position}, {"weight", weight}});
  }
  return list;
}

Json ValuesJson(const TraceReport& report, const LayerValues& values) {
  Json json = {{"norm", values.norm}};
  if (!values.attention.empty()) {
    json["attention"] = SeenJson(values.attention);
    json["attention_sum"] = values.attention_sum;
    for (const auto& head : values.heads) json["heads"].push_back(SeenJson(head));
  }
  for (const auto& [expert, share] : values.experts) {
    json["experts"].push_back({{"expert", expert}, {"share", share}});
  }
  for (const auto& [id, probability] : values.next) {
    json["next"].push_back({{"id", id},
                            {"text", report.model.tokenizer->Piece(id, /*special=*/true)},
                            {"probability", probability}});
  }
  return json;
}

Json StepsJson(const engine::Trace& trace) {
  Json steps = Json::array();
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const TraceStep& step = trace.steps[i];
    Json json = {{"part", PartName(trace, PartOf(trace, i))}, {"operation", step.kind}};
    for (const engine::TraceWeights& weights : step.weights) {
      json["tensors"].push_back({{"name", weights.tensor->name},
                                 {"type", gguf::Info(weights.tensor->dtype).name},
                                 {"rows", weights.rows},
                                 {"cols", weights.cols}});
    }
    json["bytes"] = step.bytes;
    json["operations"] = step.operations;
    json["seconds"] = step.seconds;
    steps.push_back(json);
  }
  return steps;
}

}  // namespace

std::string StepTensors(const TraceStep& step, bool with_layer) {
  std::string text;
  const gguf::TensorView* last = nullptr;  // rows of one tensor may play several roles
  for (const engine::TraceWeights& weights : step.weights) {
    if (weights.tensor == last) continue;
    last = weights.tensor;
    std::string_view name = last->name.substr(0, last->name.rfind(".weight"));
    if (!text.empty() || !with_layer) name = name.substr(name.rfind('.') + 1);
    text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

std::string TraceTable(const TraceReport& report) {
  const engine::Trace& trace = report.token;
  std::map<std::string, Line> totals;
  std::vector<Line> parts(trace.layer_ends.size() + 2);
  Line all{"all", "", "", ""};
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    const TraceStep& step = trace.steps[i];
    for (Line* line : {&parts[PartOf(trace, i)], &totals[std::string(step.kind)], &all}) {
      line->Add(step);
    }
  }
  std::string text = Format("%-9s %-20s %-7s %-11s %8s %8s %5s %4s\n", "operation", "tensors",
                            "type", "shape", "KB", "us", "GB/s", "max");
  size_t part = SIZE_MAX;
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    if (const size_t now = PartOf(trace, i); now != part) {
      part = now;
      Line& head = parts[part];
      head.kind = PartName(trace, part);
      head.tensors = Format("%.1f%% of the time", 100 * head.seconds / all.seconds);
      text += "\n" + Text(head, report.read_ceiling);
    }
    text += Text(LineOf(trace.steps[i]), report.read_ceiling);
  }
  text += Format("\nTotals, %zu threads, reads at most %.1f GB/s (max: the share of it):\n",
                 report.n_threads, report.read_ceiling / 1e9);
  for (auto& [kind, line] : totals) {
    line.kind = kind;
    line.tensors = Format("%.1f%% of the time", 100 * line.seconds / all.seconds);
    text += Text(line, report.read_ceiling);
  }
  return text + Text(all, report.read_ceiling);
}

std::string ValuesText(const TraceReport& report, bool heads) {
  const size_t n = report.tokens.size();
  std::string text = Format("Token %zu of %zu, ", n, n) +
                     TokenText(report, report.tokens.back(), 40) +
                     ", on its way through the layers:\n"
                     "  stream     the length of its vector behind the layer\n"
                     "  looks at   tokens that attention takes most from, the mean of all heads;\n"
                     "             @3 is the third token of the text\n";
  if (report.model.config.n_experts_used > 0) {
    text += "  experts    the networks that the router chose, and their shares\n";
  }
  text += "  says next  what the model would say if it ended here: output norm and matrix\n";
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const LayerValues& values = report.layers[i];
    text += "\n" +
            ItemsLine("layer " + std::to_string(i), {Format("stream %.4g", values.norm)}).substr(2);
    if (!values.attention.empty()) text += SeenLine(report, "looks at", values.attention);
    for (size_t head = 0; heads && head < values.heads.size(); ++head) {
      text += SeenLine(report, "  head " + std::to_string(head), values.heads[head]);
    }
    std::vector<std::string> items;
    for (const auto& [expert, share] : values.experts) {
      items.push_back(Format("%u %.0f%%", expert, 100 * share));
    }
    if (!items.empty()) text += ItemsLine("experts", items);
    items.clear();
    for (const auto& [id, probability] : values.next) {
      items.push_back(TokenText(report, id, 14) + Format(" %.0f%%", 100 * probability));
    }
    if (!items.empty()) text += ItemsLine("says next", items);
  }
  return text;
}

std::string TraceJson(const TraceReport& report) {
  Json json = {{"model", report.model.file.path()},
               {"threads", report.n_threads},
               {"tokens", report.tokens},
               {"read_bytes_per_second", report.read_ceiling}};
  if (report.dot_ceiling > 0) json["operations_per_second"] = report.dot_ceiling;
  json["steps"] = StepsJson(report.token);
  if (!report.prompt.steps.empty()) json["prompt_steps"] = StepsJson(report.prompt);
  for (const LayerValues& values : report.layers) {
    json["layers"].push_back(ValuesJson(report, values));
  }
  return JsonText(json, 2);
}

}  // namespace cli
