// pronk inspect: what a GGUF file holds, for people (80 columns) or machines (--json).
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/json_file.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/terminal.h"
#include "engine/cli/value_text.h"
#include "gguf/error.h"
#include "gguf/file.h"

namespace cli {
namespace {

constexpr size_t kColumns = 80;

struct InspectOptions {
  std::string model;
  bool tensors = false;
  bool json = false;
};

// Hands text on in large pieces, until nobody reads any more.
class Output {
 public:
  Output() = default;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Add(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPiece) Flush();
  }
  void Flush() { open_ = open_ && WriteOut(std::exchange(text_, "")); }

 private:
  static constexpr size_t kPiece = size_t{1} << 16;
  std::string text_;
  bool open_ = true;
};

// Cut to a number of columns, at a character's edge. Counts code points: close enough for a table.
std::string Cut(const std::string& text, size_t columns) {
  size_t width = 0, last = 0;  // where the last character that was counted starts
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts_character = (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80;
    if (!starts_character) continue;
    if (++width > columns) return text.substr(0, last) + "\u2026";
    last = i;
  }
  return text;
}

std::string DimsText(const gguf::TensorView& tensor) {
  std::string text;
  for (uint32_t i = 0; i < tensor.n_dims; ++i) {
    text += (i == 0 ? "" : " x ") + std::to_string(tensor.dims[i]);
  }
  return text;
}

uint64_t Parameters(const gguf::File& file) {
  uint64_t n = 0;
  for (const gguf::TensorView& tensor : file.tensors()) n += tensor.elements();
  return n;
}

std::string HumanCount(uint64_t n) {
  char text[32];
  const auto x = static_cast<double>(n);
  if (n < 1'000'000) {
    std::snprintf(text, sizeof(text), "%.1f thousand", x / 1e3);
  } else if (n < 1'000'000'000) {
    std::snprintf(text, sizeof(text), "%.1f million", x / 1e6);
  } else {
    std::snprintf(text, sizeof(text), "%.2f billion", x / 1e9);
  }
  return text;
}

struct TypeTotals {
  size_t tensors = 0;
  uint64_t bytes = 0;
};

std::string TypesText(const gguf::File& file) {
  std::map<gguf::DType, TypeTotals> totals;
  for (const gguf::TensorView& tensor : file.tensors()) {
    ++totals[tensor.dtype].tensors;
    totals[tensor.dtype].bytes += tensor.bytes;
  }
  std::string text;
  for (const auto& [dtype, total] : totals) {
    text += "  " + Padded(std::string(gguf::Info(dtype).name), 9) +
            Padded(std::to_string(total.tensors) + " tensors", 15) +
            HumanBytes(static_cast<double>(total.bytes)) + "\n";
  }
  return text;
}

std::string HeadText(const gguf::File& file) {
  std::string text = gguf::PrintablePath(file.path()) + "\n";
  text += "  GGUF version " + std::to_string(file.version()) + ", " +
          HumanBytes(static_cast<double>(file.file_bytes()));
  if (file.n_parts() > 1) text += " in " + std::to_string(file.n_parts()) + " parts";
  return text + ", " + HumanCount(Parameters(file)) + " weights\n";
}

std::string EntryText(const gguf::Metadata::Entry& entry) {
  const std::string head = "  " + Padded(gguf::Printable(entry.key), 40) + " ";
  const std::string shown = ValueLine(entry.value, kColumns);
  // A long key has the line for itself.
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
              Padded(std::string(gguf::Info(tensor.dtype).name), 8) + " " +
              Padded(DimsText(tensor), 20) + " " + HumanBytes(static_cast<double>(tensor.bytes)) +
              "\n");
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
                     {"parameters", Parameters(file)},
                     {"alignment", file.alignment()}};
  std::string text = JsonText(head, 2);
  text.resize(text.size() - 3);  // "\n}\n": more follows
  out.Add(text + ",\n  \"metadata\": {");
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
    const std::span<const uint64_t> dims(tensor.dims.data(), tensor.n_dims);
    std::string line = JsonText(Json{{"name", tensor.name},
                                     {"type", gguf::Info(tensor.dtype).name},
                                     {"dims", dims},
                                     {"bytes", tensor.bytes}},
                                -1);
    line.pop_back();  // its line feed
    out.Add(line);
  }
  out.Add("\n  ]\n}\n");
  out.Flush();
}

int Inspect(const InspectOptions& options) {
  const gguf::File file = OpenFile(ResolveModel(options.model));
  options.json ? PrintJson(file) : PrintText(file, options.tensors);
  return kExitDone;
}

}  // namespace

void AddInspect(CommandLine& line) {
  Command command = line.Add("inspect", "Show what a GGUF file holds");
  const auto options = std::make_shared<InspectOptions>();
  command.Add("-m,--model,MODEL", options->model, "A file or a name").Type("MODEL").Required();
  command.Add("--tensors", options->tensors, "List every tensor");
  command.Add("--json", options->json, "Print one JSON object");
  command.Does([options] { return Inspect(*options); });
}

}  // namespace cli
