// pronk inspect: the contents of a GGUF file, for people (80 columns) or machines (--json).
#include <cinttypes>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/file_values.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/terminal/terminal.h"
#include "engine/model/model.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "kernels/threads/thread_pool.h"

namespace cli {
namespace {

struct InspectOptions {
  std::string model;
  bool tensors = false;
  bool check = false;
  bool json = false;
  int n_threads = 0;
};

std::string TypesText(const gguf::File& file) {
  std::map<gguf::DType, std::pair<size_t, uint64_t>> totals;
  for (const gguf::TensorView& tensor : file.tensors()) {
    auto& [n, bytes] = totals[tensor.dtype];
    ++n;
    bytes += tensor.bytes;
  }
  std::string text;
  for (const auto& [dtype, total] : totals) {
    text += "  " + Padded(TypeName(dtype), 9) +
            Padded(std::to_string(total.first) + " tensors", 15) + HumanBytes(total.second) + "\n";
  }
  return text;
}

std::string HeadText(const gguf::File& file) {
  std::string text = gguf::PrintablePath(file.path()) + "\n";
  text += "  GGUF version " + std::to_string(file.version()) + ", " + HumanBytes(file.file_bytes());
  if (file.n_parts() > 1) text += " in " + std::to_string(file.n_parts()) + " parts";
  const auto n = static_cast<double>(file.elements());
  return text + (n < 1e3   ? Format(", %.0f weights\n", n)
                 : n < 1e6 ? Format(", %.1f thousand weights\n", n / 1e3)
                 : n < 1e9 ? Format(", %.1f million weights\n", n / 1e6)
                           : Format(", %.2f billion weights\n", n / 1e9));
}

std::string EntryText(const gguf::Metadata::Entry& entry) {
  const std::string head = "  " + Padded(gguf::Printable(entry.key), 40) + " ";
  const std::string shown = ValueLine(entry.value, kColumns);
  // A long key gets a line of its own.
  return head.size() + 20 < kColumns
             ? head + Cut(shown, kColumns - head.size() - 1) + "\n"
             : Cut(head, kColumns - 1) + "\n    " + Cut(shown, kColumns - 5) + "\n";
}

void PrintText(const gguf::File& file, bool list_tensors) {
  Output out;
  out.Add(HeadText(file));
  const auto& entries = file.metadata().entries();
  out.Add("\nMetadata: " + std::to_string(entries.size()) + " keys\n");
  for (const gguf::Metadata::Entry& entry : entries) out.Add(EntryText(entry));
  out.Add("\nTensors: " + std::to_string(file.tensors().size()) + "\n" + TypesText(file));
  if (list_tensors) {
    out.Add("\n");
    for (const gguf::TensorView& tensor : file.tensors()) {
      out.Add("  " + Padded(gguf::Printable(tensor.name), 32) + " " +
              Padded(TypeName(tensor.dtype), 8) + " " + Padded(ShapeText(tensor), 20) + " " +
              HumanBytes(tensor.bytes) + "\n");
    }
  }
  out.Flush();
}

void PrintJson(const gguf::File& file) {
  Output out;
  const TextSink sink = [&](std::string_view text) { out.Add(text); };
  const Json head = {{"path", file.path()},
                     {"version", file.version()},
                     {"parts", file.n_parts()},
                     {"file_bytes", file.file_bytes()},
                     {"tensor_bytes", file.tensor_bytes()},
                     {"parameters", file.elements()},
                     {"alignment", file.alignment()}};
  const std::string text = JsonText(head, 2);
  out.Add(text.substr(0, text.size() - 3) + ",\n  \"metadata\": {");  // without "\n}\n"
  std::string_view before = "\n    ";
  for (const auto& [key, value] : file.metadata().entries()) {
    out.Add(std::exchange(before, ",\n    "));
    WriteJsonString(key, sink);
    out.Add(": ");
    WriteJsonValue(value, sink);
  }
  out.Add("\n  },\n  \"tensors\": [");
  before = "\n    ";
  for (const gguf::TensorView& tensor : file.tensors()) {
    out.Add(std::exchange(before, ",\n    "));
    out.Add(JsonLine({{"name", tensor.name},
                      {"type", TypeName(tensor.dtype)},
                      {"dims", std::span(tensor.dims.data(), tensor.n_dims)},
                      {"bytes", tensor.bytes}}));
  }
  out.Add("\n  ]\n}\n");
  out.Flush();
}

std::string CheckLine(const gguf::TensorView& tensor, const TensorCheck& check) {
  std::string line = Column(tensor.name, 29) + " " + Padded(TypeName(tensor.dtype), 7);
  if (check.least <= check.most) {
    line +=
        Format(" %9.3g %9.3g %5.1f%%", check.least, check.most,
               100.0 * static_cast<double>(check.n_zero) / static_cast<double>(tensor.elements()));
  } else {
    line += Format(" %9s %9s %6s", "-", "-", "-");
  }
  line += Format(" %016" PRIx64 "\n", check.hash);
  if (!check.IsFinite()) {
    line += Format("  NOT FINITE: %" PRIu64 " NaN, %" PRIu64 " infinite, of %" PRIu64 "\n",
                   check.n_nan, check.n_infinite, tensor.elements());
  }
  return line;
}

Json CheckJson(const gguf::TensorView& tensor, const TensorCheck& check) {
  Json json = {{"name", tensor.name},
               {"type", TypeName(tensor.dtype)},
               {"hash", Format("%016" PRIx64, check.hash)},
               {"nan", check.n_nan},
               {"infinite", check.n_infinite},
               {"zero", check.n_zero}};
  if (check.least <= check.most) {
    json["least"] = check.least;
    json["most"] = check.most;
  }
  return json;
}

// Why this file cannot be run; "" if it can.
std::string Problem(gguf::File file) {
  try {
    engine::Model::From(std::move(file));
    return "";
  } catch (const gguf::Error& error) {
    return MessageOf(error);
  }
}

// A damaged file exits with kExitFault, after everything found is printed.
int Check(const InspectOptions& options, gguf::File file) {
  Output out;
  Json list = Json::array();
  if (!options.json) {
    out.Add(HeadText(file) + Format("\n%-29s %-7s %9s %9s %6s %s\n", "tensor", "type", "least",
                                    "most", "zero", "XXH64"));
  }
  kernels::ThreadPool pool(options.n_threads);
  ProgressLine progress("checking", "MB", 1'000'000);
  std::vector<std::string_view> broken;
  uint64_t done = 0;
  for (const gguf::TensorView& tensor : file.tensors()) {
    const TensorCheck check = CheckTensor(pool, tensor);
    if (!check.IsFinite()) broken.push_back(tensor.name);
    options.json ? list.push_back(CheckJson(tensor, check)) : out.Add(CheckLine(tensor, check));
    done += tensor.bytes;
    progress.Update(done, file.tensor_bytes());
  }
  progress.Clear();
  const std::string path = file.path();
  const size_t n_tensors = file.tensors().size();
  const std::string first = broken.empty() ? "" : gguf::Quoted(broken[0]);
  const std::string problem = Problem(std::move(file));
  if (options.json) {
    out.Add(JsonText({{"path", path},
                      {"finite", broken.empty()},
                      {"runs", problem.empty()},
                      {"problem", problem},
                      {"tensors", list}},
                     2));
  } else {
    if (broken.empty()) out.Add(Format("\n%zu tensors, all numbers finite\n", n_tensors));
    out.Add(problem.empty() ? "runs\n" : "does not run: " + gguf::PrintablePath(problem) + "\n");
  }
  out.Flush();
  if (broken.empty()) return kExitDone;
  gguf::Fail(path, "expected finite weights, found NaN or infinity in ", broken.size(), " of ",
             n_tensors, " tensors, the first ", first);
}

int Inspect(const InspectOptions& options) {
  if (options.n_threads != 0 && !options.check) throw UsageError("-t: only with --check");
  if (options.tensors && options.check) throw UsageError("--tensors: --check lists them all");
  if (options.tensors && options.json) throw UsageError("--tensors: --json lists them all");
  gguf::File file = OpenFile(ResolveModel(options.model));
  if (options.check) return Check(options, std::move(file));
  options.json ? PrintJson(file) : PrintText(file, options.tensors);
  return kExitDone;
}

}  // namespace

void AddInspect(CommandLine& line) {
  Command& command = line.Add("inspect", "Show what a GGUF file holds");
  InspectOptions& options = command.Does(Inspect);
  command.Add("-m,--model,MODEL MODEL", options.model, "A file or a name").Required();
  command.Add("--tensors", options.tensors, "List every tensor");
  command.Add("--check", options.check,
              "Read every tensor: whether its numbers are finite, their range and hash, and "
              "whether it will run");
  AddThreadsFlag(command, options.n_threads, "Threads for --check (default: one per core)");
  command.Add("--json", options.json, "Print one JSON object");
}

}  // namespace cli
