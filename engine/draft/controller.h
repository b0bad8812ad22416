// DraftController: chooses the number of drafts in a pass, from the measured cost of passes and the
// acceptance rate. It knows nothing of models; tests simulate costs.
//
// A pass of 1 + n tokens takes time t(1 + n) and adds 1 + a_1 + a_1 a_2 + ... + a_1 ... a_n tokens
// to the text, where a_i is the probability that draft i is right if all earlier drafts are. The
// best n gives the most tokens per second. With t(1 + n) = t(1) (1 + c n) and the same a for every
// draft, a first draft pays if a > c.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "engine/pass/sequence_state.h"

namespace engine {

// The recently measured time of a pass by its number of tokens; other sizes are interpolated.
class PassCosts {
 public:
  void Record(size_t n_tokens, double seconds);
  // The estimated seconds of a pass of n_tokens tokens, 1 to kMaxDecodeTokens.
  double Of(size_t n_tokens) const;
  // Whether a pass of this size was measured recently.
  bool IsFresh(size_t n_tokens) const { return by_size_[n_tokens].weight >= 1; }

 private:
  struct Measured {
    double seconds = 0;  // a mean
    double weight = 0;   // the number of measurements, old ones discounted
  };
  double Between(size_t n_tokens) const;  // interpolated

  std::array<Measured, kMaxDecodeTokens + 1> by_size_ = {};
  bool is_first_ = true;  // no pass has been measured
};

// The acceptance rate of one kind of drafts, for each place in a pass.
class Acceptance {
 public:
  explicit Acceptance(double guess) : guess_(guess) {}
  // Records whether the draft at `place` (from 0) was right; all earlier drafts were.
  void Record(size_t place, bool right);
  // The probability of acceptance for each place.
  std::array<double, kMaxDrafts> All() const;

 private:
  struct Seen {
    double right = 0, all = 0;  // old ones discounted
  };
  double guess_;
  std::array<Seen, kMaxDrafts> places_ = {};
};

// How often drafts are right, for each tenth of the range of their model's probabilities.
class Confidence {
 public:
  void Record(double probability, bool right);
  double Of(double probability) const;

 private:
  struct Seen {
    double right = 0, all = 0;  // old ones discounted
  };
  static size_t Tenth(double probability);
  std::array<Seen, 10> tenths_ = {};
};

class DraftController {
 public:
  struct KindGuess {
    double acceptance;   // prior: how often the first draft is right
    bool costs_nothing;  // drafting takes no time
    double cost = 0;     // prior: the time of a draft, relative to a pass with one token
  };
  // guesses: one for each kind of drafts.
  DraftController(const std::vector<KindGuess>& guesses, size_t max_drafts);

  struct Choice {
    size_t n = 0;             // drafts
    double tokens_per_s = 0;  // expected
    size_t max_n = 0;         // drafts, if each is confident enough
  };
  // How many of `available` drafts of a kind pay off, often 0, in a pass that also reads n_known
  // tokens of the text. Sometimes returns another number, to measure it.
  Choice Choose(size_t kind, size_t available, size_t n_known = 1);

  // The drafts of a chain so far; reached[i] is the probability that drafts 0 to i are all right.
  struct Chain {
    size_t kind = 0, n_known = 1;
    double tokens_per_s = 0;
    std::vector<double> reached = {};
  };
  // Adds a draft to which its model gives this probability. Returns false if the next draft would
  // cost more than it gains: the time to make it, and a longer pass.
  bool WantsMore(Chain& chain, double probability) const;
  // How many of the chain's drafts are worth reading.
  size_t WorthReading(const Chain& chain) const;

  // Record measurements: the time of n drafts; whether a draft was right (as Acceptance::Record()),
  // whether a pass read it, and its model's probability if known; the time of a pass.
  void RecordDrafting(size_t kind, size_t n, double seconds);
  void RecordCheck(size_t kind, size_t place, bool right, bool was_read = true,
                   double probability = -1) {
    kinds_[kind].acceptance.Record(place, right);
    if (probability >= 0) kinds_[kind].confidence.Record(probability, right);
    kinds_[kind].trial.tokens += right && was_read ? 1 : 0;
  }
  void RecordPass(size_t n_tokens, double seconds);

  const PassCosts& costs() const { return costs_; }

 private:
  // Drafts that take time are judged by the clock, in trials of some passes. A pass's profit, in
  // tokens, is the number that it added to the text minus the number that plain passes add in the
  // same time, drafting included.
  struct Trial {
    double tokens = 0, seconds = 0;  // the last pass's, until it is settled
    double n = 0, profit = 0, squares = 0;
  };
  struct Kind {
    Acceptance acceptance;
    bool costs_nothing;
    double cost;
    Confidence confidence = {};
    bool has_begun = false;
    double draft_seconds = 0;  // the mean for one draft
    double n_measured = 0;
    Trial trial = {};
    double trial_length = 8;  // passes
    bool is_off = false;      // the last trial showed a loss
  };
  double DraftSeconds(const Kind& kind) const {
    return kind.n_measured > 0 ? kind.draft_seconds : kind.cost * costs_.Of(1);
  }
  Choice Best(const Kind& kind, size_t available, size_t n_known) const;
  void Judge(Kind& kind) const;

  std::vector<Kind> kinds_;
  size_t max_drafts_;
  PassCosts costs_;
  size_t n_plain_ = 0;       // passes with one token
  Kind* drafted_ = nullptr;  // the next pass has drafts of this kind, which take time
  double budget_ = 0;        // seconds that exploration may cost
};

}  // namespace engine
