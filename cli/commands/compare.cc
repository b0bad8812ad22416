// pronk compare: which of several files to use on this machine: memory, loss and speed of each.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/compare_report.h"
#include "cli/command.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/prediction/text_windows.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/sampling/log_probabilities.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

struct CompareOptions {
  std::vector<std::string> models;
  ModelOptions model;
  std::string text, plot;
  size_t window = engine::kDefaultContext, most_windows = 0;
  size_t n_prompt = 256, n_gen = 64;
  int repetitions = 5;
  bool json = false;
};

// A window's text in a model's tokens. The tokens from `first` on are predicted; `bytes` is their
// length.
struct CountedText {
  std::vector<tokenizer::TokenId> ids;
  size_t first;
  double bytes;
};

std::string TextOf(const tokenizer::Tokenizer& tokenizer, std::span<const tokenizer::TokenId> ids) {
  std::string text;
  for (const auto id : ids) text += tokenizer.Piece(id);
  return text;
}

class Compare {
 public:
  explicit Compare(const CompareOptions& options) : options_(options) {
    if (options.text.empty() &&
        (options.window != engine::kDefaultContext || options.most_windows != 0)) {
      throw UsageError("-c, --chunks: only with -f");
    }
    session_ = options.model.ForSession();  // applies --cpu
    session_.n_threads = session_.n_threads_batch = session_.Threads().generating;
    for (const std::string& name : options.models) {
      ModelOptions which = options.model;
      which.model = name;
      report_.models.push_back({.model = DescribeModel(ReadModel(which))});
    }
    if (!options.plot.empty()) {
      CheckNoModelIsLost(options.plot);
      plot_.emplace(options.plot, Inputs());
    }
    report_.setting = ThisSetting();
    report_.text = options.text;
  }

  int Run() {
    CatchInterrupts();
    if (!options_.text.empty()) ReadTexts();
    MeasureSpeeds();
    if (plot_) {
      plot_->Write(CompareSvg(report_));
      plot_->Commit();
    }
    WriteOut(options_.json ? CompareJson(report_) : CompareTable(report_));
    return kExitDone;
  }

 private:
  void ReadTexts() {
    const engine::Model& base = report_.models[0].model.opened;
    const size_t window = WindowFor(base.config, options_.window);
    const std::string text = ReadText(options_.text);  // read once: it may be a pipe
    const TextWindows windows = CutText(base, options_.text, text, window, options_.most_windows);
    report_.n_windows = windows.count();
    report_.window = windows.length;
    engine::SessionOptions options = session_;
    options.context = window;
    engine::Session base_session(base, options);
    const size_t n_vocab = base.tokenizer->vocab().size();
    std::vector<float> kept(windows.counted() * n_vocab);  // the base's ln(probability)
    const std::vector<CountedText> base_texts = TextsFor(base, base, windows);
    for (ComparedModel& result : report_.models) {
      const engine::Model& model = result.model.opened;
      const bool is_alike = IsAlike(model, base, text, windows);
      const bool diverges = is_alike && report_.models.size() > 1;
      const std::vector<CountedText> texts = is_alike ? base_texts : TextsFor(model, base, windows);
      for (const CountedText& one : texts)
        options.context = std::max(options.context, one.ids.size());
      engine::Session session(model, options);
      Mean surprisal;
      Divergence divergence;
      double bytes = 0;
      ProgressLine progress("reading", "windows");
      for (size_t i = 0; i < texts.size(); ++i) {
        const auto watch = [&](size_t) {
          if (Interrupted()) throw engine::Error("interrupted");
          progress.Update(i, texts.size());
          return true;
        };
        const auto keep = [&, to = kept.data()](std::span<const float> logits, auto) mutable {
          const double log_sum = engine::LogSumExp(logits);
          for (const float logit : logits) *to++ = static_cast<float>(logit - log_sum);
        };
        if (diverges) ReadIds(base_session, base_texts[i].ids, base_texts[i].first, watch, keep);
        const auto visit = [&, from = kept.data()](std::span<const float> logits,
                                                   tokenizer::TokenId next) mutable {
          surprisal.Add(engine::LogSumExp(logits) - logits[static_cast<size_t>(next)]);
          if (diverges)
            divergence.Add(std::span(std::exchange(from, from + n_vocab), n_vocab), logits, next);
        };
        ReadIds(session, texts[i].ids, texts[i].first, watch, visit);
        bytes += texts[i].bytes;
      }
      const double nats = surprisal.Get().value * static_cast<double>(surprisal.n());
      result.bits_per_byte = nats / bytes / std::log(2.0);
      if (is_alike) result.perplexity = surprisal.Exp();
      if (diverges) result.divergence = divergence;
      CheckFinite(std::array{*result.bits_per_byte}, model.file.path() + ": the model's logits");
    }
  }

  // Whether both cut the text into the same tokens of the same vocabulary: only then perplexities
  // can be compared.
  static bool IsAlike(const engine::Model& model, const engine::Model& base,
                      const std::string& text, const TextWindows& windows) {
    if (&model == &base) return true;
    if (model.tokenizer->vocab().size() != base.tokenizer->vocab().size()) return false;
    std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text);
    if (ids.size() != windows.n_tokens) return false;
    ids.resize(windows.ids.size());
    return ids == windows.ids;
  }

  // The base's windows in a model's tokens. With another vocabulary a window's text is tokenized
  // again; its last tokens count, as many as fit into the bytes that count in the base's window. A
  // token that lies across the middle is left out.
  static std::vector<CountedText> TextsFor(const engine::Model& model, const engine::Model& base,
                                           const TextWindows& windows) {
    const tokenizer::Vocabulary &vocab = model.tokenizer->vocab(), &own = base.tokenizer->vocab();
    const bool has_bos = own.add_bos && own.bos >= 0;  // it replaces a window's first token
    std::vector<CountedText> texts;
    for (size_t i = 0; i < windows.count(); ++i) {
      const std::vector<tokenizer::TokenId> window = windows.Window(i, own);
      const auto counted = std::span(window).last(windows.counted());
      const std::string end = TextOf(*base.tokenizer, counted);
      CountedText& text = texts.emplace_back(
          CountedText{window, window.size() - counted.size(), static_cast<double>(end.size())});
      if (&model == &base) continue;
      const auto all = std::span(window).subspan(has_bos ? 1 : 0);
      text.ids = model.tokenizer->Encode(TextOf(*base.tokenizer, all));
      if (vocab.add_eos && !text.ids.empty() && text.ids.back() == vocab.eos) text.ids.pop_back();
      text.first = text.ids.size();
      text.bytes = 0;
      while (text.first > 1) {
        const size_t more = model.tokenizer->Piece(text.ids[text.first - 1]).size();
        if (text.bytes + static_cast<double>(more) > static_cast<double>(end.size())) break;
        text.bytes += static_cast<double>(more);
        --text.first;
      }
    }
    return texts;
  }

  // Measures in rounds, so that a machine that is slow for a while slows all models alike.
  void MeasureSpeeds() {
    ProgressLine progress("measuring", "runs");
    const size_t n_runs = static_cast<size_t>(options_.repetitions) * report_.models.size();
    for (size_t run = 0; run < n_runs; ++run) {
      progress.Update(run, n_runs);
      ComparedModel& result = report_.models[run % report_.models.size()];
      result.prompt.test.n_prompt = options_.n_prompt;
      result.generation.test.n_gen = options_.n_gen;
      for (BenchResult* of : {&result.prompt, &result.generation}) {
        of->test.model = &result.model;
        of->test.n_threads = static_cast<size_t>(session_.n_threads);
        if (of->test.Tokens() == 0) continue;
        if (Measure(session_, *of, [](const BenchResult&) { return false; })) continue;
        if (run < report_.models.size()) throw engine::Error("interrupted");
        return;  // earlier rounds are complete and can be shown
      }
    }
  }

  const CompareOptions& options_;
  engine::SessionOptions session_;
  std::optional<gguf::OutputFile> plot_;
  CompareReport report_;
};

int RunCompare(const CompareOptions& options) { return Compare(options).Run(); }

}  // namespace

void AddCompare(CommandLine& line) {
  Command& command = line.Add("compare", "Show which of several files suits this machine best");
  CompareOptions& options = command.Does(RunCompare);
  options.model.named_by = &command
                                .Add("-m,--model,MODEL MODEL", options.models,
                                     "Files or names; the others are compared with the first one")
                                .Required();
  command
      .Add("-f,--file FILE", options.text,
           "A text (- for stdin): also compare how well it is predicted")
      .Once();
  command.Add("-c,--ctx-size N", options.window, {0, kMaxTokens},
              "Tokens in a window of the text (default: 512); 0: as many as in training");
  command.Add("--chunks N", options.most_windows, {1, kMaxTokens},
              "The largest number of windows (default: all)");
  command
      .Add("-p,--n-prompt N", options.n_prompt, {0, kMaxTokens},
           "Tokens of prompt to read; 0: none")
      .ShowDefault();
  command.Add("-n,--n-gen N", options.n_gen, {0, kMaxTokens}, "Tokens to generate; 0: none")
      .ShowDefault();
  command
      .Add("-r,--repetitions N", options.repetitions, {1, 1000},
           "Repetitions, of which the median is shown")
      .ShowDefault();
  AddThreadsFlag(command, options.model.n_threads);
  options.model.AddCpuFlag(command);
  options.model.AddOverrideFlag(command);
  command.Add("--plot FILE", options.plot, "Draw the table as a picture").Writes();
  command.Add("--json", options.json, "Print one JSON object");
}

}  // namespace cli
