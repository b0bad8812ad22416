// pronk imatrix: the importance of each column of a model's matrices, measured on a text. Used by
// pronk quantize --imatrix; llama.cpp reads the file, too.
//
// The text is read in windows as in pronk perplexity: 512 tokens or -c, each a text of its own,
// beginning with bos if the model wants it; an incomplete window is not read.
#include <algorithm>
#include <filesystem>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/prediction/text_windows.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "convert/importance.h"
#include "engine/model/model.h"
#include "engine/pass/input_squares.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

struct ImatrixOptions {
  ModelOptions model;
  std::string file, out;
};

// Counts matrices of experts that no token chose; their columns then count equally.
size_t CountUnseen(const engine::SquaresByTensor& squares) {
  size_t n = 0;
  for (const auto& [name, of] : squares) n += std::ranges::count(of.counts, 0u);
  return n;
}

int Imatrix(const ImatrixOptions& options) {
  engine::SessionOptions session_options = options.model.ForSession();
  const engine::Model model = LoadModel(options.model);
  session_options.context = WindowFor(model.config, session_options.context);
  CatchInterrupts();
  const TextWindows windows =
      CutText(model, options.file, ReadText(options.file), session_options.context, 0);
  // Checked before work that may take hours: a bad name is reported now.
  gguf::OutputFile out(options.out, Inputs());
  CheckNoModelIsLost(options.out);
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  engine::InputSquares inputs;
  engine::Trace trace = {.inputs = &inputs};
  session.TraceTo(&trace);
  ProgressLine progress("reading");
  for (size_t i = 0; i < windows.count(); ++i) {
    session.Rewind(0);
    session.Prefill(windows.Window(i, model.tokenizer->vocab()),
                    Watch(progress, i * windows.length, windows.ids.size()));
    trace.operations.clear();
  }
  progress.Clear();
  for (const auto& [name, of] : inputs.squares()) CheckFinite(of.sums, "the model's activations");
  const std::string text = std::filesystem::path(options.file).filename().string();
  convert::WriteImportance(
      inputs.squares(),
      {text, static_cast<uint32_t>(windows.count()), static_cast<uint32_t>(windows.length)}, out);
  if (const size_t n = CountUnseen(inputs.squares()); n > 0) {
    Complain("note: " + std::to_string(n) +
             " matrices of experts were never used: a longer text would say more");
  }
  NoteWritten(options.out, std::to_string(inputs.squares().size()) + " matrices, " +
                               std::to_string(windows.count()) + " windows of " +
                               std::to_string(windows.length) + " tokens");
  return kExitDone;
}

}  // namespace

void AddImatrix(CommandLine& line) {
  Command& command =
      line.Add("imatrix", "Measure how much each column of the matrices matters, for quantize");
  ImatrixOptions& options = command.Does(Imatrix);
  command.Add("-f,--file FILE", options.file, "The text to read; - for stdin").Required().Once();
  // The first word is the model, so that no model given alone is overwritten.
  options.model.AddModelFlag(command, /*is_required=*/true);
  options.model.AddSessionFlags(command);
  command.Add("OUT FILE", options.out, "File to write").Required().Writes();
}

}  // namespace cli
