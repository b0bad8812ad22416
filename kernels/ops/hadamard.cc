// The fast Hadamard transform, vectorized, see hadamard.h.
#include "kernels/ops/hadamard.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/ops/hadamard.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using HadamardTag = hn::CappedTag<float, 16>;

// Replaces numbers `step` apart by their sum and difference, for each power of two `step` below n:
// first within vectors, then across vectors.
void HadamardT(float* x, size_t n) {
  const HadamardTag d;
  using V = hn::Vec<HadamardTag>;
  constexpr size_t kLanes = hn::MaxLanes(HadamardTag());
  const hn::RebindToSigned<HadamardTag> di;
  const float scale = 1 / std::sqrt(static_cast<float>(n));
  if (n < kLanes) {
    for (size_t step = 1; step < n; step *= 2) {
      for (size_t i = 0; i < n; ++i) {
        if ((i & step) != 0) continue;
        const float a = x[i], b = x[i + step];
        x[i] = a + b;
        x[i + step] = a - b;
      }
    }
    for (size_t i = 0; i < n; ++i) x[i] *= scale;
    return;
  }
  const auto iota = hn::Iota(di, 0);
  for (size_t i = 0; i < n; i += kLanes) {
    V v = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale));
    for (size_t step = 1; step < kLanes; step *= 2) {
      const auto bit = hn::Set(di, static_cast<int32_t>(step));
      const V other = hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Xor(iota, bit)));
      const auto minus = hn::RebindMask(d, hn::TestBit(iota, bit));
      v = hn::Add(other, hn::IfThenElse(minus, hn::Neg(v), v));
    }
    hn::StoreU(v, d, x + i);
  }
  for (size_t step = kLanes; step < n; step *= 2) {
    for (size_t i = 0; i < n; i += 2 * step) {
      for (size_t j = i; j < i + step; j += kLanes) {
        const V a = hn::LoadU(d, x + j), b = hn::LoadU(d, x + j + step);
        hn::StoreU(hn::Add(a, b), d, x + j);
        hn::StoreU(hn::Sub(a, b), d, x + j + step);
      }
    }
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(HadamardT);

void Hadamard(float* x, size_t n) { HWY_DYNAMIC_DISPATCH(HadamardT)(x, n); }

}  // namespace kernels
#endif  // HWY_ONCE
