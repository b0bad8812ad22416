// The recurrences of recurrence.h as in the papers, one number at a time in double: the
// definitions, and the oracle of the tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/recurrence/recurrence.h"

namespace kernels {

inline double SoftplusReference(double x) { return x > 20 ? x : std::log1p(std::exp(x)); }

// Channel c of a token. x[i] is the channel's input n_taps - 1 - i tokens ago.
inline double ConvolveReference(const CausalConv& conv, size_t c, const double* x) {
  double y = conv.bias != nullptr ? double{conv.bias[c]} : 0;
  for (size_t i = 0; i < conv.n_taps; ++i) y += double{conv.taps[c * conv.n_taps + i]} * x[i];
  return conv.silu ? y / (1 + std::exp(-y)) : y;
}

// out[i] = x[i] / sqrt(|x|^2 + kUnitEps)
inline void UnitReference(const float* x, size_t n, double* out) {
  double squares = double{kUnitEps};
  for (size_t i = 0; i < n; ++i) squares += double{x[i]} * double{x[i]};
  for (size_t i = 0; i < n; ++i) out[i] = double{x[i]} / std::sqrt(squares);
}

// One token of value head j: state is the head's [length][length], q and k belong to its key head,
// [length], not yet of length 1; v and out are [length], alpha (one, or [length]) and beta the raw
// products.
inline void DeltaNetReference(const DeltaNet& net, size_t j, const float* q, const float* k,
                              const float* v, const float* alpha, double beta, double* state,
                              double* unit_q, double* unit_k, double* out) {
  const size_t n = net.length;
  UnitReference(q, n, unit_q);
  UnitReference(k, n, unit_k);
  for (size_t i = 0; i < n; ++i) unit_q[i] /= std::sqrt(static_cast<double>(n));
  const size_t n_decays = net.decay_by_channel ? n : 1;
  for (size_t i = 0; i < n; ++i) {
    const size_t g = i % n_decays;
    const double x = double{alpha[g]} + double{net.dt_bias[j * n_decays + g]};
    const double log = net.lowest != 0 ? double{net.lowest} / (1 + std::exp(-double{net.a[j]} * x))
                                       : SoftplusReference(x) * double{net.a[j]};
    const double decay = std::exp(log);
    for (size_t c = 0; c < n; ++c) state[i * n + c] *= decay;
  }
  for (size_t c = 0; c < n; ++c) {
    double remembered = 0;
    for (size_t i = 0; i < n; ++i) remembered += state[i * n + c] * unit_k[i];
    const double d = (double{v[c]} - remembered) / (1 + std::exp(-beta));
    for (size_t i = 0; i < n; ++i) state[i * n + c] += unit_k[i] * d;
    out[c] = 0;
    for (size_t i = 0; i < n; ++i) out[c] += state[i * n + c] * unit_q[i];
  }
}

// One token of head j: state is the head's [state_length][head_length], b and c belong to its
// group, [state_length]; u and out are [head_length], dt the raw product.
inline void Mamba2Reference(const Mamba2& net, size_t j, const float* u, const float* b,
                            const float* c, double dt, double* state, double* out) {
  const size_t n = net.head_length;
  const double step = net.dt_bias != nullptr ? SoftplusReference(dt + double{net.dt_bias[j]}) : 1;
  const double decay = std::exp(step * double{net.a[j]});
  for (size_t p = 0; p < n; ++p) {
    out[p] = net.d != nullptr ? double{net.d[j]} * double{u[p]} : 0;
    for (size_t i = 0; i < net.state_length; ++i) {
      double& s = state[i * n + p];
      s = decay * s + double{b[i]} * step * double{u[p]};
      out[p] += s * double{c[i]};
    }
  }
}

// One token of channel c: state, b and read (C) are [state_length], dt the raw product.
inline double MambaReference(const Mamba& net, size_t c, double u, const float* b,
                             const float* read, double dt, double* state) {
  const double step = SoftplusReference(dt);
  double out = double{net.d[c]} * u;
  for (size_t i = 0; i < net.state_length; ++i) {
    const double decay = std::exp(step * double{net.a[c * net.state_length + i]});
    state[i] = decay * state[i] + step * u * double{b[i]};
    out += state[i] * double{read[i]};
  }
  return out;
}

}  // namespace kernels
