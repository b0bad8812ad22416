// exp for float vectors. Included once per instruction set.
#if defined(PRONK_KERNELS_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_EXP_INL_H_
#undef PRONK_KERNELS_EXP_INL_H_
#else
#define PRONK_KERNELS_EXP_INL_H_
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// exp(x), relative error below 2e-7, for x in [-87.3, 88]; outside, the value at that end: what we
// take exponentials of is at most 0 (softmax) or divides something (silu). A NaN stays one.
//
// x = n ln 2 + r with |r| <= 0.35, so exp(x) = 2^n exp(r); exp(r) is Taylor's polynomial of degree
// 7, whose remainder r^8 / 8! is below 6e-9.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V Exp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V clamped = hn::Max(hn::Set(d, -87.3f), hn::Min(hn::Set(d, 88.0f), x));
  const auto n = hn::NearestInt(hn::Mul(clamped, hn::Set(d, 1.44269504f)));
  const V nf = hn::ConvertTo(d, n);
  // ln 2 in two parts, the first with few bits, so that n * part is exact.
  V r = hn::NegMulAdd(nf, hn::Set(d, 0.693359375f), clamped);
  r = hn::NegMulAdd(nf, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.0f / 5040);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
  return hn::Mul(p, power);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_EXP_INL_H_
