// pronk trace: one token walked through the model, an operation a line.
#include "engine/trace.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/terminal.h"
#include "engine/model.h"
#include "engine/session.h"
#include "kernels/ceiling.h"

namespace cli {
namespace {

struct TraceOptions {
  ModelOptions model;
  size_t depth = 0;
  int repetitions = 9;
};

// The same pass several times: each step's median is what it takes.
engine::Trace MedianTrace(engine::Session& session, size_t depth, int repetitions) {
  std::vector<engine::Trace> traces(static_cast<size_t>(repetitions));
  const std::vector<tokenizer::TokenId> text(depth + 1, 0);
  session.Prefill(text);  // warms up, too
  for (engine::Trace& trace : traces) {
    session.TraceTo(nullptr);
    session.Prefill(std::span(text).first(depth).subspan(session.Rewind(depth)));
    session.TraceTo(&trace);
    session.Decode(0);
  }
  session.TraceTo(nullptr);
  engine::Trace result = traces[0];
  for (size_t i = 0; i < result.steps.size(); ++i) {
    std::vector<double> seconds;
    seconds.reserve(traces.size());
    for (const engine::Trace& trace : traces) seconds.push_back(trace.steps[i].seconds);
    std::nth_element(seconds.begin(), seconds.begin() + repetitions / 2, seconds.end());
    result.steps[i].seconds = seconds[seconds.size() / 2];
  }
  return result;
}

struct Line {
  std::string kind, tensors, type, shape;
  uint64_t bytes = 0;
  double seconds = 0;
};

void Print(const Line& line, double ceiling) {
  const double speed = static_cast<double>(line.bytes) / line.seconds;
  std::printf("%-10s %-47s %-6s %-13s %10.1f %8.1f", line.kind.c_str(), line.tensors.c_str(),
              line.type.c_str(), line.shape.c_str(), static_cast<double>(line.bytes) / 1e3,
              line.seconds * 1e6);
  if (line.bytes > 0) std::printf(" %7.1f %5.0f%%", speed / 1e9, 100 * speed / ceiling);
  std::printf("\n");
}

// "blk.3.attn_q,k,v" for the tensors of one step.
std::string TensorNames(const engine::TraceStep& step) {
  std::string text;
  const gguf::TensorView* last = nullptr;  // rows of one tensor may play several roles
  for (const engine::TraceWeights& weights : step.weights) {
    if (weights.tensor == last) continue;
    last = weights.tensor;
    std::string_view name = last->name.substr(0, last->name.rfind(".weight"));
    if (!text.empty()) name = name.substr(name.rfind('.') + 1);
    text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text;
}

int RunTrace(const TraceOptions& options) {
  engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = engine::Model::From(OpenFile(options.model.ModelPath()));
  session_options.context = options.depth + 1;
  engine::Session session(model, session_options);
  const engine::Trace trace = MedianTrace(session, options.depth, options.repetitions);

  kernels::Team team(static_cast<int>(session.n_threads()));
  const double ceiling = kernels::ReadCeiling(team, model.LargestStretch());

  std::printf("%-10s %-47s %-6s %-13s %10s %8s %7s %6s\n", "operation", "tensors", "type", "shape",
              "KB", "us", "GB/s", "share");
  std::map<std::string, Line> totals;
  Line all{"all", "", "", "", 0, 0};
  for (const engine::TraceStep& step : trace.steps) {
    Line line{std::string(step.kind), TensorNames(step), "", "", step.bytes, step.seconds};
    if (!step.weights.empty()) {
      size_t rows = 0;
      for (const engine::TraceWeights& weights : step.weights) rows += weights.rows;
      line.type = gguf::Info(step.weights[0].tensor->dtype).name;
      line.shape = std::to_string(step.weights[0].cols) + " x " + std::to_string(rows);
    }
    Print(line, ceiling);
    for (Line* total : {&totals[line.kind], &all}) {
      total->bytes += line.bytes;
      total->seconds += line.seconds;
    }
  }
  std::printf("\nTotals, %zu threads, reads at most %.1f GB/s:\n", session.n_threads(),
              ceiling / 1e9);
  for (auto& [kind, line] : totals) {
    line.kind = kind;
    Print(line, ceiling);
  }
  Print(all, ceiling);
  return kExitDone;
}

}  // namespace

void AddTrace(CommandLine& line) {
  Command command = line.Add("trace", "Walk one token through the model, operation by operation");
  const auto options = std::make_shared<TraceOptions>();
  options->model.AddModelFlag(command);
  options->model.AddThreadsFlag(command);
  options->model.AddMachineFlags(command);
  command.Add("-d,--n-depth", options->depth, "Tokens already in the cache")
      .Between(0, kMaxTokens)
      .ShowDefault()
      .Type("N");
  command.Does([options] { return RunTrace(*options); });
}

}  // namespace cli
