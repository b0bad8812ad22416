// The small operations between products, see ops.h.
#include "kernels/ops/ops.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/ops.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/ops/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

// out[i] = f(x[i], y[i])
template <class F>
HWY_INLINE void Zip(const float* x, const float* y, size_t n, float* out, F f) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(f(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, out + i);
  }
  if (i < n) {
    hn::StoreN(f(hn::LoadN(d, x + i, n - i), hn::LoadN(d, y + i, n - i)), d, out + i, n - i);
  }
}

float SumOfSquares(const float* x, size_t n) {
  const D d;
  // Four chains hide the latency of additions; shorter chains also have smaller rounding errors.
  V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (size_t k = 0; k < 4; ++k) {
      const V v = hn::LoadU(d, x + i + k * kLanes);
      sums[k] = hn::MulAdd(v, v, sums[k]);
    }
  }
  for (; i < n; i += kLanes) {
    const V v = hn::LoadN(d, x + i, std::min(kLanes, n - i));
    sums[0] = hn::MulAdd(v, v, sums[0]);
  }
  return hn::ReduceSum(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])));
}

void RmsNormT(const float* x, const float* weight, float eps, size_t n, float* out) {
  const float mean = SumOfSquares(x, n) / static_cast<float>(n);
  const V factor = hn::Set(D(), 1.0f / std::sqrt(mean + eps));
  if (weight == nullptr) {
    Zip(x, x, n, out, [factor](V v, V) { return hn::Mul(v, factor); });
  } else {
    Zip(x, weight, n, out, [factor](V v, V w) { return hn::Mul(hn::Mul(v, factor), w); });
  }
}

void LayerNormT(const float* x, const float* weight, float eps, size_t n, float* out) {
  const D d;
  V sum = hn::Zero(d);
  for (size_t i = 0; i < n; i += kLanes) {
    sum = hn::Add(sum, hn::LoadN(d, x + i, std::min(kLanes, n - i)));
  }
  const V mean = hn::Set(d, hn::ReduceSum(d, sum) / static_cast<float>(n));
  Zip(x, x, n, out, [mean](V v, V) { return hn::Sub(v, mean); });
  RmsNormT(out, weight, eps, n, out);
}

void RopeAdjacent(float* head, size_t n_pairs, const float* cos, const float* sin) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= n_pairs; i += kLanes) {
    const V c = hn::LoadU(d, cos + i);
    const V s = hn::LoadU(d, sin + i);
    V a, b;
    hn::LoadInterleaved2(d, head + 2 * i, a, b);
    hn::StoreInterleaved2(hn::NegMulAdd(b, s, hn::Mul(a, c)), hn::MulAdd(b, c, hn::Mul(a, s)), d,
                          head + 2 * i);
  }
  for (; i < n_pairs; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void RopeHalves(float* head, size_t n_pairs, const float* cos, const float* sin) {
  const D d;
  for (size_t i = 0; i < n_pairs; i += kLanes) {
    const size_t count = std::min(kLanes, n_pairs - i);
    const V c = hn::LoadN(d, cos + i, count);
    const V s = hn::LoadN(d, sin + i, count);
    const V a = hn::LoadN(d, head + i, count);
    const V b = hn::LoadN(d, head + n_pairs + i, count);
    hn::StoreN(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, head + i, count);
    hn::StoreN(hn::MulAdd(b, c, hn::Mul(a, s)), d, head + n_pairs + i, count);
  }
}

void RopeT(float* heads, size_t n_heads, size_t head_dim, size_t n_rot, const float* cos,
           const float* sin, RopePairs pairs) {
  for (size_t h = 0; h < n_heads; ++h) {
    float* const head = heads + h * head_dim;
    if (pairs == RopePairs::kAdjacent) {
      RopeAdjacent(head, n_rot / 2, cos, sin);
    } else {
      RopeHalves(head, n_rot / 2, cos, sin);
    }
  }
}

template <Activation kActivation>
HWY_INLINE void Activate(float* gate, const float* up, size_t n, float limit = 0) {
  Zip(gate, up, n, gate, [limit](V g, V u) { return Gated(D(), kActivation, g, u, limit); });
}

void GatedActivationT(Activation activation, float* gate, const float* up, size_t n, float limit) {
  switch (activation) {
    case Activation::kSilu:
      return Activate<Activation::kSilu>(gate, up, n);
    case Activation::kGelu:
      return Activate<Activation::kGelu>(gate, up, n);
    case Activation::kGeluAlone:
      return Activate<Activation::kGeluAlone>(gate, gate, n);  // there may be no up
    case Activation::kGeluErf:
      return Activate<Activation::kGeluErf>(gate, gate, n);
    case Activation::kGatedGeluErf:
      return Activate<Activation::kGatedGeluErf>(gate, up, n);
    case Activation::kRelu:
      return Activate<Activation::kRelu>(gate, gate, n);
    case Activation::kSwigluOai:
      return Activate<Activation::kSwigluOai>(gate, up, n);
    case Activation::kSigmoid:
      return Activate<Activation::kSigmoid>(gate, up, n);
    case Activation::kReluSquared:
      return Activate<Activation::kReluSquared>(gate, gate, n);
    case Activation::kGatedReluSquared:
      return Activate<Activation::kGatedReluSquared>(gate, up, n);
    case Activation::kSoftplus:
      return Activate<Activation::kSoftplus>(gate, up, n);
    case Activation::kLimitedSilu:
      return Activate<Activation::kLimitedSilu>(gate, up, n, limit);
  }
}

void ApplyXieluT(const Xielu& xielu, float* x, size_t n) {
  const D d;
  const V positive = hn::Set(d, xielu.positive), negative = hn::Set(d, xielu.negative),
          beta = hn::Set(d, xielu.beta);
  Zip(x, x, n, x, [=](V v, V) {
    const V below = hn::Mul(negative, hn::Sub(ExpMinusOne(D(), AtMost(D(), v, xielu.eps)), v));
    const V above = hn::Mul(positive, hn::Mul(v, v));
    return hn::MulAdd(beta, v, hn::IfThenElse(hn::Gt(v, hn::Zero(D())), above, below));
  });
}

void AddT(float* x, const float* y, size_t n) {
  Zip(x, y, n, x, [](V a, V b) { return hn::Add(a, b); });
}

void AddScaledT(float* x, float factor, const float* y, size_t n) {
  const V f = hn::Set(D(), factor);
  Zip(x, y, n, x, [f](V a, V b) { return hn::MulAdd(b, f, a); });
}

void ScaleT(float* x, float factor, size_t n) {
  const V f = hn::Set(D(), factor);
  Zip(x, x, n, x, [f](V a, V) { return hn::Mul(a, f); });
}

void SoftCapT(float* x, float cap, size_t n) {
  Zip(x, x, n, x, [cap](V a, V) { return SoftCap(D(), a, cap); });
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RmsNormT);
HWY_EXPORT(LayerNormT);
HWY_EXPORT(ApplyXieluT);
HWY_EXPORT(RopeT);
HWY_EXPORT(GatedActivationT);
HWY_EXPORT(AddT);
HWY_EXPORT(AddScaledT);
HWY_EXPORT(ScaleT);
HWY_EXPORT(SoftCapT);

void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNormT)(x, weight, eps, n, out);
}

void LayerNorm(const float* x, const float* weight, float eps, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(LayerNormT)(x, weight, eps, n, out);
}

void Rope(float* heads, size_t n_heads, size_t head_dim, size_t n_rot, const float* cos,
          const float* sin, RopePairs pairs) {
  HWY_DYNAMIC_DISPATCH(RopeT)(heads, n_heads, head_dim, n_rot, cos, sin, pairs);
}

void GatedActivation(Activation activation, float* gate, const float* up, size_t n, float limit) {
  HWY_DYNAMIC_DISPATCH(GatedActivationT)(activation, gate, up, n, limit);
}

void ApplyXielu(const Xielu& xielu, float* x, size_t n) {
  HWY_DYNAMIC_DISPATCH(ApplyXieluT)(xielu, x, n);
}

void Add(float* x, const float* y, size_t n) { HWY_DYNAMIC_DISPATCH(AddT)(x, y, n); }

void AddScaled(float* x, float factor, const float* y, size_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaledT)(x, factor, y, n);
}

void Scale(float* x, float factor, size_t n) { HWY_DYNAMIC_DISPATCH(ScaleT)(x, factor, n); }

void SoftCap(float* x, float cap, size_t n) { HWY_DYNAMIC_DISPATCH(SoftCapT)(x, cap, n); }

}  // namespace kernels
#endif  // HWY_ONCE
