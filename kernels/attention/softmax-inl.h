// Scores of a tile become weights of its values (tiles.cc). Included once per instruction set.
#if defined(PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/attention/products-inl.h"
#include "kernels/simd/exp-inl.h"
#if HWY_ARCH_X86
#include "kernels/attention/int16-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Query i's largest score. Those of keys that it does not see become the lowest number, up to
// `end`; the largest is higher.
HWY_INLINE void FindMax(Range seen, size_t end, float softcap, size_t i, BlockState& s) {
  const DF d;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  float* const scores = s.scores[i];
  if (softcap != 0) {
    for (size_t p = seen.begin / kFloats * kFloats; p < seen.end; p += kFloats) {
      hn::Store(SoftCap(d, hn::Load(d, scores + p), softcap), d, scores + p);
    }
  }
  for (size_t p = 0; p < seen.begin; ++p) scores[p] = kLowest;
  for (size_t p = seen.end; p < end; ++p) scores[p] = kLowest;
  VF max = hn::Set(d, kLowest / 2);
  for (size_t p = 0; p < end; p += kFloats) max = hn::Max(max, hn::Load(d, scores + p));
  s.tile_max[i] = hn::ReduceMax(d, max);
}

// Turns query i's scores into weights relative to their maximum: zeros for the keys that it does
// not see, up to `end`. In the sum those are 2^-125 beside the largest, 1, which leaves its bits.
HWY_INLINE void WeighQuery(Range seen, size_t end, size_t i, BlockState& s) {
  const DF d;
  float* const scores = s.scores[i];
  const VF max = hn::Set(d, s.tile_max[i]);
  VF sum = hn::Zero(d);
  for (size_t p = 0; p < end; p += kFloats) {
    const VF e = Exp2OfNegative(d, hn::Sub(hn::Load(d, scores + p), max));
    hn::Store(e, d, scores + p);
    sum = hn::Add(sum, e);
  }
  for (size_t p = 0; p < seen.begin; ++p) scores[p] = 0;
  for (size_t p = seen.end; p < end; ++p) scores[p] = 0;
  s.tile_sum[i] = seen.empty() ? 0 : hn::ReduceSum(d, sum);
}

#if HWY_ARCH_X86
// The same with weights as integers, 1 as 32767, in place of the scores, in the order of FirstKey.
//
// The largest score is 32767 steps, of which 2048 are a power of two, and -32768 stands for all
// below 2^-32. So the high bits of 32767 - steps are the exponent, and of the others, f, 2^-f is a
// polynomial in integers: 9e-5 too much on average, with a deviation of 5e-5, and at most 1.9e-4.
HWY_INLINE void WeighInIntegers(size_t end, size_t i, BlockState& s) {
  const DF d;
  const DU16 d16;
  using VU16 = hn::Vec<DU16>;
  float* const scores = s.scores[i];
  const VF offset = hn::Set(d, 32767.5f - s.tile_max[i]);
  VF any = hn::Zero(d);  // becomes a NaN if a score is one
  VI32 sum = hn::Zero(DI32());
  const auto steps = [&](size_t p) HWY_ATTR {
    const VF x = hn::Add(hn::Load(d, scores + p), offset);
    any = hn::Add(any, x);
    return hn::ConvertInRangeTo(DI32(), x);  // on x86 the lowest of all where it is not
  };
  const auto minus = [](uint16_t c, VU16 f, VU16 p)
                         HWY_ATTR { return hn::Sub(hn::Set(DU16(), c), hn::MulHigh(f, p)); };
  for (size_t p = 0; p < end; p += kPairLanes) {
    const VI32 low = steps(p), high = steps(p + kFloats);
    const VU16 down =
        hn::Xor(hn::BitCast(d16, hn::ReorderDemote2To(DI16(), low, high)), hn::Set(d16, 0x7FFF));
    const VU16 f = hn::ShiftLeft<5>(down);
    const VU16 power = minus(65534, f, minus(45289, f, minus(15079, f, hn::Set(d16, 2557))));
    // Shifts by 16 and more make 0 on x86.
    const VU16 shifted = hn::Shr(power, hn::ShiftRight<11>(down));
    const VI16 weights = hn::BitCast(DI16(), hn::AverageRound(shifted, hn::Zero(d16)));
    sum = DotWords(sum, weights, hn::Set(DI16(), 1));
    hn::Store(weights, DI16(), Integers(scores) + p);
  }
  s.tile_sum[i] = static_cast<float>(hn::ReduceSum(DI32(), sum));
  if (!hn::AllFalse(d, hn::IsNaN(any))) s.tile_sum[i] = std::numeric_limits<float>::quiet_NaN();
}
#endif

// The weights of all queries, and the factors of these and of earlier sums. A query's
// maximum takes a while, so it is found four queries ahead.
template <size_t kRows, class Products>
HWY_INLINE void Weigh(const TileKeys& keys, float softcap, BlockState& s) {
  const DF d;
  const auto seen = [&](size_t i) {
    const Range range = SeenBy(s, i, 1, keys);
    return range.empty() ? Range{} : range;
  };
  const auto end = [&](size_t i) {
    return (SeenBy(s, i / kRows * kRows, kRows, keys).end + 63) / 64 * 64;
  };
  constexpr size_t kAhead = 4;
  for (size_t next = 0; next < s.n_queries + kAhead; ++next) {
    if (next < s.n_queries) FindMax(seen(next), end(next), softcap, next, s);
    if (next < kAhead) continue;
    const size_t i = next - kAhead;
    if constexpr (Products::kIntegerWeights) {
      WeighInIntegers(end(i), i, s);
    } else {
      WeighQuery(seen(i), end(i), i, s);
    }
  }
  const VF power = hn::Set(d, 1 / Products::kSteps), one = hn::Set(d, 1 / Products::kOne);
  for (size_t i = 0; i < s.n_queries; i += kFloats) {
    const VF old_max = hn::Load(d, s.max + i), tile_max = hn::Load(d, s.tile_max + i);
    const VF max = hn::Max(old_max, tile_max);
    const VF keep = Exp2OfNegative(d, hn::Mul(hn::Sub(old_max, max), power));
    const VF gain = Exp2OfNegative(d, hn::Mul(hn::Sub(tile_max, max), power));
    const VF sum = hn::MulAdd(hn::Load(d, s.sum + i), keep,
                              hn::Mul(hn::Mul(hn::Load(d, s.tile_sum + i), one), gain));
    hn::Store(max, d, s.max + i);
    hn::Store(sum, d, s.sum + i);
    hn::Store(keep, d, s.keep + i);
    hn::Store(gain, d, s.gain + i);
  }
  // Padding queries of the last unit share the last query's result and leave it unchanged.
  std::fill(s.keep + s.n_present, s.keep + s.n_queries, 1.0f);
  std::fill(s.gain + s.n_present, s.gain + s.n_queries, 0.0f);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
