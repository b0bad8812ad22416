// pronk perplexity: how well a model predicts a text (text_windows.h); lower is better. A file of
// --save-logits keeps the predictions, and --kl compares another model's: the cost of quantizing.
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/output/json_file.h"
#include "cli/output/text.h"
#include "cli/prediction/base_logits.h"
#include "cli/prediction/divergence.h"
#include "cli/prediction/text_windows.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/model/model.h"
#include "engine/sampling/log_probabilities.h"
#include "engine/session/session.h"

namespace cli {
namespace {

struct PerplexityOptions {
  ModelOptions model;
  std::string file, save, kl;
  size_t most_windows = 0;
  bool json = false;
};

void CheckUsage(const PerplexityOptions& options) {
  if (options.kl.empty()) {
    if (options.file.empty())
      throw UsageError("-f: expected a text, or --kl with a file that --save-logits wrote");
    return;
  }
  // The base contains the text and its windows.
  if (!options.file.empty())
    throw UsageError("-f: not together with --kl, whose file has the text");
  if (options.model.context != engine::kDefaultContext)
    throw UsageError("-c: not together with --kl, whose file has the windows");
  if (!options.save.empty()) throw UsageError("--save-logits: not together with --kl");
  if (options.most_windows != 0)
    throw UsageError("--chunks: not together with --kl, whose file has the windows");
}

int Perplexity(const PerplexityOptions& options) {
  CheckUsage(options);
  engine::SessionOptions session_options = options.model.ForSession();
  const engine::Model model = LoadModel(options.model);
  const size_t n_vocab = model.tokenizer->vocab().size();
  CatchInterrupts();
  std::optional<BaseLogits> base;
  if (!options.kl.empty()) base.emplace(options.kl, n_vocab);
  const TextWindows windows =
      base ? base->windows()
           : CutText(model, options.file, ReadText(options.file),
                     WindowFor(model.config, session_options.context), options.most_windows);
  session_options.context = windows.length;
  engine::Session session(model, session_options);
  if (options.model.verbose) ExplainChoices(options.model, model, session, session_options);
  std::optional<BaseLogitsWriter> kept;
  if (!options.save.empty()) {
    CheckNoModelIsLost(options.save);
    kept.emplace(options.save, windows, n_vocab);
  }
  Divergence divergence;  // the divergence from the base, if there is one
  size_t n_least = 0;     // tokens whose probability is below the least in the base's file
  Mean surprisal;
  ReadWindows(session, windows, [&](std::span<const float> logits, tokenizer::TokenId next) {
    if (base) {
      divergence.Add(base->LogProbabilities(surprisal.n()), logits, next);
      n_least += base->IsLeast(next) ? 1 : 0;
    }
    surprisal.Add(engine::LogSumExp(logits) - logits[static_cast<size_t>(next)]);
    if (kept) kept->Write(logits);
  });
  CheckFinite(std::array{surprisal.Get().value, divergence.MeanDivergence().value},
              "the model's logits");
  if (kept) kept->Commit();
  if (n_least > 0) {
    Complain(
        Format("note: the file of --kl holds no probability below e^-16 of the largest, which "
               "%zu of %zu tokens have: the base's perplexity is higher than shown, and the "
               "ratio lower",
               n_least, surprisal.n()));
  }
  const Estimate perplexity = surprisal.Exp();
  if (options.json) {
    Json json = {{"model", model.file.path()},
                 {"tokens", surprisal.n()},
                 {"windows", windows.count()},
                 {"window", windows.length}};
    if (base) json["base"] = options.kl;
    json.update(base ? divergence.ToJson() : Json{{"perplexity", EstimateJson(perplexity)}});
    WriteOut(JsonText(json, 2));
  } else if (base) {
    WriteOut(divergence.Text() + Format("\n%zu tokens, %s of %zu\n", surprisal.n(),
                                        Counted(windows.count(), "window").c_str(),
                                        windows.length));
  } else {
    WriteOut(Format("perplexity %.4f +- %.4f (%zu tokens of %zu, %s of %zu)\n", perplexity.value,
                    perplexity.error, surprisal.n(), windows.n_tokens,
                    Counted(windows.count(), "window").c_str(), windows.length));
  }
  return kExitDone;
}

}  // namespace

void AddPerplexity(CommandLine& line) {
  Command& command = line.Add("perplexity", "Measure how well the model predicts a text");
  PerplexityOptions& options = command.Does(Perplexity);
  command.Add("-f,--file FILE", options.file, "The text; - for stdin").Once();
  command.Add("--chunks N", options.most_windows, {1, kMaxTokens},
              "The largest number of windows (default: all)");
  command
      .Add("--save-logits,--save-all-logits FILE", options.save,
           "Save all predictions in this file, for --kl")
      .Writes();
  command.Add("--kl FILE", options.kl,
              "Measure how far the predictions are from those saved in this file, on its text");
  command.Add("--json", options.json, "Print one JSON object");
  options.model.AddSessionFlags(
      command, "Tokens of a window (default: 512, or what the model was trained for if less)");
}

}  // namespace cli
