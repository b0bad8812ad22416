// DraftController: how many drafts to read with a token, from what passes cost and how often drafts
// were right. It knows nothing of models; simulated costs test it.
//
// A pass of 1 + n tokens takes time t(1 + n) and moves the text on by 1 + a_1 + a_1 a_2 + ... +
// a_1 ... a_n tokens, where a_i is how often the i-th draft is right if those before it are. The
// best n has the most tokens per second; with t(1 + n) = t(1) (1 + c n) and the same a for all,
// a first draft pays where a > c.
#ifndef PRONK_ENGINE_DRAFT_CONTROLLER_H_
#define PRONK_ENGINE_DRAFT_CONTROLLER_H_

#include <array>
#include <cstddef>
#include <vector>

namespace engine {

// Tokens that a pass may have: as many as have the same bits together as alone
// (kernels/matmul/matmul.h).
inline constexpr size_t kMaxPassTokens = 16;
inline constexpr size_t kMaxDrafts = kMaxPassTokens - 1;

// The time of a pass by its tokens, as it was measured lately. Sizes that were not measured lie on
// lines between those that were.
class PassCosts {
 public:
  void Tell(size_t n_tokens, double seconds);
  // 1 to kMaxPassTokens tokens.
  double Of(size_t n_tokens) const;
  // Whether such a pass was measured not long ago.
  bool IsFresh(size_t n_tokens) const { return by_size_[n_tokens].weight >= 1; }

 private:
  struct Measured {
    double seconds = 0;  // a mean
    double weight = 0;   // how many measurements stand behind it, less those long ago
  };
  double Between(size_t n_tokens) const;  // by what is known of other sizes

  std::array<Measured, kMaxPassTokens + 1> by_size_ = {};
};

// How often drafts of one kind were right, by their place among those of a pass.
class Acceptance {
 public:
  explicit Acceptance(double guess) : guess_(guess) {}
  // The draft at `place` (from 0) was right or not; those before it were.
  void Tell(size_t place, bool right);
  // The probability of that, for each place.
  std::array<double, kMaxDrafts> All() const;

 private:
  struct Seen {
    double right = 0, all = 0;  // with less weight the longer ago
  };
  double guess_;
  std::array<Seen, kMaxDrafts> places_ = {};
};

class DraftController {
 public:
  struct KindGuess {
    double acceptance;  // how often its first draft may be right
    bool is_free;       // drafts take no time to make
  };
  // One guess for each kind of drafts.
  DraftController(const std::vector<KindGuess>& guesses, size_t max_drafts);

  struct Choice {
    size_t n = 0;             // drafts
    double tokens_per_s = 0;  // that are expected with them
  };
  // The best number of up to `available` drafts of a kind, 0 where none is best. Now and then it is
  // another one, to see whether things have changed.
  Choice Choose(size_t kind, size_t available);

  // What happened: n drafts of a kind took so long to make; a draft was right or not, those before
  // it having been; a pass of so many tokens took so long.
  void Drafted(size_t kind, size_t n, double seconds);
  void Checked(size_t kind, size_t place, bool right) {
    kinds_[kind].acceptance.Tell(place, right);
  }
  void Passed(size_t n_tokens, double seconds);

  const PassCosts& costs() const { return costs_; }

 private:
  struct Kind {
    Acceptance acceptance;
    bool is_free;
    bool has_begun = false;
    double draft_seconds = 0;  // of one, a mean
    double n_measured = 0;
  };
  Choice Best(const Kind& kind, size_t available) const;

  std::vector<Kind> kinds_;
  size_t max_drafts_;
  PassCosts costs_;
  double budget_ = 0;  // seconds that may be lost with trying
};

}  // namespace engine

#endif  // PRONK_ENGINE_DRAFT_CONTROLLER_H_
