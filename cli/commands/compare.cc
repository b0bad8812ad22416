// pronk compare: which of several files to use on this machine: memory, loss and speed of each.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/compare_report.h"
#include "cli/command.h"
#include "cli/loss/text_windows.h"
#include "cli/options/command_line.h"
#include "cli/options/inputs.h"
#include "cli/options/loading.h"
#include "cli/options/model_options.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"
#include "gguf/output_file.h"

namespace cli {
namespace {

constexpr const char* kSysfs = "/sys";

struct CompareOptions {
  std::vector<std::string> models;
  ModelOptions model;
  std::string text, plot;
  size_t window = engine::kUsualContext, most_windows = 0;
  size_t n_prompt = 256, n_gen = 64;
  int repetitions = 5;
  bool json = false;
};

// Of what a model predicts of a text: -ln(probability) of its tokens, and their bytes.
struct Predicted {
  double nats = 0, bytes = 0;
  double BitsPerByte() const { return nats / bytes / std::log(2.0); }
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
        (options.window != engine::kUsualContext || options.most_windows != 0)) {
      throw UsageError("-c, --chunks: only with -f");
    }
    session_ = options.model.Session();  // applies --cpu
    session_.n_threads = session_.n_threads_batch = session_.Threads().generating;
    for (const std::string& name : options.models) {
      ModelOptions which = options.model;
      which.model = name;
      report_.models.push_back({.model = DescribeModel(ReadModel(which))});
    }
    if (!options.plot.empty()) plot_.emplace(options.plot, Inputs());
    report_.setting = ThisSetting(kSysfs);
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
    double counted_bytes = 0;
    for (size_t i = 0; i < windows.count(); ++i) counted_bytes += CountedBytes(base, windows, i);
    for (ComparedModel& result : report_.models) {
      const engine::Model& model = result.model.opened;
      Mean surprise;
      if (!IsAlike(model, base, text, windows)) {
        const Predicted found = PredictBytes(model, options, base, windows);
        result.bits_per_byte = found.BitsPerByte();
      } else {
        engine::Session session(model, options);
        if (report_.models.size() > 1) {
          result.divergence = DivergenceOf(session, base_session, windows);
          result.perplexity = result.divergence->Perplexity();
        } else {
          ReadWindows(session, windows,
                      [&](std::span<const float> logits, tokenizer::TokenId next) {
                        surprise.Add(LogSumExp(logits) - logits[static_cast<size_t>(next)]);
                      });
          result.perplexity = surprise.Exp();
        }
        const auto n = static_cast<double>(windows.count() * windows.counted());
        result.bits_per_byte =
            Predicted{std::log(result.perplexity->value) * n, counted_bytes}.BitsPerByte();
      }
      CheckFinite(std::array{*result.bits_per_byte}, model.file.path() + ": the model's logits");
    }
  }

  // Whether both cut the text into the same tokens of the same vocabulary: only then perplexities
  // can be compared.
  bool IsAlike(const engine::Model& model, const engine::Model& base, const std::string& text,
               const TextWindows& windows) const {
    if (model.tokenizer->vocab().size() != base.tokenizer->vocab().size()) return false;
    if (&model == &base) return true;
    std::vector<tokenizer::TokenId> ids = model.tokenizer->Encode(text);
    if (ids.size() != windows.n_tokens) return false;
    ids.resize(windows.ids.size());
    return ids == windows.ids;
  }

  // The bytes of the tokens of a window that count.
  static double CountedBytes(const engine::Model& base, const TextWindows& windows, size_t i) {
    const auto window = std::span(windows.ids).subspan(i * windows.length, windows.length);
    const auto counted = window.last(windows.counted());
    return static_cast<double>(TextOf(*base.tokenizer, counted).size());
  }

  // How a model of another vocabulary predicts the bytes that count, from as much text before them:
  // its tokens that end a window's text, but for one across the middle.
  static Predicted PredictBytes(const engine::Model& model, engine::SessionOptions options,
                                const engine::Model& base, const TextWindows& windows) {
    using Ids = std::vector<tokenizer::TokenId>;
    const tokenizer::Vocabulary &vocab = model.tokenizer->vocab(), &own = base.tokenizer->vocab();
    std::vector<Ids> texts;
    for (size_t i = 0; i < windows.count(); ++i) {
      auto window = std::span(windows.ids).subspan(i * windows.length, windows.length);
      if (own.add_bos && own.bos >= 0) window = window.subspan(1);  // which takes its place
      Ids& ids = texts.emplace_back(model.tokenizer->Encode(TextOf(*base.tokenizer, window)));
      if (vocab.add_eos && !ids.empty() && ids.back() == vocab.eos) ids.pop_back();
      options.context = std::max(options.context, ids.size());
    }
    engine::Session session(model, options);
    ProgressLine progress("reading", "windows");
    Predicted sum;
    for (size_t i = 0; i < texts.size(); ++i) {
      const Ids& ids = texts[i];
      const double most = CountedBytes(base, windows, i);
      size_t first = ids.size();  // that counts
      for (double bytes = 0; first > 1; --first) {
        bytes += static_cast<double>(model.tokenizer->Piece(ids[first - 1]).size());
        if (bytes > most) break;
      }
      const auto counted = std::span(ids).subspan(first);
      sum.bytes += static_cast<double>(TextOf(*model.tokenizer, counted).size());
      session.Rewind(0);
      const size_t row = model.config.vocab_size;
      const auto take = [&](size_t begin, size_t n, std::span<const float> rows) {
        for (size_t t = std::max(begin, first - 1); t < std::min(begin + n, ids.size() - 1); ++t) {
          const auto logits = rows.subspan((t - begin) * row, vocab.size());
          sum.nats += LogSumExp(logits) - logits[static_cast<size_t>(ids[t + 1])];
        }
      };
      session.PrefillAllLogits(ids, take, Watch(progress, i, texts.size()));
    }
    return sum;
  }

  // Window by window; the base runs first, and its predictions are kept for one window only.
  static Divergence DivergenceOf(engine::Session& session, engine::Session& base,
                                 const TextWindows& windows) {
    Divergence divergence;
    const size_t n_vocab = base.model().tokenizer->vocab().size();
    std::vector<float> kept(windows.counted() * n_vocab);  // ln(probability)
    ProgressLine progress("reading");
    const auto watch = [&](size_t n) {  // n windows were read, by either model
      return Watch(progress, n * windows.length, 2 * windows.ids.size());
    };
    for (size_t i = 0; i < windows.count(); ++i) {
      float* to = kept.data();
      const auto keep = [&](std::span<const float> logits, tokenizer::TokenId) {
        const double log_sum = LogSumExp(logits);
        for (const float logit : logits) *to++ = static_cast<float>(logit - log_sum);
      };
      ReadWindow(base, windows, i, watch(2 * i), keep);
      const float* from = kept.data();
      const auto compare = [&](std::span<const float> logits, tokenizer::TokenId next) {
        divergence.Add(std::span(from, n_vocab), logits, next);
        from += n_vocab;
      };
      ReadWindow(session, windows, i, watch(2 * i + 1), compare);
    }
    return divergence;
  }

  // In rounds: when the machine is slow for a while, all models are slowed alike.
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
        if (Measure(session_, kSysfs, *of, [](const BenchResult&) { return false; })) continue;
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
  options.model.named_by =
      &command
           .Add("-m,--model,MODEL MODEL", options.models,
                "Files or names; the first one is what the others are held against")
           .Required();
  command.Add("-f,--file FILE", options.text,
              "A text: how well it is predicted is compared, too; - for stdin");
  command.Add(
      "-c,--ctx-size N", options.window, {0, kMaxTokens},
      "Tokens of a window of the text (default: 512); 0: as many as the model was trained for");
  command.Add("--chunks N", options.most_windows, {1, kMaxTokens},
              "Windows at most (default: all)");
  command
      .Add("-p,--n-prompt N", options.n_prompt, {0, kMaxTokens},
           "Tokens of prompt to read; 0: none")
      .ShowDefault();
  command.Add("-n,--n-gen N", options.n_gen, {0, kMaxTokens}, "Tokens to generate; 0: none")
      .ShowDefault();
  command
      .Add("-r,--repetitions N", options.repetitions, {1, 1000}, "How often; the median is shown")
      .ShowDefault();
  AddThreadsFlag(command, options.model.n_threads);
  options.model.AddCpuFlag(command);
  options.model.AddOverrideFlag(command);
  command.Add("--plot FILE", options.plot, "Draw the table").Writes();
  command.Add("--json", options.json, "Print one JSON object");
}

}  // namespace cli
