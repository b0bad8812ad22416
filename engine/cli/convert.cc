// pronk convert: a model as it was published, in one GGUF file.
#include "engine/convert/convert.h"
#include "engine/default_threads.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/model_options.h"
#include "engine/cli/terminal.h"
#include "gguf/dtype.h"
#include "kernels/team.h"

namespace cli {
namespace {

using gguf::DType;

// With general.file_type's numbers, as pronk quantize has them.
struct Target {
  DType type;
  uint32_t file_type;
};
constexpr std::array kTargets = {
    Target{DType::kF32, 0},  Target{DType::kF16, 1},   Target{DType::kBF16, 32},
    Target{DType::kQ8_0, 7}, Target{DType::kQ6_K, 18}, Target{DType::kQ5_K, 16},
    Target{DType::kQ5_1, 9}, Target{DType::kQ5_0, 8},  Target{DType::kQ4_K, 14},
    Target{DType::kQ4_1, 3}, Target{DType::kQ4_0, 2},
};

struct ConvertOptions {
  std::string folder, out, type;
  int n_threads = 0;
};

std::string TargetNames() {
  std::string names;
  for (const Target& target : kTargets) {
    names += (names.empty() ? "" : "|") + std::string(gguf::Info(target.type).name);
  }
  return names;
}

void SetType(const std::string& name, convert::Options& options) {
  const gguf::DTypeInfo* const info = gguf::FindDType(name);
  const auto* const target =
      info == nullptr ? kTargets.end() : std::ranges::find(kTargets, info->type, &Target::type);
  if (target == kTargets.end()) {
    throw UsageError("TYPE " + name + ": expected one of " + TargetNames());
  }
  options.type = target->type;
  options.file_type = target->file_type;
}

// What a person should know, on a terminal or not.
void Tell(const convert::Report& report) {
  for (const std::string& note : report.notes) Complain("note: " + note);
  if (!report.left_out.empty()) {
    constexpr size_t kShown = 3;
    std::string names;
    for (size_t i = 0; i < std::min(kShown, report.left_out.size()); ++i) {
      names += (i == 0 ? "" : ", ") + report.left_out[i];
    }
    Complain("note: " + std::to_string(report.left_out.size()) +
             " tensors are left out, as text does not need them: " + names +
             (report.left_out.size() > kShown ? ", ..." : ""));
  }
  if (!IsTerminal(2)) return;
  Note("architecture " + report.architecture + ", " + std::to_string(report.n_tensors) +
       " tensors, matrices of " + std::string(gguf::Info(report.type).name) + ": " +
       HumanBytes(static_cast<double>(report.bytes)) + " of weights");
}

int Convert(const ConvertOptions& options) {
  convert::Options how;
  if (!options.type.empty()) SetType(options.type, how);
  how.n_threads = options.n_threads > 0 ? options.n_threads : engine::DefaultThreads();
  ProgressLine progress("convert", 0.5, "MB");
  how.progress = [&](uint64_t done, uint64_t total) {
    progress.Update(done / 1'000'000, total / 1'000'000);
  };
  const convert::Report report = convert::Convert(options.folder, options.out, how);
  progress.Clear();
  Tell(report);
  return kExitDone;
}

}  // namespace

void AddConvert(CommandLine& line) {
  Command command =
      line.Add("convert", "Write a folder of Hugging Face's (config.json, safetensors) as GGUF");
  const auto options = std::make_shared<ConvertOptions>();
  command.Add("DIR", options->folder, "The model's folder").Type("FILE").Required();
  command.Add("OUT", options->out, "File to write").Type("FILE").Required();
  command
      .Add("TYPE", options->type,
           "What matrices become (default: what they are); vectors become F32")
      .Type(TargetNames());
  command.Add("-t,--threads", options->n_threads, "Threads (default: performance cores)")
      .Between(1, kMaxThreads)
      .Type("N");
  command.Does([options] { return Convert(*options); });
}

}  // namespace cli
