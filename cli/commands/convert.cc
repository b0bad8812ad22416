// pronk convert: turns a published model folder into one GGUF file.
#include "convert/convert.h"

#include <algorithm>
#include <span>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/text.h"
#include "cli/quantize/requantize.h"
#include "cli/terminal/terminal.h"
#include "convert/quantize_plan.h"

namespace cli {
namespace {

struct ConvertOptions {
  std::string folder, out, type;
  int n_threads = 0;
};

// One type for all matrices; pronk quantize makes mixes.
void SetType(const std::string& name, convert::Options& options) {
  const convert::Mix* const mix = convert::FindMix(name);
  if (mix == nullptr || !mix->is_plain) {
    throw UsageError("TYPE ", name, ": expected one of ", MixNames(/*plain=*/true),
                     (mix != nullptr ? "; 'pronk quantize' makes mixes of the result" : ""));
  }
  options.type = mix->type;
  options.file_type = mix->file_type;
}

// Warnings and notes, on a terminal or not.
void PrintReport(const convert::Report& report, const std::string& out) {
  for (const std::string& note : report.notes) Complain("note: " + note);
  if (!report.left_out.empty()) {
    const size_t shown = std::min<size_t>(report.left_out.size(), 3);
    Complain("note: " + std::to_string(report.left_out.size()) +
             " tensors are left out, as text does not need them: " +
             Joined(std::span(report.left_out).first(shown), ", ") +
             (report.left_out.size() > shown ? ", ..." : ""));
  }
  NoteWritten(out, "architecture " + report.architecture + ", " + std::to_string(report.n_tensors) +
                       " tensors, matrices of " + TypeName(report.type));
}

int Convert(const ConvertOptions& options) {
  convert::Options how;
  if (!options.type.empty() && options.type != "auto") SetType(options.type, how);
  how.n_threads = options.n_threads;
  ProgressLine progress("convert", "MB", 1'000'000, kPipedStep);
  how.progress = [&](uint64_t done, uint64_t total) { progress.Update(done, total); };
  const convert::Report report = convert::Convert(options.folder, options.out, how);
  progress.Clear();
  PrintReport(report, options.out);
  return kExitDone;
}

}  // namespace

void AddConvert(CommandLine& line) {
  Command& command =
      line.Add("convert", "Convert a Hugging Face folder (config.json, safetensors) to GGUF");
  ConvertOptions& options = command.Does(Convert);
  command.Add("DIR FILE", options.folder, "The model's folder").Required();
  command.Add("--outfile,OUT FILE", options.out, "File to write").Required().Writes();
  command.Add(
      "--outtype,TYPE " + MixNames(/*plain=*/true), options.type,
      "The type of the matrices: F32, F16, BF16, Q8_0, ... (an unknown name prints the list; "
      "default, or auto: their own); vectors become F32");
  AddThreadsFlag(command, options.n_threads);
}

}  // namespace cli
