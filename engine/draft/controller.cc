#include "engine/draft/controller.h"

#include <algorithm>
#include <utility>

namespace engine {
namespace {

// A first guess at a pass of n tokens, relative to one: measured 1.0 to 1.1 for two tokens and 1.3
// to 2 for eight (kernels/NOTEBOOK.md).
double Guess(size_t n_tokens) { return 1 + 0.06 * static_cast<double>(n_tokens - 1); }

// Means look back on so many measurements, and forget them over so many passes of other sizes.
constexpr double kMemory = 16;
constexpr double kForgetting = 1 - 1 / 256.0;
// What a size with one measurement tells about its neighbour, beside one's own measurement.
constexpr double kNeighbour = 0.05;
// One pass that was disturbed must not turn the choice around.
constexpr double kMostChange = 2;

// Of drafts, so many are remembered at each place; a guess counts as so many.
constexpr double kDraftMemory = 48;
constexpr double kGuessWeight = 1.5;

// Of the time, what may be lost with trying drafts that did not pay.
constexpr double kTrying = 0.004;
constexpr double kMostTries = 4;

}  // namespace

void PassCosts::Tell(size_t n_tokens, double seconds) {
  const double before = Of(n_tokens);
  if (before > 0) seconds = std::clamp(seconds, before / kMostChange, before * kMostChange);
  for (Measured& measured : by_size_) measured.weight *= kForgetting;
  Measured& measured = by_size_[n_tokens];
  measured.weight = std::min(measured.weight + 1, kMemory);
  measured.ratio += (seconds / Guess(n_tokens) - measured.ratio) / measured.weight;
}

double PassCosts::Of(size_t n_tokens) const {
  double sum = 0, weights = 0;
  for (size_t i = 1; i <= kMaxPassTokens; ++i) {
    const double distance = static_cast<double>(i > n_tokens ? i - n_tokens : n_tokens - i);
    const double nearness = i == n_tokens ? 1 : kNeighbour / (distance * distance);
    sum += by_size_[i].weight * nearness * by_size_[i].ratio;
    weights += by_size_[i].weight * nearness;
  }
  return weights == 0 ? 0 : Guess(n_tokens) * sum / weights;
}

void Acceptance::Tell(size_t place, bool right) {
  Seen& seen = places_[place];
  constexpr double kKept = 1 - 1 / kDraftMemory;
  seen.right = seen.right * kKept + (right ? 1 : 0);
  seen.all = seen.all * kKept + 1;
}

double Acceptance::At(size_t place) const {
  // A place of which little is known is like the one before it.
  double p = guess_;
  for (size_t i = 0; i <= place; ++i) {
    p = (places_[i].right + kGuessWeight * p) / (places_[i].all + kGuessWeight);
  }
  return p;
}

DraftController::DraftController(std::vector<double> guesses, size_t max_drafts)
    : max_drafts_(std::min(max_drafts, kMaxDrafts)) {
  for (const double guess : guesses) kinds_.push_back({Acceptance(guess)});
}

double DraftController::Rate(const Kind& kind, size_t n) const {
  double tokens = 1, reached = 1;
  for (size_t i = 0; i < n; ++i) {
    reached *= kind.acceptance.At(i);
    tokens += reached;
  }
  return tokens / (costs_.Of(1 + n) + static_cast<double>(n) * kind.draft_seconds);
}

DraftController::Choice DraftController::Best(size_t kind, size_t available) const {
  Choice best;
  if (costs_.Of(1) == 0) return best;  // nothing is known yet: read a token by itself
  const size_t most = std::min(available, max_drafts_);
  for (size_t n = 0; n <= most; ++n) {
    const double rate = Rate(kinds_[kind], n);
    if (rate > best.tokens_per_s) best = {n, rate};
  }
  return best;
}

DraftController::Choice DraftController::Choose(size_t kind, size_t available) {
  Choice best = Best(kind, available);
  if (best.n > 0 || available == 0 || best.tokens_per_s == 0 || max_drafts_ == 0) return best;
  // What a try would lose if the draft is wrong.
  const double loss = costs_.Of(2) - costs_.Of(1) + kinds_[kind].draft_seconds;
  if (budget_ < loss) return best;
  budget_ -= loss;
  return {1, best.tokens_per_s};
}

void DraftController::Drafted(size_t kind, size_t n, double seconds) {
  if (n == 0) return;
  double& mean = kinds_[kind].draft_seconds;
  const double one = seconds / static_cast<double>(n);
  mean = mean == 0 ? one : mean + (std::min(one, kMostChange * mean) - mean) / kMemory;
}

void DraftController::Passed(size_t n_tokens, double seconds) {
  costs_.Tell(n_tokens, seconds);
  budget_ = std::min(budget_ + kTrying * seconds, kMostTries * costs_.Of(1));
}

}  // namespace engine
