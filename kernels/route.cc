// Which experts a token goes to, see experts.h.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "kernels/experts.h"

namespace kernels {
namespace {

bool IsGreater(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

}  // namespace

void Route(const float* logits, size_t n_experts, size_t n_used, ExpertWeights kind,
           uint32_t* experts, float* weights) {
  assert(n_used >= 1 && n_used <= n_experts);
  // Inserted where they belong among those chosen so far: behind equal ones.
  for (size_t e = 0; e < n_experts; ++e) {
    size_t rank = std::min(e, n_used);
    if (rank == n_used && !IsGreater(logits[e], logits[experts[n_used - 1]])) continue;
    rank = std::min(rank, n_used - 1);
    for (; rank > 0 && IsGreater(logits[e], logits[experts[rank - 1]]); --rank) {
      experts[rank] = experts[rank - 1];
    }
    experts[rank] = static_cast<uint32_t>(e);
  }
  const float max = logits[experts[0]];
  float sum = 0;
  for (size_t i = 0; i < n_used; ++i) {
    weights[i] = std::exp(logits[experts[i]] - max);
    sum += weights[i];
  }
  if (kind == ExpertWeights::kPlain) {
    sum = 0;
    for (size_t e = 0; e < n_experts; ++e) sum += std::exp(logits[e] - max);
  }
  for (size_t i = 0; i < n_used; ++i) weights[i] /= sum;
}

}  // namespace kernels
