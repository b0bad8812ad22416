// Chooses the best of some scales for a block of Q4_0, see round_to_q4.h.
#include "kernels/attention/round_to_q4.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/half.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/round_to_q4.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A scale d gives codes q in -8..7. The best scale for these codes is x . q / q . q, whose squared
// error is x . x - (x . q)^2 / q . q. The scales that are tried map the largest number to -6.5 to
// -9.5; below -8.5 it is clipped.
void ToQ4(const float* HWY_RESTRICT x, gguf::BlockQ4_0& out) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<int8_t, decltype(df)> di8;
  constexpr size_t kLanes = hn::MaxLanes(df), kNumbers = 32;
  auto high = hn::LoadU(df, x), low = high;
  for (size_t i = kLanes; i < kNumbers; i += kLanes) {
    high = hn::Max(high, hn::LoadU(df, x + i));
    low = hn::Min(low, hn::LoadU(df, x + i));
  }
  auto any = hn::Zero(df);
  for (size_t i = 0; i < kNumbers; i += kLanes) {
    any = hn::MulAdd(hn::LoadU(df, x + i), hn::Zero(df), any);
  }
  const float max = hn::ReduceMax(df, high), min = hn::ReduceMin(df, low);
  const float largest = max > -min ? max : min;
  alignas(64) int8_t codes[kNumbers] = {};
  out.d = hn::ReduceSum(df, any) == 0 ? 0 : F32ToF16(kNaN);
  if (out.d == 0 && std::abs(largest) >= 1e-30f) {
    float best = 0;
    for (float to = -6.5f; to >= -9.5f; to -= 0.5f) {
      const auto inverse = hn::Set(df, to / largest);
      alignas(64) int8_t tried[kNumbers];
      auto dot = hn::Zero(df), square = dot;
      for (size_t i = 0; i < kNumbers; i += kLanes) {
        const auto v = hn::LoadU(df, x + i);
        const auto rounded = hn::NearestInt(hn::Mul(v, inverse));
        const auto q = hn::Max(hn::Min(rounded, hn::Set(di32, 7)), hn::Set(di32, -8));
        const auto f = hn::ConvertTo(df, q);
        dot = hn::MulAdd(f, v, dot);
        square = hn::MulAdd(f, f, square);
        hn::StoreU(hn::DemoteTo(di8, q), di8, tried + i);
      }
      const float product = hn::ReduceSum(df, dot), square_sum = hn::ReduceSum(df, square);
      const float scale = product / square_sum;
      if (std::abs(product * scale) <= best) continue;
      best = std::abs(product * scale);
      out.d = F32ToF16(scale);
      std::copy_n(tried, kNumbers, codes);
    }
  }
  const hn::FixedTag<uint8_t, 16> d8;
  const auto code = [&](size_t i) HWY_ATTR {
    return hn::Add(hn::LoadU(d8, reinterpret_cast<const uint8_t*>(codes) + i), hn::Set(d8, 8));
  };
  hn::StoreU(hn::Or(code(0), hn::ShiftLeft<4>(code(16))), d8, out.qs);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(ToQ4);

void RoundToQ4(const float* x, gguf::BlockQ4_0& out) { HWY_DYNAMIC_DISPATCH(ToQ4)(x, out); }

}  // namespace kernels
#endif  // HWY_ONCE
