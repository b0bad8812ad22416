// FindLargest keeps each lane's largest number and its index; FindAtLeast packs indices. See
// largest.h.
#include "kernels/ops/largest.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/largest.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

Largest FindLargestT(const float* x, size_t n) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr size_t kLanes = hn::MaxLanes(d);
  constexpr float kMaxFloat = std::numeric_limits<float>::max();
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  const auto max_float = hn::Set(d, kMaxFloat), none = hn::Set(d, kNone);
  auto best = none;
  auto zeros = hn::Zero(d);  // NaN where a number is not finite
  auto place = hn::Zero(di), at = hn::Iota(di, 0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto finite = hn::IfThenElse(hn::Le(v, max_float), v, none);  // `none` if it is not
    place = hn::IfThenElse(hn::RebindMask(di, hn::Gt(finite, best)), at, place);
    best = hn::Max(best, finite);
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
    result.all_finite = result.all_finite && x[i] >= -kMaxFloat && x[i] <= kMaxFloat;
    if (!(x[i] > largest && x[i] <= kMaxFloat)) continue;
    largest = x[i];
    result.index = i;
  }
  return result;
}

size_t FindAtLeastT(const float* x, size_t n, float min, int32_t* indices) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> d;
  const hn::RebindToSigned<decltype(d)> di;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto bound = hn::Set(d, min);
  const auto is_found = [&](size_t i) { return hn::Ge(hn::LoadU(d, x + i), bound); };
  size_t n_found = 0, i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {  // most steps find no number
    const auto some = hn::Or(hn::Or(is_found(i), is_found(i + kLanes)),
                             hn::Or(is_found(i + 2 * kLanes), is_found(i + 3 * kLanes)));
    if (hn::AllFalse(d, some)) continue;
    for (size_t k = i; k < i + 4 * kLanes; k += kLanes) {
      n_found += hn::CompressStore(hn::Iota(di, static_cast<int32_t>(k)),
                                   hn::RebindMask(di, is_found(k)), di, indices + n_found);
    }
  }
  for (; i < n; ++i) {
    if (x[i] >= min) indices[n_found++] = static_cast<int32_t>(i);
  }
  return n_found;
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(FindLargestT);
HWY_EXPORT(FindAtLeastT);

Largest FindLargest(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(FindLargestT)(x, n); }

size_t FindAtLeast(const float* x, size_t n, float min, int32_t* indices) {
  return HWY_DYNAMIC_DISPATCH(FindAtLeastT)(x, n, min, indices);
}

}  // namespace kernels
#endif  // HWY_ONCE
