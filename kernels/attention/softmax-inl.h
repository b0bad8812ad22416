// Scores of a tile become attention weights, by which its values are multiplied (key_tiles.cc).
// Included once per instruction set.
#if defined(PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#undef PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <limits>

#include "kernels/attention/float_products-inl.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// The changes of scores before they become attention weights.
struct Correction {
  float softcap;  // 0: no cap
  bool has_slopes;
};

// Finds query i's largest score. Scores of keys up to `end` that the query does not see become the
// lowest float. The largest is always above that, even if the query sees no key.
HWY_INLINE void FindMax(const KeyTile& tile, KeyRange seen, size_t end, Correction change, size_t i,
                        QueryState& s) {
  const DF d;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  float* const scores = s.scores[i];
  if (change.softcap != 0) {
    for (size_t p = seen.begin / kFloatLanes * kFloatLanes; p < seen.end; p += kFloatLanes) {
      hn::Store(SoftCap(d, hn::Load(d, scores + p), change.softcap), d, scores + p);
    }
  }
  if (change.has_slopes) {
    const VF slope = hn::Set(d, s.slopes[i]), distance = hn::Set(d, s.DistanceOf(i, tile));
    for (size_t p = seen.begin / kFloatLanes * kFloatLanes; p < seen.end; p += kFloatLanes) {
      const VF from = hn::Add(hn::Iota(d, static_cast<float>(p)), distance);
      hn::Store(hn::MulAdd(from, slope, hn::Load(d, scores + p)), d, scores + p);
    }
  }
  for (size_t p = 0; p < seen.begin; ++p) scores[p] = kLowest;
  for (size_t p = seen.end; p < end; ++p) scores[p] = kLowest;
  VF max = hn::Set(d, kLowest / 2);
  for (size_t p = 0; p < end; p += kFloatLanes) max = hn::Max(max, hn::Load(d, scores + p));
  s.tile_max[i] = hn::ReduceMax(d, max);
}

// Turns query i's scores into attention weights relative to their maximum. Keys up to `end` that
// the query does not see get zeros. In the sum, each of these keys still counts 2^-125: too little
// to change the bits of a sum that has the largest weight, 1.
HWY_INLINE void WeighQuery(KeyRange seen, size_t end, size_t i, QueryState& s) {
  const DF d;
  float* const scores = s.scores[i];
  const VF max = hn::Set(d, s.tile_max[i]);
  VF sum = hn::Zero(d);
  for (size_t p = 0; p < end; p += kFloatLanes) {
    const VF e = Exp2OfNegative(d, hn::Sub(hn::Load(d, scores + p), max));
    hn::Store(e, d, scores + p);
    sum = hn::Add(sum, e);
  }
  for (size_t p = 0; p < seen.begin; ++p) scores[p] = 0;
  for (size_t p = seen.end; p < end; ++p) scores[p] = 0;
  s.tile_sum[i] = seen.empty() ? 0 : hn::ReduceSum(d, sum);
}

// Computes the attention weights of all queries (integer products have already made theirs), and
// the factors that scale this tile's sums and the earlier sums. The latency of a query's maximum is
// long, so it is found four queries ahead.
template <size_t kQueries, class Products>
HWY_INLINE void Weigh(const KeyTile& tile, Correction change, QueryState& s) {
  const DF d;
  if constexpr (!Products::kIntegers) {
    const auto seen = [&](size_t i) {
      const KeyRange keys = SeenBy(s, i, 1, tile);
      return keys.empty() ? KeyRange{} : keys;
    };
    const auto end = [&](size_t i) {
      return (SeenBy(s, i / kQueries * kQueries, kQueries, tile).end + 63) / 64 * 64;
    };
    constexpr size_t kAhead = 4;
    for (size_t next = 0; next < s.n_padded + kAhead; ++next) {
      if (next < s.n_padded) FindMax(tile, seen(next), end(next), change, next, s);
      if (next >= kAhead) WeighQuery(seen(next - kAhead), end(next - kAhead), next - kAhead, s);
    }
  }
  const VF power = hn::Set(d, 1 / Products::kUnitsPerOctave),
           one = hn::Set(d, 1 / Products::kWeightOfOne);
  for (size_t i = 0; i < s.n_padded; i += kFloatLanes) {
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
  // Padding queries point at the last query's result and leave it unchanged.
  std::fill(s.keep + s.n_queries, s.keep + s.n_padded, 1.0f);
  std::fill(s.gain + s.n_queries, s.gain + s.n_padded, 0.0f);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_SOFTMAX_INL_H_
