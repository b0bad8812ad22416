// Measured costs and acceptance rates, and the number of drafts that follows from them.
#include "engine/draft/controller.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace engine {
namespace {

// The assumed cost of a further token, relative to a pass of one token, until it is measured (0.02
// to 0.2).
constexpr double kGuess = 0.06;

// The number of measurements in a mean, and how fast passes of other sizes discount them.
constexpr double kMemory = 16;
constexpr double kForgetting = 1 - 1 / 256.0;
// Interpolation from other sizes counts as this many measurements.
constexpr double kOthers = 0.5;
// Passes with one token before the first drafts (free drafts; other drafts), to compare with. The
// very first pass has cold caches and may take several times as long: it counts little.
constexpr size_t kPlainBeforeFree = 2, kPlainBeforeOthers = 4;
constexpr double kColdWeight = 0.03;

// The numbers of passes in a draft model's first trial, in its longest (a trial without a loss
// doubles the next one), and in the shortest. The shortest ends early after losing more than
// kMaxLoss tokens, or turns a model on again.
constexpr double kFirstTrial = 8, kLongestTrial = 64, kShortTrial = 3;
constexpr double kMaxLoss = 2;

// One disturbed pass must not flip the choice.
constexpr double kMaxChange = 2;

// The number of drafts in the statistics of each place, and the weight of a guess.
constexpr double kDraftMemory = 24;
constexpr double kGuessWeight = 3;

// The share of time that exploration may cost.
constexpr double kTrying = 0.004;
constexpr double kMaxTries = 4;

}  // namespace

void PassCosts::Record(size_t n_tokens, double seconds) {
  for (Measured& measured : by_size_) measured.weight *= kForgetting;
  Measured& measured = by_size_[n_tokens];
  if (measured.weight > 1) {
    const double before = measured.seconds;
    seconds = std::clamp(seconds, before / kMaxChange, before * kMaxChange);
  }
  const bool is_known = measured.weight > kMemory / 2;
  measured.weight = std::min(measured.weight + 1, kMemory);
  const double mean = measured.seconds + (seconds - measured.seconds) / measured.weight;
  // A longer text or a busy machine makes passes of all sizes slower. (The product of a size's
  // factors is its last mean divided by its first: noise does not add up.)
  if (is_known) {
    for (Measured& other : by_size_) other.seconds *= mean / measured.seconds;
  }
  measured.seconds = mean;
  if (std::exchange(is_first_, false)) measured.weight = kColdWeight;
}

// The very first pass has one token, so size 1 is always measured.
double PassCosts::Between(size_t n_tokens) const {
  size_t below = n_tokens - 1, above = n_tokens + 1;
  while (below > 1 && by_size_[below].weight == 0) --below;
  while (above <= kMaxDecodeTokens && by_size_[above].weight == 0) ++above;
  const double one = by_size_[1].seconds, at = by_size_[below].seconds;
  double slope = kGuess * one;
  if (above <= kMaxDecodeTokens) {
    slope = (by_size_[above].seconds - at) / static_cast<double>(above - below);
  } else if (below > 1) {
    slope = std::max(slope, (at - one) / static_cast<double>(below - 1));
  }
  return at + slope * static_cast<double>(n_tokens - below);
}

double PassCosts::Of(size_t n_tokens) const {
  const Measured& measured = by_size_[n_tokens];
  if (n_tokens == 1) return measured.seconds;
  return (measured.weight * measured.seconds + kOthers * Between(n_tokens)) /
         (measured.weight + kOthers);
}

void Acceptance::Record(size_t place, bool right) {
  if (place == 0) {  // discounts old drafts also at rarely reached places
    constexpr double kKept = 1 - 1 / kDraftMemory;
    for (Seen& seen : places_) seen = {seen.right * kKept, seen.all * kKept};
  }
  places_[place].right += right ? 1 : 0;
  places_[place].all += 1;
}

std::array<double, kMaxDrafts> Acceptance::All() const {
  std::array<double, kMaxDrafts> all;
  double p = guess_;  // prior of a place: the previous place
  for (size_t i = 0; i < kMaxDrafts; ++i) {
    p = (places_[i].right + kGuessWeight * p) / (places_[i].all + kGuessWeight);
    all[i] = p;
  }
  return all;
}

size_t Confidence::Tenth(double probability) {
  return static_cast<size_t>(std::clamp(probability, 0.0, 0.999) * 10);
}

void Confidence::Record(double probability, bool right) {
  constexpr double kKept = 1 - 1 / 64.0;
  Seen& seen = tenths_[Tenth(probability)];
  seen = {seen.right * kKept + (right ? 1 : 0), seen.all * kKept + 1};
}

double Confidence::Of(double probability) const {
  const Seen& seen = tenths_[Tenth(probability)];
  return (seen.right + kGuessWeight * probability) / (seen.all + kGuessWeight);
}

DraftController::DraftController(const std::vector<KindGuess>& guesses, size_t max_drafts)
    : max_drafts_(std::min(max_drafts, kMaxDrafts)) {
  for (const KindGuess& guess : guesses) {
    kinds_.push_back({Acceptance(guess.acceptance), guess.costs_nothing, guess.cost});
  }
}

DraftController::Choice DraftController::Best(const Kind& kind, size_t available,
                                              size_t n_known) const {
  const bool costs_unknown = !kind.costs_nothing && kind.n_measured == 0;
  const size_t max_drafts = std::min({available, max_drafts_, costs_unknown ? 1 : kMaxDrafts});
  const std::array<double, kMaxDrafts> acceptance = kind.acceptance.All();
  Choice best;
  // The expected number of tokens of a pass with n drafts; the probability that all n are right.
  double tokens = static_cast<double>(n_known), reached = 1;
  for (size_t n = 0; n <= max_drafts; ++n) {
    if (n > 0) tokens += reached *= acceptance[n - 1];
    const double seconds = costs_.Of(n_known + n) + static_cast<double>(n) * DraftSeconds(kind);
    if (tokens / seconds > best.tokens_per_s) best = {n, tokens / seconds, n};
  }
  return best;
}

// Costs and acceptance are slow-moving means and do not include a draft model's effect on the
// caches, so measured time decides. A loss turns the kind off. Then drafts are only tried, as far
// as the budget allows, until a few have shown a profit.
void DraftController::Judge(Kind& kind) const {
  Trial& trial = kind.trial;
  if (trial.seconds > 0) {
    const double profit = trial.tokens - trial.seconds / costs_.Of(1);
    trial = {.n = trial.n + 1,
             .profit = trial.profit + profit,
             .squares = trial.squares + profit * profit};
  }
  const double mean = trial.profit / std::max(trial.n, 1.0);
  const double error = std::sqrt(std::max(trial.squares - trial.n * mean * mean, 0.0)) /
                       std::max(trial.n, 1.0);  // the error of the mean
  if (kind.is_off) {
    if (trial.n < kShortTrial || (mean <= 0 && trial.n < kFirstTrial)) return;
    kind.is_off = mean <= 0;
    kind.trial_length = kFirstTrial;
  } else {
    const bool is_short = trial.n >= kShortTrial && trial.profit < -kMaxLoss;
    if (trial.n < kind.trial_length && !is_short) return;
    kind.is_off = mean + error < 0;
    kind.trial_length = kind.is_off ? kFirstTrial : std::min(2 * kind.trial_length, kLongestTrial);
  }
  trial = {};
}

DraftController::Choice DraftController::Choose(size_t kind, size_t available, size_t n_known) {
  Kind& of = kinds_[kind];
  if (n_plain_ < (of.costs_nothing ? kPlainBeforeFree : kPlainBeforeOthers)) return {};
  Choice best = Best(of, available, n_known);
  if (!of.costs_nothing) {
    const double one = costs_.Of(1);
    Judge(of);
    const double known = costs_.Of(n_known);
    if (of.is_off) best = {0, static_cast<double>(n_known) / known, 0};
    // Drafts would not pay even if all were right.
    if (best.n == 0 && costs_.Of(n_known + 1) + DraftSeconds(of) > known + one) return best;
    if (best.n > 0 && of.n_measured > 0) best.max_n = std::min(available, max_drafts_);
  }
  // Trying more drafts shows whether they are right, and the cost of longer passes.
  const size_t max_drafts = std::min(available, max_drafts_);
  size_t tried = std::min(best.n + 1, max_drafts);
  if (costs_.IsFresh(n_known + tried)) tried = std::min(2 * best.n, max_drafts);
  if (best.n == 0) tried = std::min<size_t>(1, max_drafts);
  if (tried <= best.n || (best.n > 0 && costs_.IsFresh(n_known + tried))) return best;
  const double more = static_cast<double>(tried - best.n) * DraftSeconds(of);
  const double loss = costs_.Of(n_known + tried) - costs_.Of(n_known + best.n) + more;
  if (budget_ < loss) return best;
  budget_ -= loss;
  return {tried, best.tokens_per_s, std::max(tried, best.max_n)};
}

bool DraftController::WantsMore(Chain& chain, double probability) const {
  const Kind& kind = kinds_[chain.kind];
  const double before = chain.reached.empty() ? 1 : chain.reached.back();
  chain.reached.push_back(before * kind.confidence.Of(probability));
  const size_t n = chain.reached.size(), n_pass = chain.n_known + n;
  if (n >= kMaxDrafts || n_pass >= kMaxDecodeTokens) return false;
  const double next = chain.reached.back() * kind.acceptance.All()[n];
  const double cost = DraftSeconds(kind) + costs_.Of(n_pass + 1) - costs_.Of(n_pass);
  return next > cost * chain.tokens_per_s;
}

size_t DraftController::WorthReading(const Chain& chain) const {
  size_t n = chain.reached.size();
  for (; n > 0; --n) {
    const double more = costs_.Of(chain.n_known + n) - costs_.Of(chain.n_known + n - 1);
    if (chain.reached[n - 1] > more * chain.tokens_per_s) break;
  }
  return n;
}

void DraftController::RecordDrafting(size_t kind, size_t n, double seconds) {
  if (n == 0) return;
  Kind& of = kinds_[kind];
  drafted_ = &of;
  if (!std::exchange(of.has_begun, true)) return;  // the first time includes reading the prompt
  of.trial.seconds += seconds;
  double one = seconds / static_cast<double>(n);
  if (of.n_measured > 0) one = std::min(one, kMaxChange * of.draft_seconds);
  of.n_measured = std::min(of.n_measured + 1, kMemory);
  of.draft_seconds += (one - of.draft_seconds) / of.n_measured;
}

void DraftController::RecordPass(size_t n_tokens, double seconds) {
  costs_.Record(n_tokens, seconds);
  if (n_tokens == 1) ++n_plain_;
  if (Kind* const kind = std::exchange(drafted_, nullptr)) {
    kind->trial.seconds += seconds;
    kind->trial.tokens += 1;
  }
  budget_ = std::min(budget_ + kTrying * seconds, kMaxTries * costs_.Of(1));
}

}  // namespace engine
