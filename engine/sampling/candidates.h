// The tokens that may come next, with their logits. The steps of sampling (steps.h) narrow this
// list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace engine {

struct Candidate {
  tokenizer::TokenId id;
  float logit;
};

// The order of candidates: by falling logit, and by id if logits are equal. A lambda, so that
// sorting inlines it.
inline constexpr auto MoreLikely = [](const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

// Makes a logit comparable: replaces NaN and infinity by finite numbers.
float Comparable(float logit);

class Candidates {
 public:
  Candidates();
  // Starts anew with a row of logits, one for each id. In `allowed`, bit id % 64 of word id / 64
  // says whether the id may be chosen; an empty `allowed` allows every id. Both must stay valid
  // until the next Assign(). Assign() copies nothing: changed logits are stored separately
  // (changes_), and a list of candidates is made when a step first needs one, or at once if few ids
  // are allowed.
  void Assign(std::span<const float> logits, std::span<const uint64_t> allowed = {});

  size_t size() const { return is_row_ ? n_in_row_ : items_.size(); }
  std::span<const Candidate> items() { return List(); }
  Candidate& operator[](size_t i) { return List()[i]; }

  // Drops candidates whose logit is NaN or infinite; returns whether there were any. Call it only
  // directly after Assign().
  bool DropBroken();
  // Adds to the logits of these ids (ascending), and drops candidates whose logit becomes infinite.
  // Call it only while all logits are finite and the candidates are in the order of ids.
  void AddBiases(std::span<const std::pair<tokenizer::TokenId, float>> biases);
  // The most likely candidate; if several are equally likely, the one with the lowest id.
  Candidate Best();
  // Puts the n most likely candidates first, in the order of MoreLikely.
  void SortTop(size_t n);
  // Puts the candidates with at least this logit first, in the order of MoreLikely. Returns how
  // many candidates are in order.
  size_t SortAtLeast(float min_logit);
  // Drops all but the first n candidates. Call it only while these are in order (SortTop,
  // SortAtLeast).
  void Truncate(size_t n);
  // Keeps the n most likely candidates, in order.
  void KeepTop(size_t n);
  // Drops candidates with a smaller logit.
  void KeepAtLeast(float min_logit);
  template <class Predicate>
  void RemoveIf(Predicate predicate) {
    std::erase_if(List(), predicate);
    n_sorted_ = 0;
  }
  // Lets function(candidate) change every logit.
  template <class Function>
  void Change(Function function) {
    for (Candidate& c : List()) function(c);
    n_sorted_ = 0;
  }
  // Calls function(candidate) for candidates whose id is the id(element) of an element of `sorted`,
  // where ids ascend. While candidates are in the order of ids, this takes time in proportion to
  // the number of elements, not to the vocabulary. Otherwise it calls function for every candidate.
  template <class Range, class Id, class Function>
  void ChangeListed(const Range& sorted, Id id, Function function) {
    if (!by_id_) return Change(function);
    if (is_row_) return ChangeRow(sorted, id, function);
    const Candidate* last = nullptr;
    for (const auto& element : sorted) {
      const tokenizer::TokenId wanted = std::invoke(id, element);
      const auto found = std::ranges::lower_bound(items_, wanted, {}, &Candidate::id);
      if (found == items_.end() || found->id != wanted || &*found == last) continue;
      function(*found);
      last = &*found;
    }
    n_sorted_ = 0;
  }
  // The sum of exp(logit - max), where max is the largest logit.
  double SumOfExp(float max);
  // softmax(logits), in the candidates' order. The next call reuses the buffer.
  std::span<const double> Probabilities();

  // These serve a step that sorts candidates by another number. Ranking() is a buffer with an entry
  // per candidate, which the step fills and sorts. KeepRanked() then keeps the candidates of the
  // first n entries, in their old order.
  struct Ranked {
    double distance;
    double probability;
    size_t index;  // the candidate's index
  };
  std::span<Ranked> Ranking();
  void KeepRanked(size_t n);

 private:
  std::vector<Candidate>& List();
  // ChangeListed() while there is a row: merges these changes with earlier ones.
  template <class Range, class Id, class Function>
  void ChangeRow(const Range& sorted, Id id, Function function) {
    changes_.swap(earlier_);
    changes_.clear();
    auto earlier = earlier_.begin();
    for (const auto& element : sorted) {
      Candidate c = {std::invoke(id, element), 0};
      if (!IsInRow(c.id)) continue;
      if (!changes_.empty() && changes_.back().id == c.id) continue;
      while (earlier != earlier_.end() && earlier->id < c.id) changes_.push_back(*earlier++);
      const bool again = earlier != earlier_.end() && earlier->id == c.id;
      c.logit = again ? (earlier++)->logit : row_[static_cast<size_t>(c.id)];
      if (c.logit != kDropped) function(c);
      changes_.push_back(c);
      NoteChanged(c);
    }
    changes_.insert(changes_.end(), earlier, earlier_.end());
  }
  // Whether the row has this id and it is allowed. It may have been dropped.
  bool IsInRow(tokenizer::TokenId id) const;
  void NoteChanged(Candidate changed);
  bool SearchBest(size_t first, std::span<const float> run);
  void TakeBest(Candidate candidate);
  // Calls run(id, logits) for each run of allowed, unchanged logits, whose first logit belongs to
  // this id, and change(candidate) for each change, in the order of ids.
  template <class Run, class Changed>
  void EachPart(Run run, Changed change) const;

  // The candidates are either a row with a logit for each id, or a list, items_.
  bool is_row_ = false;
  std::span<const float> row_;
  std::span<const uint64_t> allowed_;
  std::vector<Candidate> changes_, earlier_;  // logits that differ from the row's, by id
  static constexpr float kDropped = -std::numeric_limits<float>::infinity();  // in changes_
  size_t n_in_row_ = 0;            // the ids that are allowed and not dropped
  std::optional<Candidate> best_;  // the best of the row, if it is known
  std::vector<Candidate> items_;
  size_t n_sorted_ = 0;        // how many items at the front are sorted
  bool by_id_ = true;          // items are in the order of ids
  std::vector<float> logits_;  // the items' logits, side by side for kernels
  std::vector<double> probabilities_;
  std::vector<Ranked> ranking_;
};

}  // namespace engine
