// Candidates made by hand.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "engine/sampling/candidates.h"

namespace engine {

// Candidates, and the row that they read.
class RowOfLogits : public Candidates {
 public:
  explicit RowOfLogits(std::vector<float> logits) : logits_(std::move(logits)) { Assign(logits_); }
  RowOfLogits(RowOfLogits&&) = default;
  RowOfLogits& operator=(RowOfLogits&&) = default;

 private:
  std::vector<float> logits_;
};

// Candidates with these probabilities, which add up to 1.
inline RowOfLogits WithProbabilities(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return RowOfLogits(logits);
}

}  // namespace engine
