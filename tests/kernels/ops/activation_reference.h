// The error that tests of activations allow.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ops/ops_reference.h"

namespace kernels {

inline constexpr Activation kActivations[] = {
    Activation::kSilu,      Activation::kGelu,        Activation::kSwigluOai,
    Activation::kGeluAlone, Activation::kGeluErf,     Activation::kRelu,
    Activation::kSigmoid,   Activation::kReluSquared, Activation::kGatedReluSquared,
    Activation::kSoftplus,  Activation::kLimitedSilu, Activation::kGatedGeluErf};

// GatedReference, and how far off arithmetic in float may be: what is under exp, z, is rounded
// three times, each of which is |z| eps / 2 of the result; exp itself is right to 2e-7, and five
// other operations round. exp stops at 88: there gate and up are divided by 1.7e38 instead of more.
struct GatedExpected {
  double value, tolerance;
};
inline GatedExpected ExpectGated(Activation activation, double gate, double up) {
  constexpr double kPi = 3.14159265358979323846;
  const double eps = std::numeric_limits<float>::epsilon();
  const double value = GatedReference(activation, gate, up);
  const bool is_erf = activation == Activation::kGeluErf || activation == Activation::kGatedGeluErf;
  double z = gate;
  if (activation == Activation::kGelu || activation == Activation::kGeluAlone) {
    z = 2 * std::sqrt(2 / kPi) * (gate + 0.044715 * gate * gate * gate);
  } else if (is_erf) {  // of a fit of 9 steps, 1.2e-7 off
    z = gate * gate / 2 + 1;
  } else if (activation == Activation::kSwigluOai) {
    gate = std::min(gate, 7.0);
    up = std::clamp(up, -7.0, 7.0);
    z = 1.702 * gate;
  }
  const double fit = is_erf ? 1.2e-7 + 20 * eps : 0;
  const double rounded = (3 * std::min(std::abs(z), 90.0) + 5) * eps / 2 + 2e-7 + fit;
  const double divided = activation == Activation::kSigmoid ? 1 : std::abs(gate);
  const double stopped = divided * (std::abs(up) + 1) / 1.6e38;
  return {value, rounded * std::abs(value) + stopped + 1e-38};
}

}  // namespace kernels
