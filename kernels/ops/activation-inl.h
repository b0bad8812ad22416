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

// act(gate) * up, see Activation. Propagates NaN.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Gated(D d, Activation activation, V gate, V up) {
  namespace hn = hwy::HWY_NAMESPACE;
  switch (activation) {
    case Activation::kSilu:
      break;
    case Activation::kGelu: {
      // (1 + tanh(a)) / 2 = 1 / (1 + exp(-2a)), with 2a = 2 sqrt(2/pi) (g + 0.044715 g^3).
      const V cubic = hn::MulAdd(hn::Mul(gate, gate), hn::Set(d, 0.044715f), hn::Set(d, 1.0f));
      const V z = hn::Mul(hn::Mul(gate, hn::Set(d, 1.59576912f)), cubic);
      return hn::Mul(TimesSigmoid(d, gate, z), up);
    }
    case Activation::kSwigluOai: {
      const V most = hn::Set(d, 7.0f), least = hn::Set(d, -7.0f);
      const V g = hn::IfThenElse(hn::Gt(gate, most), most, gate);
      V u = hn::IfThenElse(hn::Gt(up, most), most, up);
      u = hn::IfThenElse(hn::Lt(u, least), least, u);
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
  }
  return hn::Mul(TimesSigmoid(d, gate, gate), up);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_OPS_ACTIVATION_INL_H_
