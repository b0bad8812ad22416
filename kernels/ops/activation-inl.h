// The activations of feed-forward layers. Included once per instruction set, by ops.cc and by
// gemm.cc for the last step of batched products.
#if defined(PRONK_KERNELS_OPS_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_OPS_ACTIVATION_INL_H_
#undef PRONK_KERNELS_OPS_ACTIVATION_INL_H_
#else
#define PRONK_KERNELS_OPS_ACTIVATION_INL_H_
#endif

#include "kernels/ops/ops.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// g / (1 + exp(-z)): g times the logistic function of z.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V TimesSigmoid(D d, V g, V z) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::Div(g, hn::Add(hn::Set(d, 1.0f), Exp(d, hn::Neg(z))));
}

// AtMost: the smaller of x and `max`. AtLeast: the larger of x and `min`. A NaN stays a NaN.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V AtMost(D d, V x, float max) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, max)), hn::Set(d, max), x);
}
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V AtLeast(D d, V x, float min) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, min)), hn::Set(d, min), x);
}

// ln(1 + exp(x)) = max(x, 0) + ln(1 + y) with y = exp(-|x|) in (0, 1]; the second term is
// 2 atanh(z) = 2 (z + z^3 / 3 + z^5 / 5 + ...) with z = y / (2 + y) <= 1/3. The omitted terms sum
// to less than 2e-9 of the series.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Softplus(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V y = Exp(d, hn::Neg(hn::Abs(x)));
  const V z = hn::Div(y, hn::Add(y, hn::Set(d, 2.0f)));
  const V square = hn::Mul(z, z);
  V sum = hn::Set(d, 2.0f / 15);
  for (const float term : {2.0f / 13, 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3, 2.0f}) {
    sum = hn::MulAdd(sum, square, hn::Set(d, term));
  }
  return hn::MulAdd(sum, z, AtLeast(d, x, 0.0f));
}

// exp(x) - 1 for x <= 0. Near 0, where the difference would lose digits, it is a power series.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V ExpMinusOne(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  V sum = hn::Set(d, 1.0f / 362880);
  for (const float term :
       {1.0f / 40320, 1.0f / 5040, 1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 1.0f / 2, 1.0f}) {
    sum = hn::MulAdd(sum, x, hn::Set(d, term));
  }
  const V far = hn::Sub(Exp(d, x), hn::Set(d, 1.0f));
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, -0.5f)), hn::Mul(sum, x), far);
}

// 0.5 x (1 + erf(x / sqrt(2))). With z = |x| / sqrt(2), erfc(z) = t exp(p(t) - z^2) with
// t = 1 / (1 + z / 2), a Chebyshev fit with a relative error of at most 1.2e-7 (Press et al.,
// Numerical Recipes).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V GeluErf(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, 1.0f);
  const V z = hn::Mul(hn::Abs(x), hn::Set(d, 0.707106781f));
  const V t = hn::Div(one, hn::MulAdd(z, hn::Set(d, 0.5f), one));
  V p = hn::Set(d, 0.17087277f);
  for (const float term : {-0.82215223f, 1.48851587f, -1.13520398f, 0.27886807f, -0.18628806f,
                           0.09678418f, 0.37409196f, 1.00002368f, -1.26551223f}) {
    p = hn::MulAdd(p, t, hn::Set(d, term));
  }
  const V tail = hn::Mul(hn::Mul(t, hn::Set(d, 0.5f)), Exp(d, hn::NegMulAdd(z, z, p)));
  const V low = hn::Mul(x, tail);  // below 0
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), hn::Sub(x, low), low);
}

// act(gate) * up, see Activation. Propagates NaN.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Gated(D d, Activation activation, V gate, V up, float limit) {
  namespace hn = hwy::HWY_NAMESPACE;
  switch (activation) {
    case Activation::kSilu:
      break;
    case Activation::kGelu:
    case Activation::kGeluAlone: {
      // (1 + tanh(a)) / 2 = 1 / (1 + exp(-2a)), with 2a = 2 sqrt(2/pi) (g + 0.044715 g^3).
      const V cubic = hn::MulAdd(hn::Mul(gate, gate), hn::Set(d, 0.044715f), hn::Set(d, 1.0f));
      const V z = hn::Mul(hn::Mul(gate, hn::Set(d, 1.59576912f)), cubic);
      const V value = TimesSigmoid(d, gate, z);
      return activation == Activation::kGelu ? hn::Mul(value, up) : value;
    }
    case Activation::kGeluErf:
      return GeluErf(d, gate);
    case Activation::kGatedGeluErf:
      return hn::Mul(GeluErf(d, gate), up);
    case Activation::kRelu:
      return hn::IfThenZeroElse(hn::Lt(gate, hn::Zero(d)), gate);
    case Activation::kSwigluOai: {
      const V g = AtMost(d, gate, 7.0f), u = AtLeast(d, AtMost(d, up, 7.0f), -7.0f);
      const V value = TimesSigmoid(d, g, hn::Mul(g, hn::Set(d, 1.702f)));
      return hn::Mul(value, hn::Add(u, hn::Set(d, 1.0f)));
    }
    case Activation::kSigmoid:
      return TimesSigmoid(d, up, gate);
    case Activation::kReluSquared:
    case Activation::kGatedReluSquared: {
      const V positive = hn::IfThenZeroElse(hn::Lt(gate, hn::Zero(d)), gate);
      const V squared = hn::Mul(positive, positive);
      return activation == Activation::kReluSquared ? squared : hn::Mul(squared, up);
    }
    case Activation::kSoftplus:
      return hn::Mul(Softplus(d, gate), up);
    case Activation::kLimitedSilu:
      return hn::Mul(AtMost(d, TimesSigmoid(d, gate, gate), limit),
                     AtLeast(d, AtMost(d, up, limit), -limit));
  }
  return hn::Mul(TimesSigmoid(d, gate, gate), up);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_OPS_ACTIVATION_INL_H_
