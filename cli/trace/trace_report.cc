// A traced token as tables: each operation with its time, and the values of --values.
#include "cli/trace/trace_report.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/options/loading.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"

namespace cli {
namespace {

using engine::TraceOperation;

// The time of one operation, or of several of one kind or layer.
struct Cost {
  uint64_t bytes = 0;
  double seconds = 0;
  double flops = 0;

  void Add(const TraceOperation& operation) {
    bytes += operation.bytes;
    seconds += operation.seconds;
    flops += operation.flops;
  }
};

std::string Line(std::string_view kind, const std::string& tensors, std::string_view type,
                 const std::string& shape, const Cost& cost, double ceiling) {
  std::string text = Format("%-9s %s %-7s %-11s %8.1f %8.1f", std::string(kind).c_str(),
                            Column(tensors, 20).c_str(), std::string(type).c_str(), shape.c_str(),
                            static_cast<double>(cost.bytes) / 1e3, cost.seconds * 1e6);
  if (cost.bytes > 0 && cost.seconds > 0) {
    const double speed = static_cast<double>(cost.bytes) / cost.seconds;
    text += Format(" %5.1f %3.0f%%", speed / 1e9, 100 * speed / ceiling);
  }
  return text + "\n";
}

std::string OperationLine(const TraceOperation& operation, double ceiling) {
  std::string_view type;
  std::string shape;
  if (!operation.weights.empty()) {
    size_t rows = 0;
    for (const engine::TraceWeights& weights : operation.weights) rows += weights.rows;
    type = gguf::Info(operation.weights[0].tensor->dtype).name;
    shape = std::to_string(rows) + "x" + std::to_string(operation.weights[0].cols);
  }
  for (const size_t n : operation.shape) shape += (shape.empty() ? "" : "x") + std::to_string(n);
  return Line(operation.kind, OperationTensors(operation), type, shape,
              {operation.bytes, operation.seconds}, ceiling);
}

// The part of an operation: 0 reads a token's embedding, 1 + i is layer i, and then comes the
// output.
size_t PartOf(const engine::Trace& trace, size_t operation) {
  if (trace.operations[operation].kind == "embed" && operation == 0) return 0;
  const auto end = std::upper_bound(trace.layer_ends.begin(), trace.layer_ends.end(), operation);
  return 1 + static_cast<size_t>(end - trace.layer_ends.begin());
}

std::string PartName(const engine::Trace& trace, size_t part) {
  if (part == 0) return "token";
  return part > trace.layer_ends.size() ? "output" : "layer " + std::to_string(part - 1);
}

// The first operation of a part, and the one after its last.
std::pair<size_t, size_t> OperationsOf(const engine::Trace& trace, size_t part) {
  size_t begin = 0;
  while (begin < trace.operations.size() && PartOf(trace, begin) < part) ++begin;
  size_t end = begin;
  while (end < trace.operations.size() && PartOf(trace, end) == part) ++end;
  return {begin, end};
}

// Parts that have the same operations on the same tensors, in the order of the first of each kind.
std::vector<std::vector<size_t>> AlikeParts(const engine::Trace& trace) {
  std::vector<std::vector<size_t>> alike;
  std::map<std::string, size_t> kinds;
  for (size_t part = 0; part < trace.layer_ends.size() + 2; ++part) {
    const auto [begin, end] = OperationsOf(trace, part);
    if (begin == end) continue;
    const bool is_layer = part > 0 && part <= trace.layer_ends.size();
    std::string operations = is_layer ? "" : PartName(trace, part);
    for (size_t i = begin; i < end; ++i) {
      operations.append(trace.operations[i].kind)
          .append(" ")
          .append(OperationTensors(trace.operations[i]));
      operations += '\n';
    }
    const auto [kind, is_new] = kinds.try_emplace(operations, alike.size());
    if (is_new) alike.emplace_back();
    alike[kind->second].push_back(part);
  }
  return alike;
}

// "0-4 6 8-9": the layers of these parts.
std::string LayerNumbers(const std::vector<size_t>& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size();) {
    size_t last = i;
    while (last + 1 < parts.size() && parts[last + 1] == parts[last] + 1) ++last;
    text += (text.empty() ? "" : " ") + std::to_string(parts[i] - 1);
    if (last > i) text += "-" + std::to_string(parts[last] - 1);
    i = last + 1;
  }
  return text;
}

// The operation with the median time.
const TraceOperation& MedianOperation(std::vector<const TraceOperation*> operations) {
  const auto middle = operations.begin() + static_cast<std::ptrdiff_t>(operations.size() / 2);
  std::ranges::nth_element(operations, middle, {}, &TraceOperation::seconds);
  return **middle;
}

std::string TraceTitle(const TraceReport& report) {
  const size_t n = report.tokens.size();
  return Cut(ModelTitle(report.model), 20) + Format(": token %zu of %zu, ", n, n) +
         TokenText(report.model, report.tokens.back(), 15);
}

// "name     A 50%  B 20%  C 10%": the shares of at least this size that fit into the line.
template <class Name>
std::string ItemsLine(const std::string& name, const std::vector<Share>& shares, double least,
                      Name of) {
  std::string line = "  " + Padded(name, 10);
  for (const Share& share : shares) {
    if (share.share < least) break;
    const std::string item = of(share.of) + Format(" %.0f%%", 100 * share.share);
    if (TextColumns(line + item) + 2 > kColumns) break;
    line += "  " + item;
  }
  return line + "\n";
}

// The time of a pass over all tokens, summed over the layers, with the share of the roofline.
std::string PromptTable(const TraceReport& report) {
  std::vector<std::pair<std::string, Cost>> sums;  // in the order of the pass
  Cost all;
  for (const TraceOperation& operation : report.prompt.operations) {
    const std::string name =
        Padded(std::string(operation.kind), 10) + Column(OperationTensors(operation), 28);
    auto sum = std::ranges::find(sums, name, &std::pair<std::string, Cost>::first);
    if (sum == sums.end()) sum = sums.insert(sum, {name, {}});
    sum->second.Add(operation);
    all.Add(operation);
  }
  sums.emplace_back(Padded("all", 38), all);
  std::string text =
      Format("\nAll %zu tokens at once, at most %.3f TOPS (max: the share of the roofline):\n",
             report.tokens.size(), report.dot_ceiling / 1e12);
  text += Padded("operation", 10) + Padded("tensors", 28) +
          Format("%12s %6s %6s %5s\n", "us", "time", "TOPS", "max");
  for (const auto& [name, cost] : sums) {
    text += name + Format(" %11.1f %5.1f%%", cost.seconds * 1e6, 100 * cost.seconds / all.seconds);
    if (cost.flops > 0) {
      const double least = std::max(cost.flops / report.dot_ceiling,
                                    static_cast<double>(cost.bytes) / report.read_ceiling);
      text +=
          Format(" %6.3f %4.0f%%", cost.flops / cost.seconds / 1e12, 100 * least / cost.seconds);
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::string TokenText(const engine::Model& model, tokenizer::TokenId id, size_t columns) {
  return Cut(JsonLine(model.tokenizer->Piece(id, /*special=*/true)), columns);
}

std::string TokenAt(const engine::Model& model, const std::vector<tokenizer::TokenId>& ids,
                    size_t position, size_t columns) {
  return TokenText(model, ids[position], columns) + Format("@%zu", position + 1);
}

std::string OperationPart(const engine::Trace& trace, size_t operation) {
  return PartName(trace, PartOf(trace, operation));
}

std::string OperationTensors(const TraceOperation& operation) {
  std::string text;
  const gguf::TensorView* last = nullptr;  // rows of one tensor may play several roles
  for (const engine::TraceWeights& weights : operation.weights) {
    if (weights.tensor == last) continue;
    last = weights.tensor;
    const std::string_view name = last->name.substr(0, last->name.rfind(".weight"));
    text += (text.empty() ? "" : " ") + std::string(name.substr(name.rfind('.') + 1));
  }
  return text;
}

std::string TraceTable(const TraceReport& report, bool all_layers) {
  const engine::Trace& trace = report.token;
  std::map<std::string_view, Cost> totals;
  Cost all;
  for (const TraceOperation& operation : trace.operations) {
    totals[operation.kind].Add(operation);
    all.Add(operation);
  }
  const auto total = [&](std::string_view what, const std::string& layers, const Cost& cost) {
    return Line(what, Format("%.1f%% of the time", 100 * cost.seconds / all.seconds), "",
                Cut(layers, 11), cost, report.read_ceiling);
  };
  std::string text =
      TraceTitle(report) + Format("\n\n%-9s %-20s %-7s %-11s %8s %8s %5s %4s\n", "operation",
                                  "tensors", "type", "shape", "KB", "us", "GB/s", "max");
  for (const std::vector<size_t>& parts : AlikeParts(trace)) {
    const size_t n = all_layers ? 1 : parts.size();
    for (size_t first = 0; first < parts.size(); first += n) {
      Cost cost;
      std::vector<std::vector<const TraceOperation*>> operations;  // [operation][layer]
      for (size_t k = first; k < first + n; ++k) {
        const auto [begin, end] = OperationsOf(trace, parts[k]);
        operations.resize(end - begin);
        for (size_t i = begin; i < end; ++i) {
          operations[i - begin].push_back(&trace.operations[i]);
          cost.Add(trace.operations[i]);
        }
      }
      text += "\n" + (n == 1 ? total(PartName(trace, parts[first]), "", cost)
                             : total(Format("%zu layers", n), LayerNumbers(parts), cost));
      for (auto& of_layers : operations) {
        text += OperationLine(MedianOperation(std::move(of_layers)), report.read_ceiling);
      }
    }
  }
  if (!all_layers && trace.layer_ends.size() > 1) {
    text +=
        "\nOf layers with the same operations, each line shows the layer with the median\n"
        "time for that operation; the first line adds them up. --all shows every layer.\n";
  }
  text += Format("\nTotals, %s, at most %.1f GB/s from %s (max: the share of it):\n",
                 Counted(report.n_threads, "thread").c_str(), report.read_ceiling / 1e9,
                 report.reads_from.c_str());
  for (const auto& [kind, cost] : totals) text += total(kind, "", cost);
  text += Line("all", "", "", "", all, report.read_ceiling);
  if (!report.prompt.operations.empty()) text += PromptTable(report);
  const bool above = std::ranges::any_of(trace.operations, [&](const TraceOperation& operation) {
    return static_cast<double>(operation.bytes) > 1.005 * report.read_ceiling * operation.seconds;
  });
  if (above) {
    text +=
        "\nAbove 100%: a cache held these bytes, or the machine was faster than when the\n"
        "limit was measured.\n";
  }
  return text;
}

std::string ValuesText(const TraceReport& report, bool heads) {
  std::string text = TraceTitle(report) +
                     ", layer by layer:\n"
                     "  stream     the length of its vector after the layer\n"
                     "  looks at   tokens that attention takes most from, the mean of all heads;\n"
                     "             @3 is the third token of the text\n";
  if (report.model.config.n_experts_used > 0) {
    text += "  experts    the networks that the router chose, and their shares\n";
  }
  text += "  says next  what the model would say if it ended here: output norm and matrix\n";
  constexpr size_t kMaxPositions = 6;
  constexpr double kSeen = 0.005;  // not rounded to 0%
  const auto seen = [&](size_t position) {
    return TokenAt(report.model, report.tokens, position, 13);
  };
  const auto expert = [](size_t number) { return std::to_string(number); };
  const auto next = [&](size_t id) {
    return TokenText(report.model, static_cast<tokenizer::TokenId>(id), 13);
  };
  const std::vector<LayerValues>& layers = report.values.back().layers;
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerValues& values = layers[i];
    text += "\n" + Padded("layer " + std::to_string(i), 10) + "  stream " +
            Figures(values.norm, 4) + "\n";
    const auto looks_at = [&](const std::string& name, const std::vector<double>& weights) {
      text += ItemsLine(name, Largest(weights, kMaxPositions), kSeen, seen);
    };
    if (!values.heads.empty()) looks_at("looks at", MeanOfHeads(values));
    for (size_t head = 0; heads && head < values.heads.size(); ++head) {
      looks_at("  head " + std::to_string(head), values.heads[head]);
    }
    if (!values.experts.empty()) text += ItemsLine("experts", values.experts, 0, expert);
    if (!values.next.empty()) text += ItemsLine("says next", values.next, 0, next);
  }
  return text;
}

}  // namespace cli
