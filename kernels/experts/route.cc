// Chooses the experts of a token, see experts.h.
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/experts/experts.h"

namespace kernels {
namespace {

// The smallest divisor of normed weights: the smallest normal f16.
constexpr float kMinSum = 6.103515625e-5f;

bool IsGreater(float a, float b) { return a > b || (std::isnan(b) && !std::isnan(a)); }

// The n_chosen of n indices with the largest scores, largest first; of equal scores the lower index
// comes first, since an index is inserted after equal scores.
template <class Score>
void Choose(size_t n, size_t n_chosen, Score score, uint32_t* chosen) {
  for (size_t i = 0; i < n; ++i) {
    size_t rank = std::min(i, n_chosen);
    if (rank == n_chosen && !IsGreater(score(i), score(chosen[n_chosen - 1]))) continue;
    rank = std::min(rank, n_chosen - 1);
    for (; rank > 0 && IsGreater(score(i), score(chosen[rank - 1])); --rank) {
      chosen[rank] = chosen[rank - 1];
    }
    chosen[rank] = static_cast<uint32_t>(i);
  }
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// Turns the logits into p.
void ToShares(Router::Gate gate, float* logits, size_t n) {
  if (gate == Router::Gate::kSigmoid) {
    for (size_t e = 0; e < n; ++e) logits[e] = Sigmoid(logits[e]);
    return;
  }
  float max = logits[0], sum = 0;
  for (size_t e = 1; e < n; ++e) max = IsGreater(logits[e], max) ? logits[e] : max;
  for (size_t e = 0; e < n; ++e) {
    logits[e] = std::exp(logits[e] - max);
    sum += logits[e];
  }
  for (size_t e = 0; e < n; ++e) logits[e] /= sum;
}

// The sum of the two largest scores of the experts [begin, end), or the only one.
template <class Score>
float GroupScore(size_t begin, size_t end, Score score) {
  float first = score(begin);
  if (end - begin == 1) return first;
  float second = score(begin + 1);
  if (IsGreater(second, first)) std::swap(first, second);
  for (size_t e = begin + 2; e < end; ++e) {
    if (!IsGreater(score(e), second)) continue;
    second = score(e);
    if (IsGreater(second, first)) std::swap(first, second);
  }
  return first + second;
}

// Excludes the experts of all but the best groups: their shares become NaN.
template <class Score>
void KeepBestGroups(const Router& router, float* shares, size_t n_experts, Score score) {
  const size_t size = n_experts / router.n_groups;
  std::array<float, kMaxExpertGroups> scores;
  std::array<uint32_t, kMaxExpertGroups> best;
  for (size_t g = 0; g < router.n_groups; ++g) {
    scores[g] = GroupScore(g * size, (g + 1) * size, score);
  }
  Choose(
      router.n_groups, router.n_groups_used, [&](size_t g) { return scores[g]; }, best.data());
  const auto end = best.begin() + static_cast<ptrdiff_t>(router.n_groups_used);
  for (size_t e = 0; e < n_experts; ++e) {
    if (std::find(best.begin(), end, e / size) == end) {
      shares[e] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

// Chooses by logits, which have the order of p. p of every expert is needed only for the sum of a
// softmax.
void RouteByLogits(const Router& router, const float* logits, size_t n_experts, size_t n_used,
                   uint32_t* experts, float* weights) {
  Choose(
      n_experts, n_used, [logits](size_t e) { return logits[e]; }, experts);
  if (router.gate == Router::Gate::kSigmoid) {
    for (size_t i = 0; i < n_used; ++i) weights[i] = Sigmoid(logits[experts[i]]);
    return;
  }
  const float max = logits[experts[0]];
  for (size_t i = 0; i < n_used; ++i) weights[i] = std::exp(logits[experts[i]] - max);
  if (router.normed) return;  // the largest weight is 1, so no precision is lost
  float sum = 0;
  for (size_t e = 0; e < n_experts; ++e) sum += std::exp(logits[e] - max);
  for (size_t i = 0; i < n_used; ++i) weights[i] /= sum;
}

void RouteByShares(const Router& router, float* logits, size_t n_experts, const float* bias,
                   size_t n_used, uint32_t* experts, float* weights) {
  float* const shares = logits;
  ToShares(router.gate, shares, n_experts);
  const auto score = [&](size_t e) { return bias != nullptr ? shares[e] + bias[e] : shares[e]; };
  if (router.n_groups > 1) KeepBestGroups(router, shares, n_experts, score);
  Choose(n_experts, n_used, score, experts);
  for (size_t i = 0; i < n_used; ++i) weights[i] = shares[experts[i]];
}

// Router::Gate::kSparseMixer.
void RouteOneByOne(const float* logits, size_t n_experts, size_t n_used, uint32_t* experts,
                   float* weights) {
  constexpr float kNear = 0.02f;
  Choose(
      n_experts, n_used, [logits](size_t e) { return logits[e]; }, experts);
  for (size_t i = 0; i < n_used; ++i) {
    const float largest = logits[experts[i]];
    float sum = 0;
    for (size_t e = 0; e < n_experts; ++e) {
      const bool is_taken = std::find(experts, experts + i, e) != experts + i;
      const float divisor = std::max(std::abs(logits[e]), largest);
      if (!is_taken && !((largest - logits[e]) / divisor > kNear))
        sum += std::exp(logits[e] - largest);
    }
    weights[i] = 1 / sum;
  }
}

}  // namespace

void Route(const Router& router, float* logits, size_t n_experts, const float* bias, size_t n_used,
           uint32_t* experts, float* weights) {
  assert(n_used >= 1 && n_used <= n_experts);
  assert(router.n_groups >= 1 && router.n_groups <= kMaxExpertGroups);
  assert(router.n_groups_used >= 1 && router.n_groups_used <= router.n_groups);
  assert(n_experts % router.n_groups == 0);
  if (router.gate == Router::Gate::kSparseMixer) {
    assert(bias == nullptr && router.n_groups == 1 && !router.normed);
    RouteOneByOne(logits, n_experts, n_used, experts, weights);
  } else if (bias == nullptr && router.n_groups == 1) {
    RouteByLogits(router, logits, n_experts, n_used, experts, weights);
  } else {
    RouteByShares(router, logits, n_experts, bias, n_used, experts, weights);
  }
  float divisor = 1;
  if (router.normed) {
    float sum = 0;
    for (size_t i = 0; i < n_used; ++i) sum += weights[i];
    divisor = std::max(sum, kMinSum);
  }
  for (size_t i = 0; i < n_used; ++i) weights[i] = weights[i] / divisor * router.scale;
}

}  // namespace kernels
