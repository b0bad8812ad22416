// The steps of sampling, which sampler.h chains: each narrows or reshapes the list of tokens that
// may come next. A step works on logits; probabilities are the softmax over what is left.
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

// Makes a logit comparable: no NaN or infinity.
float Comparable(float logit);

// Dividing logits by less than this could overflow a float.
inline constexpr float kColdest = 1e-6f;

class Candidates {
 public:
  // All tokens of a row of logits, in the order of their ids. The row is read where it is, so it
  // has to stay until a token is chosen: changed logits are kept beside it, and it becomes a list
  // when a step needs one. Keeps its memory between calls.
  void Assign(std::span<const float> logits);
  // Takes only the tokens whose bit (id % 64 of word id / 64) is set.
  void Assign(std::span<const float> logits, std::span<const uint64_t> allowed);

  size_t size() const { return is_row_ ? row_.size() - n_dropped_ : items_.size(); }
  std::span<const Candidate> items() { return List(); }
  Candidate& operator[](size_t i) { return List()[i]; }

  // Whether no logit is NaN or infinity.
  bool AllFinite();
  // Adds to the logits of these ids, which ascend, and drops a candidate whose logit becomes
  // infinite. Only while all logits are finite and in the order of ids.
  void AddBiases(std::span<const std::pair<tokenizer::TokenId, float>> biases);
  // The most likely candidate; of equals the one with the lowest id.
  Candidate Best();
  // Puts the n most likely first, in falling order (ties by id).
  void SortTop(size_t n);
  // Puts those with at least this logit first, in falling order. Returns how many are in order.
  size_t SortAtLeast(float least);
  // Drops all but the first n. Only after SortTop(n).
  void Truncate(size_t n);
  // Keeps the n most likely, sorted.
  void KeepTop(size_t n);
  // Drops candidates with a smaller logit.
  void KeepAtLeast(float least);
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
  // Changes only candidates whose id is the id(element) of an element of `sorted`, where ids
  // ascend. While candidates are in the order of ids, this takes time by the number of elements,
  // not by the vocabulary. Otherwise function gets every candidate.
  template <class Range, class Id, class Function>
  void ChangeThose(const Range& sorted, Id id, Function function) {
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
  // The sum of exp(logit - max), max being the largest logit.
  double SumOfExp(float max);
  // softmax(logits), in the candidates' order. The buffer is reused by the next call.
  std::span<const double> Probabilities();

  // For a step with its own order: a buffer with an entry per candidate, which the step fills and
  // sorts; KeepRanked() then keeps the candidates of the first n entries, in their old order.
  struct Ranked {
    double distance;
    double probability;
    size_t index;  // of the candidate
  };
  std::span<Ranked> Ranking();
  void KeepRanked(size_t n);

 private:
  std::vector<Candidate>& List();
  // ChangeThose() of a row: merges what is changed now with what was.
  template <class Range, class Id, class Function>
  void ChangeRow(const Range& sorted, Id id, Function function) {
    changes_.swap(earlier_);
    changes_.clear();
    auto earlier = earlier_.begin();
    for (const auto& element : sorted) {
      Candidate c = {std::invoke(id, element), 0};
      if (c.id < 0 || static_cast<size_t>(c.id) >= row_.size()) continue;
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
  void NoteChanged(Candidate changed);
  // Calls run(id, logits) for each run of unchanged logits, the first of which has this id, and
  // change(candidate) for each change, in the order of ids.
  template <class Run, class Changed>
  void EachPart(Run run, Changed change) const;

  // Either a row with a logit for each id, or a list.
  bool is_row_ = false;
  std::span<const float> row_;
  std::vector<Candidate> changes_, earlier_;  // logits that differ from the row's, by id
  static constexpr float kDropped = -std::numeric_limits<float>::infinity();  // among changes
  size_t n_dropped_ = 0;                                                      // from the row
  std::optional<Candidate> best_;  // of the row, if known
  std::vector<Candidate> items_;
  size_t n_sorted_ = 0;        // at the front, in their final places
  bool by_id_ = true;          // in the order of ids
  std::vector<float> logits_;  // for kernels
  std::vector<double> probabilities_;
  std::vector<Ranked> ranking_;
};

// Penalizes recent tokens. The logit of a token that occurs is divided by `repeat` (multiplied if
// negative; Keskar et al. 2019, CTRL), and lowered by `frequency` for each occurrence and by
// `presence` once (OpenAI's API). `recent` has the last tokens in any order, and is sorted here.
struct Penalties {
  float repeat = 1.0f;
  float frequency = 0.0f;
  float presence = 0.0f;
  bool Active() const { return repeat != 1.0f || frequency != 0.0f || presence != 0.0f; }
};
void ApplyPenalties(Candidates& candidates, std::span<tokenizer::TokenId> recent,
                    const Penalties& penalties);

// Keeps the k most likely (Fan et al. 2018). k <= 0 keeps all.
void TopK(Candidates& candidates, int k);

// Keeps the most likely, at least one, until they add up to p: the nucleus (Holtzman et al. 2019).
// p >= 1 keeps all.
void TopP(Candidates& candidates, float p);

// Keeps those at least min_p times as likely as the most likely (Nguyen et al. 2024). 0 keeps all.
void MinP(Candidates& candidates, float min_p);

// Keeps those whose surprise is closest to the entropy, until their probabilities sum to p: locally
// typical sampling (Meister et al. 2022). p >= 1 keeps all.
void Typical(Candidates& candidates, float p);

// Keeps those whose logits are at most n standard deviations (of all that are left) below the best
// (Tang et al. 2024, "Top-n-sigma"). n <= 0 keeps all.
void TopNSigma(Candidates& candidates, float n);

// Excludes top choices: of those with at least `threshold` probability, keeps only the least likely
// (p-e-w 2024, text-generation-webui, pull request 6335).
void Xtc(Candidates& candidates, float threshold);

// Mirostat 2's cut: drops those with a surprise, -log2 p, of more than mu bits, but never all.
void CutSurprise(Candidates& candidates, double mu);

// Dynamic temperature: low + (high - low) * e^exponent, where e is the entropy divided by its
// maximum, the log of the number of candidates (kalomaze 2023, as in llama.cpp; similar to EDT,
// Zhang et al. 2024). A single candidate is left alone.
void DynamicTemperature(Candidates& candidates, float low, float high, float exponent);

// Divides logits by the temperature.
void Temperature(Candidates& candidates, float temperature);

}  // namespace engine
