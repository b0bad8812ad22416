// pronk quantize: rounds a model's matrices to other types and keeps everything else.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/text.h"
#include "cli/quantize/requantize.h"
#include "cli/terminal/terminal.h"
#include "convert/importance.h"
#include "convert/quantize_plan.h"
#include "gguf/dtype.h"
#include "gguf/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"

namespace cli {
namespace {

using gguf::DType;

constexpr std::string_view kFileType = "general.file_type";
constexpr std::string_view kVersion = "general.quantization_version";
constexpr std::string_view kImportance = "quantize.imatrix.";

struct QuantizeOptions {
  std::string in, out, imatrix;
  TypeOptions types;
  bool dry_run = false;
  int n_threads = 0;
};

// Copies all keys except the old file's layout; type keys get the new types.
void CopyMetadata(const gguf::File& file, const convert::Mix& mix,
                  const convert::Importance* importance, gguf::Writer& writer) {
  const bool quantized = !convert::IsFloat(mix.type);
  for (const gguf::Metadata::Entry& entry : file.metadata().entries()) {
    if (entry.key == "general.alignment" || entry.key.starts_with("split.")) continue;
    if (entry.key == kFileType || (entry.key == kVersion && quantized)) continue;
    if (entry.key.starts_with(kImportance) && importance != nullptr) continue;
    writer.Add(entry);
  }
  writer.Add(kFileType, mix.file_type);
  if (quantized) writer.Add(kVersion, convert::kQuantizationVersion);
  if (importance == nullptr) return;
  const std::string name = std::filesystem::path(importance->path()).filename().string();
  writer.Add(std::string(kImportance) + "file", name);
  writer.Add(std::string(kImportance) + "entries_count",
             static_cast<uint32_t>(importance->n_tensors()));
}

// Warns if weights are rounded that were rounded before, and if types need an importance matrix.
void Warn(const std::vector<PlannedTensor>& plan, const convert::Importance* importance) {
  size_t n = 0;
  std::set<std::string> types, needy;
  for (const PlannedTensor& planned : plan) {
    if (!planned.is_changed()) continue;
    if (gguf::Info(planned.type).block_size == 256 && TypeName(planned.type).starts_with("IQ") &&
        planned.bytes() * 8 < 3 * planned.tensor->elements()) {
      needy.insert(TypeName(planned.type));
    }
    // F32 holds every packed number exactly.
    if (convert::IsFloat(planned.tensor->dtype) || planned.type == DType::kF32) continue;
    ++n;
    types.insert(TypeName(planned.tensor->dtype));
  }
  if (n > 0) {
    Complain("warning: " + std::to_string(n) + " matrices are quantized already (" +
             Joined(types, ", ") +
             "): their errors stay, and new ones are added; better start from the original");
  }
  if (importance == nullptr && !needy.empty()) {
    Complain("note: with so few bits (" + *needy.begin() +
             ") an importance matrix helps much: pronk imatrix, then --imatrix FILE");
  }
}

// Checks that the importance matrix belongs to this model.
void CheckImportance(const std::vector<PlannedTensor>& plan,
                     const convert::Importance* importance) {
  const auto has_columns = [&](const PlannedTensor& planned) {
    return importance->Columns(*planned.tensor, 0) != nullptr;
  };
  if (importance == nullptr || std::ranges::any_of(plan, has_columns)) return;
  gguf::Fail(importance->path(),
             "expected the importance of this model's matrices, found another model's");
}

// NVFP4 stores a factor per matrix in a tensor of its own; empty if no factor is written.
std::string FactorName(const gguf::File& file, const PlannedTensor& planned) {
  if (planned.type != DType::kNVFP4 || !planned.is_changed()) return "";
  std::string name(planned.tensor->name);
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return "";
  name = name.substr(0, dot) + ".scale";
  return file.FindTensor(name) == nullptr ? name : "";
}

void Write(const gguf::File& file, const std::vector<PlannedTensor>& plan, const convert::Mix& mix,
           const convert::Importance* importance, const QuantizeOptions& options) {
  Requantizer requantizer(file, importance, options.n_threads);
  gguf::Writer writer(static_cast<uint32_t>(file.alignment()));
  CopyMetadata(file, mix, importance, writer);
  std::map<std::string, std::vector<float>> factors;  // must live until the writer has read them
  for (const PlannedTensor& planned : plan) {
    const gguf::TensorView& tensor = *planned.tensor;
    if (!planned.is_changed()) {
      writer.AddTensor(tensor);
      continue;
    }
    std::span<const float> factor;
    if (const std::string name = FactorName(file, planned); !name.empty()) {
      factor = factors[name] = requantizer.Factors(tensor);
      writer.AddTensor(name, DType::kF32, {factor.size()}, std::as_bytes(factor));
    }
    writer.AddTensor(tensor.name, planned.type,
                     {tensor.dims.begin(), tensor.dims.begin() + tensor.n_dims},
                     [&requantizer, &planned, factor, done = uint64_t{0}]() mutable {
                       return requantizer.Next(planned, factor, done);
                     });
  }
  writer.WriteFile(options.out, Inputs());
}

// "36 of 47 tensors change: 5.17 MB of weights become 3.10 MB (5.10 bits a weight)"
std::string Summary(const gguf::File& file, const std::vector<PlannedTensor>& plan) {
  size_t n_changed = 0;
  uint64_t bytes = 0;
  for (const PlannedTensor& planned : plan) {
    n_changed += planned.is_changed() ? 1 : 0;
    bytes += planned.bytes();
  }
  return Format("%zu of %zu tensors change: ", n_changed, plan.size()) +
         HumanBytes(file.tensor_bytes()) + " of weights become " + HumanBytes(bytes) +
         Format(" (%.2f bits a weight)",
                8 * static_cast<double>(bytes) / static_cast<double>(file.elements()));
}

// One line per tensor.
void WritePlan(const gguf::File& file, const std::vector<PlannedTensor>& plan) {
  std::string text;
  for (const PlannedTensor& planned : plan) {
    const gguf::TensorView& tensor = *planned.tensor;
    text += Padded(gguf::Printable(tensor.name), 36) + " " + Padded(ShapeText(tensor), 16) + " " +
            Padded(TypeName(tensor.dtype), 7) + " ";
    if (planned.is_changed()) {
      text += "-> " + Padded(TypeName(planned.type), 7) + " " + HumanBytes(tensor.bytes) + " -> " +
              HumanBytes(planned.bytes());
    } else {
      text += "stays      " + HumanBytes(tensor.bytes);
    }
    text += "\n";
  }
  WriteOut(text + Summary(file, plan) + "\n");
}

int Quantize(const QuantizeOptions& options) {
  const convert::Mix& mix = MixOf(options.types.type);
  const gguf::File file = OpenFile(ResolveModel(options.in));
  std::optional<convert::Importance> importance;
  if (!options.imatrix.empty()) importance = convert::Importance::Read(options.imatrix);
  const convert::Importance* const columns = importance ? &*importance : nullptr;
  const std::vector<PlannedTensor> plan = PlanTypes(file, options.types, columns != nullptr);
  CheckImportance(plan, columns);
  if (options.dry_run) {
    Warn(plan, columns);
    WritePlan(file, plan);
    return kExitDone;
  }
  Write(file, plan, mix, columns, options);
  Warn(plan, columns);  // last, so that "out of memory" stays the only message
  NoteWritten(options.out, Summary(file, plan));
  return kExitDone;
}

}  // namespace

void AddQuantize(CommandLine& line) {
  Command& command = line.Add("quantize", "Convert the matrices of a model to other types");
  QuantizeOptions& options = command.Does(Quantize);
  command.Add("-m,--model,MODEL MODEL", options.in, "A file or a name").Required();
  command.Add("OUT FILE", options.out, "File to write").Required().Writes();
  command
      .Add("TYPE " + MixNames(), options.types.type,
           "The type of the matrices: Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0, IQ4_XS, Q3_K_M, IQ3_XXS, "
           "Q2_K, "
           "...; an unknown name prints the list")
      .Required();
  command.Add("--imatrix FILE", options.imatrix,
              "Importance of each column: a file written by pronk imatrix");
  command.Add(
      "--tensor-type PATTERN=TYPE", options.types.patterns,
      "Give TYPE to matrices a part of whose name matches this regular expression; the first "
      "match counts");
  command.Add("--output-tensor-type TYPE", options.types.output,
              "The type of output.weight, or of token_embd.weight in models without it");
  command.Add("--token-embedding-type TYPE", options.types.embedding,
              "The type of token_embd.weight");
  command.Add("--pure", options.types.pure, "No mix: all matrices get the main type");
  command.Add("--dry-run", options.dry_run, "Show types and sizes, and write nothing");
  AddThreadsFlag(command, options.n_threads);
}

}  // namespace cli
