// A text in windows, each read as a text of its own: the input of perplexity and divergence.
//
// The text is cut into equal windows, as llama-perplexity does. Only the second half of each
// counts, so that a token is predicted from at least half a window; an incomplete window does not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/terminal.h"
#include "engine/error.h"
#include "engine/model/model.h"
#include "engine/session/session.h"

namespace cli {

struct TextWindows {
  std::vector<tokenizer::TokenId> ids;  // [count()][length]
  size_t length = 0;                    // tokens of a window
  size_t n_tokens = 0;                  // tokens of the text, including an incomplete window

  size_t count() const { return ids.size() / length; }
  // The tokens of window i; if the vocabulary begins texts with a token, it replaces the first.
  std::vector<tokenizer::TokenId> Window(size_t i, const tokenizer::Vocabulary& vocab) const;
  // Predictions per window that count: after tokens length / 2 .. length - 2.
  size_t counted() const { return length - 1 - length / 2; }
};

// The length of a window for -c; by default 512 tokens, at most the model's training length.
size_t WindowFor(const engine::Config& config, size_t requested);

// Cuts the text of a file into at most `most` windows (0: all). Throws engine::Error if a window is
// shorter than 4 tokens or the text is shorter than a window. Prints a note if windows are longer
// than the model's training length.
TextWindows CutText(const engine::Model& model, const std::string& file, std::string_view text,
                    size_t length, size_t most);

// Called for every prediction that counts, in order: the logits, [vocabulary], the actual token.
using PredictionVisitor =
    std::function<void(std::span<const float> logits, tokenizer::TokenId next)>;

// Shows the tokens read of `total`, counting `before` tokens of earlier windows. Throws
// engine::Error after Ctrl-C.
engine::Session::Progress Watch(ProgressLine& line, size_t before, size_t total);
// Reads ids as a text, and visits the predictions of ids[first] (first >= 1) and later ids.
void ReadIds(engine::Session& session, std::span<const tokenizer::TokenId> ids, size_t first,
             const engine::Session::Progress& progress, const PredictionVisitor& visit);
// Reads all windows, with a progress line. Throws engine::Error if Ctrl-C ends it.
void ReadWindows(engine::Session& session, const TextWindows& windows,
                 const PredictionVisitor& visit);

// Throws engine::Error, "WHAT are not numbers: its weights are broken", if a number is not finite.
template <class Numbers>
void CheckFinite(const Numbers& numbers, const std::string& what) {
  if (std::ranges::all_of(numbers, [](auto x) { return std::isfinite(x); })) return;
  throw engine::Error(what, " are not numbers: its weights are broken");
}

// A mean and its standard error, as if the values were independent.
struct Estimate {
  double value = 0, error = 0;
};

// Sums of values, and of their squares.
class Mean {
 public:
  void Add(double value) {
    ++n_;
    sum_ += value;
    sum_of_squares_ += value * value;
  }
  size_t n() const { return n_; }
  // 0 if there are no values.
  Estimate Get() const;
  // exp(mean) of -ln(probability): the perplexity.
  Estimate Exp() const;

 private:
  size_t n_ = 0;
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace cli
