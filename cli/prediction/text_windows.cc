// Cuts a text into windows and runs each through a session.
#include "cli/prediction/text_windows.h"

#include "cli/command.h"
#include "cli/output/text.h"
#include "cli/terminal/signals.h"

namespace cli {

using tokenizer::TokenId;

size_t WindowFor(const engine::Config& config, size_t requested) {
  constexpr size_t kWindow = 512;
  if (requested == engine::kDefaultContext) return std::min(kWindow, config.context_length);
  return engine::ContextOf(config, requested);
}

std::vector<TokenId> TextWindows::Window(size_t i, const tokenizer::Vocabulary& vocab) const {
  const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(i * length);
  std::vector<TokenId> window(begin, begin + static_cast<std::ptrdiff_t>(length));
  if (vocab.add_bos && vocab.bos >= 0) window[0] = vocab.bos;
  return window;
}

TextWindows CutText(const engine::Model& model, const std::string& file, std::string_view text,
                    size_t length, size_t most) {
  if (length < 4) throw UsageError("-c: expected a window of at least 4 tokens, found ", length);
  const std::function<bool()> should_stop = Interrupted;
  TextWindows windows = {.ids = model.tokenizer->Encode(text, {.should_stop = &should_stop}),
                         .length = length};
  if (windows.ids.size() < length) {
    throw engine::Error(file, ": has ", Counted(windows.ids.size(), "token"),
                        ": expected at least a window of ", length,
                        "; -c sets its size, 4 or more");
  }
  if (const size_t training = model.config.context_length; length > training) {
    Complain("note: -c: windows of " + std::to_string(length) +
             " tokens, but this model read at most " + std::to_string(training) +
             " at a time in training");
  }
  windows.n_tokens = windows.ids.size();
  const size_t count = most == 0 ? windows.count() : std::min(most, windows.count());
  windows.ids.resize(count * length);
  return windows;
}

engine::Session::Progress Watch(ProgressLine& line, size_t before, size_t total) {
  return [&line, before, total](size_t done) {
    if (Interrupted()) throw engine::Error("interrupted");
    line.Update(before + done, total);
    return true;
  };
}

void ReadIds(engine::Session& session, std::span<const TokenId> ids, size_t first,
             const engine::Session::Progress& progress, const PredictionVisitor& visit) {
  const size_t n_vocab = session.model().tokenizer->vocab().size();
  const size_t row = session.model().config.vocab_size;
  session.Rewind(0);
  const auto take = [&](size_t begin, size_t n, std::span<const float> rows) {
    for (size_t t = std::max(begin, first - 1); t < std::min(begin + n, ids.size() - 1); ++t)
      visit(rows.subspan((t - begin) * row, n_vocab), ids[t + 1]);
  };
  session.PrefillAllLogits(ids, take, progress);
}

void ReadWindows(engine::Session& session, const TextWindows& windows,
                 const PredictionVisitor& visit) {
  ProgressLine progress("reading");
  for (size_t i = 0; i < windows.count(); ++i) {
    const std::vector<TokenId> ids = windows.Window(i, session.model().tokenizer->vocab());
    ReadIds(session, ids, windows.length - windows.counted(),
            Watch(progress, i * windows.length, windows.ids.size()), visit);
  }
}

Estimate Mean::Get() const {
  if (n_ == 0) return {};
  const auto n = static_cast<double>(n_);
  const double mean = sum_ / n, variance = sum_of_squares_ / n - mean * mean;
  return {mean, std::sqrt(std::max(variance, 0.0) / std::max(n - 1, 1.0))};
}

Estimate Mean::Exp() const {
  const Estimate mean = Get();
  return {std::exp(mean.value), std::exp(mean.value) * mean.error};
}

}  // namespace cli
