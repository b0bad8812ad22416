// Sums exponentials of logits, vectorized, see sum_of_exp.h.
#include "kernels/ops/sum_of_exp.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/sum_of_exp.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

double SumOfExpT(const float* x, size_t n, float max) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  constexpr size_t kLanes = hn::MaxLanes(d), kPart = 1024;
  const auto max_lanes = hn::Set(d, max);
  double sum = 0;
  for (size_t first = 0; first < n; first += kPart) {  // floats within a part, doubles across parts
    const size_t end = std::min(n, first + kPart);
    auto part = hn::Zero(d);
    size_t i = first;
    for (; i + kLanes <= end; i += kLanes) {
      part = hn::Add(part, Exp(d, hn::Sub(hn::LoadU(d, x + i), max_lanes)));
    }
    sum += hn::ReduceSum(d, part);
    for (; i < end; i += kLanes) {
      const size_t rest = std::min(kLanes, end - i);
      const auto e = Exp(d, hn::Sub(hn::LoadN(d, x + i, rest), max_lanes));
      sum += hn::ReduceSum(d, hn::IfThenElseZero(hn::FirstN(d, rest), e));
    }
  }
  return sum;
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(SumOfExpT);

double SumOfExp(const float* x, size_t n, float max) {
  return HWY_DYNAMIC_DISPATCH(SumOfExpT)(x, n, max);
}

}  // namespace kernels
#endif  // HWY_ONCE
