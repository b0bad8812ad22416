// pronk imatrix: how much each column of a model's matrices counts, found by reading a text. For
// pronk quantize --imatrix, and for llama.cpp, whose form the file has.
//
// The text is read in windows as pronk perplexity reads it: 512 tokens or -c, each a text of its
// own, the first token bos where the model wants one; what is left at the end is not read.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cli/command.h"
#include "engine/cli/command_line.h"
#include "engine/cli/loading.h"
#include "engine/cli/model_options.h"
#include "engine/cli/signals.h"
#include "engine/cli/terminal.h"
#include "engine/error.h"
#include "engine/importance.h"
#include "engine/input_squares.h"
#include "engine/model.h"
#include "engine/session.h"

namespace cli {
namespace {

using tokenizer::TokenId;

constexpr size_t kWindow = 512;  // tokens, where -c says nothing

struct ImatrixOptions {
  ModelOptions model;
  std::string file, out;
};

bool AreNumbers(const engine::SquaresByTensor& squares) {
  return std::ranges::all_of(squares, [](const auto& entry) {
    return std::ranges::all_of(entry.second.sums, [](double sum) { return std::isfinite(sum); });
  });
}

// Matrices of experts that no token chose, which then count as any other.
size_t CountUnseen(const engine::SquaresByTensor& squares) {
  size_t n = 0;
  for (const auto& [name, of] : squares) n += std::ranges::count(of.counts, 0u);
  return n;
}

int Imatrix(const ImatrixOptions& options) {
  engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = LoadModel(options.model);
  if (session_options.context == 0) {
    session_options.context = std::min(kWindow, model.config.context_length);
  }
  const size_t n_window = session_options.context;
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  CatchInterrupts();
  const std::function<bool()> interrupted = Interrupted;
  std::vector<TokenId> ids =
      model.tokenizer->Encode(ReadText(options.file), {.interrupted = &interrupted});
  const size_t n_windows = ids.size() / n_window;
  if (n_windows == 0) {
    throw engine::Error(options.file + ": has " + std::to_string(ids.size()) +
                        " tokens: expected at least one window (-c) of " +
                        std::to_string(n_window));
  }
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  engine::InputSquares inputs;
  engine::Trace trace;
  trace.inputs = &inputs;
  session.TraceTo(&trace);
  ProgressLine progress("window", 1.0, "windows");
  for (size_t i = 0; i < n_windows; ++i) {
    if (Interrupted()) throw engine::Error("interrupted");
    const std::span<TokenId> window = std::span(ids).subspan(i * n_window, n_window);
    if (vocab.add_bos && vocab.bos >= 0) window[0] = vocab.bos;
    session.Rewind(0);
    session.Prefill(window);
    trace.steps.clear();
    progress.Update(i + 1, n_windows);
  }
  progress.Clear();
  if (!AreNumbers(inputs.squares())) {
    throw engine::Error("the model's activations are not numbers: its weights are broken");
  }
  const std::string text = std::filesystem::path(options.file).filename().string();
  engine::WriteImportance(inputs.squares(),
                          {text, static_cast<uint32_t>(n_windows), static_cast<uint32_t>(n_window)},
                          options.out, model.file.ids());
  if (const size_t n = CountUnseen(inputs.squares()); n > 0) {
    Complain("note: " + std::to_string(n) +
             " matrices of experts were never used: a longer text would say more");
  }
  return kExitDone;
}

}  // namespace

void AddImatrix(CommandLine& line) {
  Command command = line.Add(
      "imatrix", "Find how much each column of the matrices counts, for quantize --imatrix");
  const auto options = std::make_shared<ImatrixOptions>();
  command.Add("-f,--file", options->file, "The text to read; - for stdin").Type("FILE").Required();
  options->model.AddSessionFlags(command);
  command.Add("OUT", options->out, "File to write").Type("FILE").Required();
  command.Does([options] { return Imatrix(*options); });
}

}  // namespace cli
