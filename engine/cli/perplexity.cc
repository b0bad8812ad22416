// pronk perplexity: how well a model predicts a text; the lower, the better. For comparing
// quantizations and engines.
//
// The text is cut into windows of as many tokens as the context holds, each read as if it were a
// text of its own. Of every window the second half counts, so that each token is predicted from at
// least half a window; what is left at the end of the text does not. llama.cpp does the same.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
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
#include "engine/model.h"
#include "engine/session.h"

namespace cli {
namespace {

using tokenizer::TokenId;

constexpr size_t kWindow = 512;  // tokens, where -c says nothing

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
};

// Sums of the surprise at each token, -ln of its probability.
struct Surprise {
  size_t n = 0;
  double sum = 0;
  double sum_of_squares = 0;

  void Add(double surprise) {
    ++n;
    sum += surprise;
    sum_of_squares += surprise * surprise;
  }
  double Perplexity() const { return std::exp(sum / static_cast<double>(n)); }
  // One standard error of it, as if the tokens were independent.
  double Error() const {
    const auto count = static_cast<double>(n);
    const double variance = sum_of_squares / count - sum / count * (sum / count);
    return Perplexity() * std::sqrt(std::max(variance, 0.0) / std::max(count - 1, 1.0));
  }
};

// -ln softmax(logits)[id], logits: [vocab].
double SurpriseAt(std::span<const float> logits, TokenId id) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - most);
  return most + std::log(sum) - logits[static_cast<size_t>(id)];
}

void ReadWindow(engine::Session& session, std::span<const TokenId> window, Surprise& surprise) {
  const size_t n_vocab = session.model().tokenizer->vocab().size();
  const size_t row = session.model().config.vocab_size;
  session.Rewind(0);
  session.PrefillAllLogits(window, [&](size_t first, size_t n, std::span<const float> rows) {
    for (size_t i = first; i < first + n; ++i) {
      if (i < window.size() / 2 || i + 1 == window.size()) continue;
      surprise.Add(SurpriseAt(rows.subspan((i - first) * row, n_vocab), window[i + 1]));
    }
  });
}

int Perplexity(const PerplexityOptions& options) {
  engine::SessionOptions session_options = options.model.Session();
  const engine::Model model = LoadModel(options.model);
  const size_t trained = model.config.context_length;
  if (session_options.context == 0) session_options.context = std::min(kWindow, trained);
  const size_t n_window = session_options.context;
  const tokenizer::Vocabulary& vocab = model.tokenizer->vocab();
  CatchInterrupts();
  const std::function<bool()> interrupted = Interrupted;
  std::vector<TokenId> ids =
      model.tokenizer->Encode(ReadText(options.file), {.interrupted = &interrupted});
  if (n_window < 4 || ids.size() < n_window) {
    throw engine::Error(options.file + ": has " + std::to_string(ids.size()) +
                        " tokens, and a window (-c) " + std::to_string(n_window) +
                        ": expected at least 4 in a window, and one window");
  }
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);

  Surprise surprise;
  const size_t n_windows = ids.size() / n_window;
  ProgressLine progress("window", 1.0, "windows");
  for (size_t i = 0; i < n_windows; ++i) {
    if (Interrupted()) throw engine::Error("interrupted");
    const std::span<TokenId> window = std::span(ids).subspan(i * n_window, n_window);
    if (vocab.add_bos && vocab.bos >= 0) window[0] = vocab.bos;
    ReadWindow(session, window, surprise);
    progress.Update(i + 1, n_windows);
  }
  progress.Clear();
  if (!std::isfinite(surprise.sum)) {
    throw engine::Error("the model's logits are not numbers: its weights are broken");
  }
  std::array<char, 160> line;
  std::snprintf(
      line.data(), line.size(), "perplexity %.4f +- %.4f (%zu tokens of %zu, %zu windows of %zu)\n",
      surprise.Perplexity(), surprise.Error(), surprise.n, ids.size(), n_windows, n_window);
  WriteOut(line.data());
  return kExitDone;
}

}  // namespace

void AddPerplexity(CommandLine& line) {
  Command command = line.Add(
      "perplexity", "Measure how well a text is predicted, in windows of 512 tokens or -c");
  const auto options = std::make_shared<PerplexityOptions>();
  command.Add("-f,--file", options->file, "The text; - for stdin").Type("FILE").Required();
  options->model.AddSessionFlags(command);
  command.Does([options] { return Perplexity(*options); });
}

}  // namespace cli
