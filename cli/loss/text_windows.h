// A text in windows, each read as if it were a text of its own: what perplexity and divergence are
// measured on.
//
// The text is cut into windows of equal length. Of every window the second half counts, so that
// each token is predicted from at least half a window; what is left at the end of the text does
// not. llama-perplexity does the same.
#ifndef PRONK_CLI_LOSS_TEXT_WINDOWS_H_
#define PRONK_CLI_LOSS_TEXT_WINDOWS_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/model.h"
#include "engine/session/session.h"

namespace cli {

struct TextWindows {
  std::vector<tokenizer::TokenId> ids;  // [count()][length]
  size_t length = 0;                    // tokens of a window
  size_t n_tokens = 0;                  // of the text, with what is left at its end

  size_t count() const { return ids.size() / length; }
  // The tokens of window i. Where the vocabulary begins texts with a token, the window's first one
  // gives way to it.
  std::vector<tokenizer::TokenId> Window(size_t i, const tokenizer::Vocabulary& vocab) const;
  // Predictions of a window that count: those after its tokens length / 2 .. length - 2.
  size_t counted() const { return length - 1 - length / 2; }
};

// The length of a window where nobody says: 512 tokens, or what the model was trained for.
size_t DefaultWindow(const engine::Config& config);

// Cuts the text of a file into windows, `most` of them at most (0: all). Throws engine::Error where
// a window is shorter than 4 tokens or there is less than one.
TextWindows CutText(const engine::Model& model, const std::string& file, std::string_view text,
                    size_t length, size_t most);

// Called for every prediction that counts, in the text's order: the logits, [vocabulary], and the
// token that came.
using PredictionVisitor =
    std::function<void(std::span<const float> logits, tokenizer::TokenId next)>;

// Reads window i.
void ReadWindow(engine::Session& session, const TextWindows& windows, size_t i,
                const PredictionVisitor& visit);
// Reads all windows, with a progress line. Throws engine::Error where Ctrl-C ends it.
void ReadWindows(engine::Session& session, const TextWindows& windows,
                 const PredictionVisitor& visit);

// ln(sum(exp(logits))).
double LogSumExp(std::span<const float> logits);

// A mean, and one standard error of it, as if the values were independent.
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
  // Of no values, 0.
  Estimate Get() const;
  // exp(mean), of surprises -ln(probability): the perplexity.
  Estimate Exp() const;

 private:
  size_t n_ = 0;
  double sum_ = 0, sum_of_squares_ = 0;
};

}  // namespace cli

#endif  // PRONK_CLI_LOSS_TEXT_WINDOWS_H_
