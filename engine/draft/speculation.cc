// Chooses the drafter that proposes, and learns from accepted and rejected drafts.
#include "engine/draft/speculation.h"

#include <algorithm>
#include <utility>

#include "engine/stopwatch.h"

namespace engine {
namespace {

using tokenizer::TokenId;

// Guessed acceptance of first drafts: for lookup's kinds, for models. Dozens of drafts outweigh it.
constexpr std::array kFreeGuesses = {0.3, 0.5, 0.6, 0.75, 0.85};
constexpr double kModelGuess = 0.6;

// A draft model's first draft touches all of its memory for the first time, which takes
// milliseconds. It waits until that is a hundredth of the time spent.
constexpr double kBeforeModels = 0.25;

std::vector<DraftController::KindGuess> Guesses(
    const std::vector<std::shared_ptr<Drafter>>& drafters) {
  std::vector<DraftController::KindGuess> guesses;
  for (const auto& drafter : drafters) {
    for (size_t i = 0; i < drafter->n_kinds(); ++i) {
      const bool costs_nothing = drafter->costs_nothing();
      guesses.push_back(
          {costs_nothing ? kFreeGuesses[std::min(i, kFreeGuesses.size() - 1)] : kModelGuess,
           costs_nothing, drafter->cost()});
    }
  }
  return guesses;
}

}  // namespace

DraftCounts DraftCounts::operator-(const DraftCounts& before) const {
  return {drafted - before.drafted,
          accepted - before.accepted,
          n_tokens - before.n_tokens,
          n_passes - before.n_passes,
          n_single_passes - before.n_single_passes,
          seconds - before.seconds,
          single_seconds - before.single_seconds};
}

std::optional<double> DraftCounts::Gain() const {
  constexpr uint64_t kEnough = 8;
  if (n_single_passes < kEnough) return {};
  return static_cast<double>(n_tokens) * single_seconds / static_cast<double>(n_single_passes) /
         seconds;
}

Speculation::Speculation(std::vector<std::shared_ptr<Drafter>> drafters,
                         const DraftOptions& options, size_t vocab_size)
    : options_(options), vocab_size_(vocab_size), controller_(Guesses(drafters), options.max) {
  size_t next_kind = 0;
  for (auto& drafter : drafters) {
    const size_t n_kinds = drafter->n_kinds();
    sources_.push_back({std::move(drafter), std::exchange(next_kind, next_kind + n_kinds), {}});
  }
}

void Speculation::Make(Source& source, size_t kind, std::span<const TokenId> text, size_t n) {
  source.watch.kind = kind;
  source.watch.place = 0;
  source.watch.drafts.clear();
  source.watch.probabilities.clear();
  source.watch.n_read = 0;
  source.drafter->Draft(text, n, source.watch.drafts);
}

std::span<const TokenId> Speculation::Propose(std::span<const TokenId> text, size_t room,
                                              size_t n_known) {
  counts_.drafted += n_known - 1;
  counts_.accepted += n_known - 1;
  const Stopwatch watch;
  const size_t max_drafts = std::min(room, options_.max);
  drafts_.clear();
  // The first pass has one token even with a fixed number: other passes are compared with it.
  const bool is_fixed = options_.fixed && controller_.costs().Of(1) > 0;
  Source* best_source = nullptr;
  size_t best_kind = 0;
  DraftController::Choice best;
  for (Source& source : sources_) {
    if (!is_fixed && !source.drafter->costs_nothing() && counts_.seconds < kBeforeModels) continue;
    const std::optional<size_t> found = source.drafter->FindDrafts(text);
    if (!found) continue;
    const size_t kind = source.first_kind + *found;
    const DraftController::Choice choice =
        is_fixed ? DraftController::Choice{std::min(*options_.fixed, max_drafts), 1, 0}
                 : controller_.Choose(kind, max_drafts, n_known);
    if (best_source == nullptr || choice.tokens_per_s > best.tokens_per_s) {
      best_source = &source;
      best_kind = kind;
      best = choice;
    }
    // Drafts that cost nothing are compared with the text whether a pass runs them or not.
    if (source.drafter->costs_nothing() && !source.watch.is_on())
      Make(source, kind, text, kMaxDrafts);
  }
  if (best_source == nullptr || best.n == 0) {
    drafting_seconds_ = watch.Seconds();
    return {};
  }
  if (best_source->drafter->costs_nothing()) {
    best_source->drafter->Draft(text, best.n, drafts_);
  } else {
    const Stopwatch drafting;
    Watch& watch_of = best_source->watch;
    Drafter& drafter = *best_source->drafter;
    DraftController::Chain chain = {best_kind, n_known, best.tokens_per_s};
    const bool asks = !is_fixed && drafter.knows_confidence();
    if (asks) {
      best.n = std::max(best.n, best.max_n);
      drafter.wants_more = [&](double probability) {
        watch_of.probabilities.push_back(probability);
        return controller_.WantsMore(chain, probability);
      };
    }
    Make(*best_source, best_kind, text, best.n);
    drafter.wants_more = nullptr;
    drafts_ = watch_of.drafts;
    controller_.RecordDrafting(best_kind, drafts_.size(), drafting.Seconds());
    // If a chain ended early, its last drafts may be too unlikely to be worth reading.
    if (asks && chain.reached.size() == drafts_.size()) {
      drafts_.resize(controller_.WorthReading(chain));
    }
  }
  // The caller's own drafter may return more drafts, and ids outside the vocabulary.
  drafts_.resize(std::min(drafts_.size(), best.n));
  const auto is_none = [&](TokenId id) { return id < 0 || static_cast<size_t>(id) >= vocab_size_; };
  drafts_.erase(std::ranges::find_if(drafts_, is_none), drafts_.end());
  best_source->watch.n_read = drafts_.size();
  counts_.drafted += drafts_.size();
  drafting_seconds_ = watch.Seconds();
  return drafts_;
}

void Speculation::RecordPass(size_t n_tokens, double seconds, bool has_all_logits) {
  if (has_all_logits) controller_.RecordPass(n_tokens, seconds);
  ++counts_.n_passes;
  if (n_tokens == 1 && has_all_logits) {
    ++counts_.n_single_passes;
    counts_.single_seconds += seconds;
  }
  counts_.seconds += seconds + std::exchange(drafting_seconds_, 0);
}

void Speculation::Add(TokenId id, bool was_draft) {
  ++counts_.n_tokens;
  if (was_draft) ++counts_.accepted;
  for (Source& source : sources_) {
    Watch& watch = source.watch;
    if (!watch.is_on()) continue;
    const bool right = watch.drafts[watch.place] == id;
    const bool was_read = watch.place < watch.n_read;
    const double probability =
        watch.place < watch.probabilities.size() ? watch.probabilities[watch.place] : -1;
    controller_.RecordCheck(watch.kind, watch.place, right, was_read, probability);
    watch.place = right ? watch.place + 1 : watch.drafts.size();
  }
}

void Speculation::Observe(std::span<const TokenId> tokens, size_t first, const float* x) {
  for (Source& source : sources_) source.drafter->Observe(tokens, first, x);
}

void Speculation::Undo(size_t n) {
  for (Source& source : sources_) source.drafter->Truncate(n);
}

void Speculation::Truncate(size_t n) {
  Undo(n);
  for (Source& source : sources_) {
    source.watch.drafts.clear();
    source.watch.place = 0;
  }
}

}  // namespace engine
