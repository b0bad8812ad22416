// The operations of ops.h as the papers define them, one number at a time in double: the oracle of
// the tests. (Softmax is a part of attention/reference.h.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "kernels/ops/ops.h"

namespace kernels {

// out[i] = x[i] * weight[i] / sqrt(mean(x^2) + eps); without weight (null) weights are 1.
inline void RmsNormReference(const float* x, const float* weight, float eps, size_t n,
                             double* out) {
  double squares = 0;
  for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  const double root = std::sqrt(squares / static_cast<double>(n) + double{eps});
  for (size_t i = 0; i < n; ++i) {
    out[i] = double{x[i]} * (weight != nullptr ? double{weight[i]} : 1.0) / root;
  }
}

inline void LayerNormReference(const float* x, const float* weight, float eps, size_t n,
                               double* out) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) sum += double{x[i]};
  const double mean = sum / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) squares += (double{x[i]} - mean) * (double{x[i]} - mean);
  const double root = std::sqrt(squares / static_cast<double>(n) + double{eps});
  for (size_t i = 0; i < n; ++i) out[i] = (double{x[i]} - mean) / root * double{weight[i]};
}

inline double XieluReference(const Xielu& c, double x) {
  if (x > 0) return double{c.positive} * x * x + double{c.beta} * x;
  return double{c.negative} * (std::expm1(std::min(x, double{c.eps})) - x) + double{c.beta} * x;
}

// Rotates pair i of a head by the angle with this cosine and sine; copies the other numbers. out is
// [head_dim].
inline void RopeReference(const float* head, size_t head_dim, size_t n_rot, const float* cos,
                          const float* sin, RopePairs pairs, double* out) {
  std::copy_n(head, head_dim, out);
  for (size_t i = 0; i < n_rot / 2; ++i) {
    const bool adjacent = pairs == RopePairs::kAdjacent;
    const size_t first = adjacent ? 2 * i : i;
    const size_t second = adjacent ? 2 * i + 1 : i + n_rot / 2;
    const double a = head[first], b = head[second];
    out[first] = a * double{cos[i]} - b * double{sin[i]};
    out[second] = a * double{sin[i]} + b * double{cos[i]};
  }
}

// act(gate) * up, see Activation.
inline double GatedReference(Activation activation, double gate, double up,
                             double limit = std::numeric_limits<double>::infinity()) {
  switch (activation) {
    case Activation::kSilu:
      break;
    case Activation::kGelu:
    case Activation::kGeluAlone: {
      constexpr double kPi = 3.14159265358979323846;
      const double a = std::sqrt(2 / kPi) * (gate + 0.044715 * gate * gate * gate);
      // For large negative a, 1 + tanh(a) is lost to cancellation even in double.
      const double factor =
          a < -10 ? 2 * std::exp(2 * a) / (1 + std::exp(2 * a)) : 1 + std::tanh(a);
      return 0.5 * gate * factor * (activation == Activation::kGelu ? up : 1);
    }
    case Activation::kGeluErf:
    case Activation::kGatedGeluErf:
      return 0.5 * gate * std::erfc(-gate / std::sqrt(2.0)) *
             (activation == Activation::kGatedGeluErf ? up : 1);
    case Activation::kRelu:
      return gate < 0 ? 0 : gate;
    case Activation::kSwigluOai: {
      const double g = std::min(gate, 7.0), u = std::clamp(up, -7.0, 7.0);
      return g / (1 + std::exp(-1.702 * g)) * (u + 1);
    }
    case Activation::kSigmoid:
      return up / (1 + std::exp(-gate));
    case Activation::kReluSquared:
      return gate < 0 ? 0 : gate * gate;
    case Activation::kGatedReluSquared:
      return gate < 0 ? 0 : gate * gate * up;
    case Activation::kSoftplus:
      return (std::max(gate, 0.0) + std::log1p(std::exp(-std::abs(gate)))) * up;
    case Activation::kLimitedSilu:
      return std::min(gate / (1 + std::exp(-gate)), limit) * std::clamp(up, -limit, limit);
  }
  return gate / (1 + std::exp(-gate)) * up;
}

}  // namespace kernels
