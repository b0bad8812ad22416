// exp and tanh for float vectors. Included once per instruction set.
#if defined(PRONK_KERNELS_SIMD_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_SIMD_EXP_INL_H_
#undef PRONK_KERNELS_SIMD_EXP_INL_H_
#else
#define PRONK_KERNELS_SIMD_EXP_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// exp(x), relative error below 2e-7, for x in [-87.3, 88]. Outside this range the result is the
// value at the nearer end, which suffices: x is at most 0 (softmax), or the result is a divisor
// (silu). A NaN stays a NaN, and exp(0) is 1.
//
// x = n ln 2 + r with |r| <= 0.35, so exp(x) = 2^n exp(r). Adding 1.5 * 2^23 to x / ln 2 rounds it
// to an integer, n, in the last bits of the sum; a shift makes it the exponent of 2^n. exp(r) is
// the polynomial of degree 5 that begins with 1 + r and has the smallest error, 1.1e-7.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const V low = hn::Set(d, -87.3f), high = hn::Set(d, 88.0f);
#if HWY_ARCH_X86  // Min and Max return their second argument if either is a NaN
  const V clamped = hn::Max(low, hn::Min(high, x));
#else
  const V at_most = hn::IfThenElse(hn::Gt(x, high), high, x);
  const V clamped = hn::IfThenElse(hn::Lt(at_most, low), low, at_most);
#endif
  const V round = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(clamped, hn::Set(d, 1.44269504f), round);
  const V n = hn::Sub(shifted, round);
  // ln 2 in two parts, the first with few bits, so that n * part is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 0.008312501f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.04189033f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.16667116f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.4999923f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::Add(hn::BitCast(du, shifted), hn::Set(du, 127)));
  return hn::Mul(p, hn::BitCast(d, exponent));
}

// 2^x for x <= 0, for the weights of a softmax, in fewer operations than Exp. The relative error is
// below 2e-7; below -125 the result is 2^-125. A NaN stays a NaN, and 2^0 is 1.
//
// x = n + f with |f| <= 0.5; 2^f is Exp's polynomial, scaled. The constant that is added for
// rounding makes the sum's last bits the exponent of 2^n, n + 127.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Exp2OfNegative(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToUnsigned<D> du;
  const V low = hn::Set(d, -125.0f);
#if HWY_ARCH_X86
  const V clamped = hn::Max(low, x);
#else
  const V clamped = hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
  const V round = hn::Set(d, 12582912.0f + 127);
  const V shifted = hn::Add(clamped, round);
  const V f = hn::Sub(clamped, hn::Sub(shifted, round));
  V p = hn::Set(d, 0.0013300226f);
  p = hn::MulAdd(p, f, hn::Set(d, 0.0096697585f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.055505605f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022281f));
  p = hn::MulAdd(p, f, hn::Set(d, 0.69314718f));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(du, shifted))));
}

// tanh(x), relative error below 3e-7 for any x, also near 0. A NaN stays a NaN.
//
// From 0.625 on, tanh(x) is 1 - 2 / (exp(2x) + 1). Below 0.625 this difference loses digits, so
// there the result is x + x^3 g(x^2). The polynomial g goes through the Chebyshev nodes of [0,
// 0.625^2]; its error is 1.7e-8.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Tanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V magnitude = hn::Abs(x), one = hn::Set(d, 1.0f);
  const V e = Exp(d, hn::Add(magnitude, magnitude));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  const V square = hn::Mul(x, x);
  V g = hn::Set(d, -0.00609671418f);
  g = hn::MulAdd(g, square, hn::Set(d, 0.0209971797f));
  g = hn::MulAdd(g, square, hn::Set(d, -0.0538509078f));
  g = hn::MulAdd(g, square, hn::Set(d, 0.133327693f));
  g = hn::MulAdd(g, square, hn::Set(d, -0.333333284f));
  const V small = hn::MulAdd(hn::Mul(x, square), g, x);
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.625f)), small, hn::CopySign(large, x));
}

// cap * tanh(x / cap), within [-cap, cap].
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V SoftCap(D d, V x, float cap) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V c = hn::Set(d, cap);
  return hn::Mul(c, Tanh(d, hn::Div(x, c)));
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_SIMD_EXP_INL_H_
