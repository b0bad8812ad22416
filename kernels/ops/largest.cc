// Lanes keep the largest number so far and where it was, see largest.h.
#include "kernels/ops/largest.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/largest.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

Largest FindLargestT(const float* x, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const auto most = hn::Set(d, kMost);
  auto best = hn::Set(d, kNone);
  auto zeros = hn::Zero(d);  // NaNs where a number is not finite
  auto place = hn::Zero(di), at = hn::Iota(di, 0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto is_better = hn::And(hn::Gt(v, best), hn::Le(v, most));
    best = hn::IfThenElse(is_better, v, best);
    place = hn::IfThenElse(hn::RebindMask(di, is_better), at, place);
    zeros = hn::Add(zeros, hn::Mul(v, hn::Zero(d)));
    at = hn::Add(at, hn::Set(di, static_cast<int32_t>(kLanes)));
  }
  float bests[kLanes];
  int32_t places[kLanes];
  hn::StoreU(best, d, bests);
  hn::StoreU(place, di, places);
  Largest result = {n, hn::ReduceSum(d, zeros) == 0};
  float largest = kNone;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const auto index = static_cast<size_t>(places[lane]);
    if (bests[lane] > largest || (bests[lane] == largest && index < result.index)) {
      if (bests[lane] == kNone) continue;
      largest = bests[lane];
      result.index = index;
    }
  }
  for (; i < n; ++i) {
    result.all_finite = result.all_finite && x[i] >= -kMost && x[i] <= kMost;
    if (!(x[i] > largest && x[i] <= kMost)) continue;
    largest = x[i];
    result.index = i;
  }
  return result;
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(FindLargestT);

Largest FindLargest(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(FindLargestT)(x, n); }

}  // namespace kernels
#endif  // HWY_ONCE
