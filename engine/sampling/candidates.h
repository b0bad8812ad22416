// The steps of sampling: each narrows or reshapes the list of tokens that may come next.
//
// A step works on candidates with logits; probabilities are always the softmax of the logits of
// those that are left. Steps are free functions so that each can be read, and tested against
// numbers worked out by hand, on its own; sampler.h chains them.
#ifndef PRONK_ENGINE_SAMPLING_CANDIDATES_H_
#define PRONK_ENGINE_SAMPLING_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace engine {

struct Candidate {
  tokenizer::TokenId id;
  float logit;
};

// Logits as they can be compared: no nan, nothing infinite.
float Comparable(float logit);

class Candidates {
 public:
  // All tokens of a row of logits, in the order of their ids. Keeps its memory between calls.
  void Assign(std::span<const float> logits);
  // The same for those tokens alone whose bit (id % 64 of word id / 64) is set.
  void Assign(std::span<const float> logits, std::span<const uint64_t> allowed);

  size_t size() const { return items_.size(); }
  std::span<const Candidate> items() const { return items_; }
  Candidate& operator[](size_t i) { return items_[i]; }

  // The most likely candidate; of equals the one with the lowest id.
  Candidate Best() const;
  // Puts the n most likely first, in falling order (ties by id). A no-op where they are already.
  void SortTop(size_t n);
  // Drops all but the first n. Only after SortTop(n).
  void Truncate(size_t n);
  template <class Predicate>
  void RemoveIf(Predicate predicate) {
    std::erase_if(items_, predicate);
    n_sorted_ = 0;
  }
  // Gives every candidate a new logit. What comes of odd options (infinity, nan) can still be
  // compared afterwards, and their order is taken to be a new one.
  template <class Function>
  void Change(Function function) {
    for (Candidate& c : items_) {
      function(c);
      c.logit = Comparable(c.logit);
    }
    n_sorted_ = 0;
  }
  // softmax(logits), in the candidates' order. The buffer is reused by the next call.
  std::span<const double> Probabilities();

  // For a step that ranks candidates by something else than their logits: a buffer with one entry
  // for each, to be filled and put into the step's order; then KeepRanked keeps the candidates of
  // its first n entries, in the order they were in.
  struct Ranked {
    double distance;
    double probability;
    size_t index;  // of the candidate
  };
  std::span<Ranked> Ranking();
  void KeepRanked(size_t n);

 private:
  std::vector<Candidate> items_;
  size_t n_sorted_ = 0;  // so many are in their final place at the front
  std::vector<double> probabilities_;
  std::vector<Ranked> ranking_;
};

// Tokens seen lately become less likely. A logit is divided (where positive; multiplied where
// negative) by `repeat` if its token occurs at all (Keskar et al. 2019, CTRL), and lowered by
// `frequency` for each time and by `presence` once (OpenAI's API). `recent` holds the last tokens
// in any order, and is sorted here.
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

// Keeps the most likely until their probabilities add up to p: the nucleus (Holtzman et al. 2019).
// p >= 1 keeps all; at least one stays.
void TopP(Candidates& candidates, float p);

// Keeps those at least min_p times as likely as the most likely (Nguyen et al. 2024). 0 keeps all.
void MinP(Candidates& candidates, float min_p);

// Keeps those whose surprise is closest to the expected surprise (the entropy) until their
// probabilities add up to p: locally typical sampling (Meister et al. 2022). p >= 1 keeps all.
void Typical(Candidates& candidates, float p);

// Keeps those whose logits are at most n standard deviations (of all that are left) below the best:
// noise has a bell shape of its own (Tang et al. 2024, "Top-n-sigma"). n <= 0 keeps all.
void TopNSigma(Candidates& candidates, float n);

// Excludes top choices: of those that are at least `threshold` likely all but the least likely go,
// which makes room for what is rarely said (p-e-w 2024, text-generation-webui, pull request 6335).
void Xtc(Candidates& candidates, float threshold);

// Drops those whose surprise, -log2 p, is more than mu bits; at least one stays. The cut of
// Mirostat 2 (Basu et al. 2021), whose mu follows from what was picked before (sampler.h).
void CutSurprise(Candidates& candidates, double mu);

// Temperature between low and high, by how unsure the model is: low + (high - low) * e^exponent,
// where e is the entropy's share of the most it could be, log of the number of candidates (kalomaze
// 2023, as llama.cpp has it; Zhang et al. 2024, EDT, is a kin of it). One candidate is left alone.
void DynamicTemperature(Candidates& candidates, float low, float high, float exponent);

// Divides logits by the temperature: below 1 sharpens the distribution, above 1 flattens it.
void Temperature(Candidates& candidates, float temperature);

}  // namespace engine

#endif  // PRONK_ENGINE_SAMPLING_CANDIDATES_H_
