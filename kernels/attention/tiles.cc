// Attention of a block of queries, see block.h.
//
// The queries (some tokens, with the query heads that share a key-value head) process one tile of
// keys after the other. Between the two products, scores = q . k and means = weights . v
// (products-inl.h in floats, lanes-inl.h in integers), scores become weights, 2^(score - maximum of
// the tile): log2 e is in the scale of scores. Earlier sums and new ones are scaled to the larger
// of their maximums (Dao et al. 2022).
//
// Tiles are aligned to positions, and weights of keys that a query does not see are zeros. So a
// query's sums do not depend on the other queries, except in integer products of a batch, where all
// queries of a block share the scales of the values.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/attention/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/tiles.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/attention/products-inl.h"
#include "kernels/attention/softmax-inl.h"
#if HWY_ARCH_X86
#include "kernels/attention/int16-inl.h"
#include "kernels/attention/int8-inl.h"
#endif
#include "kernels/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// out[row][lane] = keep[row] * out[row][lane] + sums[row][lane] for the first n_lanes lanes.
// Without `keep` out is overwritten.
template <size_t kRows, size_t kVectors>
HWY_INLINE void AddLanes(const VSums<kRows, kVectors>& sums, const float* HWY_RESTRICT keep,
                         const std::array<float*, kRows>& out, size_t n_lanes) {
  const DF d;
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      float* const to = out[r] + v * kFloats;
      const size_t count = n_lanes - std::min(n_lanes, v * kFloats);
      VF result = sums[r][v];
      if (keep != nullptr) result = hn::MulAdd(LoadUpTo(d, to, count), hn::Set(d, keep[r]), result);
      StoreUpTo(d, result, to, count);
    }
  }
}

template <size_t kRows, size_t kVectors>
HWY_INLINE void Add(const VSums<kRows, kVectors>& sums, const float* HWY_RESTRICT keep,
                    const std::array<float*, kRows>& out, size_t n_lanes) {
  constexpr size_t kWhole = kVectors * kFloats;
  if (n_lanes >= kWhole) return AddLanes<kRows, kVectors>(sums, keep, out, kWhole);
  AddLanes<kRows, kVectors>(sums, keep, out, n_lanes);
}

// The scores of a tile's keys, for kRows queries at a time. Groups of keys that none of these
// queries sees are skipped. `is_first`: this is the block's first tile, so its queries are packed.
template <size_t kRows, class Products>
HWY_INLINE void Score(const QueryBlock& block, const TileKeys& keys, bool is_first,
                      Products& products, BlockState& s) {
  static constexpr float kOnes[kQueryUnit] = {1, 1, 1, 1, 1, 1, 1, 1};
  const size_t n_slices = (block.kv.key_length + kSlice - 1) / kSlice;
  const bool stay_packed = n_slices * s.n_queries <= kSlots;
  for (size_t slice = 0; slice < n_slices; ++slice) {
    const size_t first = slice * kSlice, n = std::min(kSlice, block.kv.key_length - first);
    const size_t slot = stay_packed ? slice * s.n_queries : 0;
    if (is_first || !stay_packed) products.PackQueries(block, s, slot, first, n);
    constexpr size_t kGroup = Products::kGroupKeys;
    for (size_t group = keys.seen.begin / kGroup * kGroup; group < keys.seen.end; group += kGroup) {
      products.PackKeys(block, keys, group, first, n);
      for (size_t unit = 0; unit < s.n_queries; unit += kRows) {
        const Range seen = SeenBy(s, unit, kRows, keys);
        constexpr size_t kVectors = Products::template kVectors<kRows>, kStep = kVectors * kFloats;
        for (size_t key = 0; key < kGroup; key += kStep) {
          if (group + key >= seen.end || group + key + kStep <= seen.begin) continue;
          VSums<kRows, kVectors> sums;
          products.template Score<kRows>(slot + unit, key, n, unit == 0, sums);
          std::array<float*, kRows> scores;
          for (size_t r = 0; r < kRows; ++r) scores[r] = s.scores[unit + r] + group + key;
          Add(sums, first == 0 ? nullptr : kOnes, scores, kStep);
        }
      }
    }
  }
}

// out = keep * out + gain * weights . v of the same keys.
template <size_t kRows, class Products>
HWY_INLINE void AddValues(const QueryBlock& block, const TileKeys& keys, Products& products,
                          BlockState& s) {
  for (size_t first = 0; first < block.kv.value_length; first += kSlice) {
    const size_t n = std::min(kSlice, block.kv.value_length - first);
    products.PackValues(block, keys, first, n);
    if constexpr (Products::kIntegers) products.PackWeights(s, keys, first);
    for (size_t unit = 0; unit < s.n_present; unit += kRows) {
      const Range seen = SeenBy(s, unit, kRows, keys);
      if (seen.empty()) continue;
      constexpr size_t kVectors = Products::template kVectors<kRows>;
      for (size_t lane = 0; lane < n; lane += kVectors * kFloats) {
        VSums<kRows, kVectors> sums;
        if constexpr (Products::kIntegers) {
          products.template WeightedSum<kRows>(unit, seen, lane, sums);
        } else {
          products.template WeightedSum<kRows>(s, unit, seen, first, lane, n - lane, sums);
        }
        std::array<float*, kRows> out;
        for (size_t r = 0; r < kRows; ++r) out[r] = s.out[unit + r] + first + lane;
        Add(sums, s.keep + unit, out, n - lane);
      }
    }
  }
}

// The state before the first tile. n_together: queries that are processed at a time; the last query
// is repeated up to a multiple of it.
HWY_INLINE void Begin(const QueryBlock& block, const KeyPart& part, float per_score,
                      size_t n_together, BlockState& s) {
  std::fill_n(s.max, kBlockQueries, std::numeric_limits<float>::lowest());
  std::fill_n(s.sum, kBlockQueries, 0.0f);
  const size_t n = block.n_tokens * block.n_heads;
  s.n_present = n;
  s.n_queries = (n + n_together - 1) / n_together * n_together;
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t query = std::min(i, n - 1);
    const size_t token = query / block.n_heads, head = query % block.n_heads;
    s.q[i] = block.q + token * block.q_stride + head * block.kv.key_length;
    s.out[i] = block.out + token * block.out_stride + head * block.kv.value_length;
    const size_t position = block.first_pos + token;
    s.positions[i] = position;
    s.slopes[i] = block.params.slopes != nullptr ? block.params.slopes[head] * per_score : 0;
    s.first[i] = FirstVisible(position, block.params.window);
    s.last[i] = LastVisible(position, block.params.ahead, block.end);
    std::fill_n(s.out[i], block.kv.value_length, 0.0f);
    // A sink acts like a key without a value before all others.
    if (block.params.sinks != nullptr && s.first[i] >= part.begin) {
      s.max[i] = block.params.sinks[head] * per_score;
      s.sum[i] = 1;
    }
  }
}

// Divides the sums by the sums of the weights or, for only a part of the keys, returns both.
HWY_INLINE void End(const QueryBlock& block, const KeyPart& part, float per_score,
                    const BlockState& s) {
  for (size_t i = 0; i < s.n_present; ++i) {
    if (part.sum == nullptr) {
      const float factor = 1.0f / s.sum[i];
      for (size_t j = 0; j < block.kv.value_length; ++j) s.out[i][j] *= factor;
      continue;
    }
    const size_t to = i / block.n_heads * part.sum_stride + i % block.n_heads;
    part.max[to] = s.max[i] / per_score;
    part.sum[to] = s.sum[i];
  }
}

// Attention of the block. The sums of kRows queries are in registers at a time; scores in integers
// are made for kScoredQueries queries at a time.
template <size_t kRows, size_t kScoredQueries, class Products>
HWY_NOINLINE void AttendUnits(QueryBlock block, const KeyPart& part, bool few) {
  BlockState s;
  // Scores are kept times this, so that e^score is 2^(kept / Products::kPerDoubling).
  constexpr float kPerScore = Products::kPerDoubling * 1.44269504f;
  Begin(block, part, kPerScore, kScoredQueries, s);
  block.params.scale *= kPerScore;
  block.params.softcap *= kPerScore;
  s.few = few;
  Products products;
  const size_t begin = std::max(part.begin, s.first[0]);
  const size_t end = std::min(part.end, s.last[s.n_queries - 1] + 1);
  bool is_first = true;
  for (size_t key = begin / kKeys * kKeys; key < end; key += kKeys, is_first = false) {
    const size_t before = begin - std::min(begin, key);
    const size_t slot = key % block.kv.capacity;
    const TileKeys keys = {.position = key,
                           .slot = slot,
                           .seen = {before, std::min(kKeys, end - key)},
                           .stored = {0, block.kv.capacity - slot}};
    if constexpr (Products::kIntegers) {
      ScoreLanes<kScoredQueries / Products::kWidth>(block, keys, is_first, products, s);
    } else {
      Score<kRows>(block, keys, is_first, products, s);
    }
    Weigh<kRows, Products>(keys, {block.params.softcap, block.params.slopes != nullptr}, s);
    AddValues<kRows>(block, keys, products, s);
  }
  End(block, part, kPerScore, s);
}

// In floats, in units of the size that repeats the fewest queries: groups of 5, 6, 7 and 14 heads
// are common.
template <class Products>
HWY_INLINE void AttendFloats(const QueryBlock& block, const KeyPart& part) {
  const size_t n = block.n_tokens * block.n_heads;
  const auto units = [n](size_t rows) { return (n + rows - 1) / rows * rows; };
  if (n == 1) return AttendUnits<1, 1, Products>(block, part, true);
  if (n == 2) return AttendUnits<2, 2, Products>(block, part, true);
  if (n == 3) return AttendUnits<3, 3, Products>(block, part, true);
  if (n == 4) return AttendUnits<4, 4, Products>(block, part, true);
  const size_t fewest = std::min({units(6), units(7), units(8)});
  if (units(8) == fewest) return AttendUnits<8, 8, Products>(block, part, true);
  if (units(7) == fewest) return AttendUnits<7, 7, Products>(block, part, true);
  AttendUnits<6, 6, Products>(block, part, true);
}

// One function for each type: with a switch within a target, GCC makes slower code (NOTEBOOK.md).
void AttendF32(const QueryBlock& block, const KeyPart& part, bool /*few*/) {
  AttendFloats<FloatProducts<float>>(block, part);
}
void AttendF16(const QueryBlock& block, const KeyPart& part, [[maybe_unused]] bool few) {
#if HWY_ARCH_X86  // NEON multiplies floats as fast as int16
  if (!few) return AttendUnits<kQueryUnit, 2 * kFloats, Int16Products>(block, part, few);
#endif
  AttendFloats<FloatProducts<hwy::float16_t>>(block, part);
}
void AttendConverted(const QueryBlock& block, const KeyPart& part, bool /*few*/) {
  AttendFloats<FloatProducts<Converted>>(block, part);
}
void AttendQuantized(const QueryBlock& block, const KeyPart& part, [[maybe_unused]] bool few) {
#if HWY_ARCH_X86
  // Queries fill one vector of lanes, or two where that takes no more than two lanes for each.
  const size_t n = block.n_tokens * block.n_heads;
  if (n == 1) return AttendUnits<1, 2, Int8Products<kFloats / 2>>(block, part, few);
  if (n == 2) return AttendUnits<2, 2, Int8Products<kFloats / 2>>(block, part, few);
  if (n <= 4)
    return AttendUnits<4, 4, Int8Products<std::max<size_t>(kFloats / 4, 2)>>(block, part, few);
  if constexpr (kFloats >= 8) {
    if (n <= 8) return AttendUnits<kQueryUnit, 8, Int8Products<2>>(block, part, few);
    if (n <= kFloats) return AttendUnits<kQueryUnit, kFloats, Int8Products<2>>(block, part, few);
  }
  AttendUnits<kQueryUnit, 2 * kFloats, Int8Products<1>>(block, part, few);
#else
  AttendFloats<FloatProducts<Converted>>(block, part);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

#if HWY_ARCH_ARM_A64  // no form of attention has Arm's extensions
#undef PRONK_EXPORT
#undef PRONK_DISPATCH
#define PRONK_EXPORT HWY_EXPORT
#define PRONK_DISPATCH HWY_DYNAMIC_DISPATCH
#endif

PRONK_EXPORT(AttendF32);
PRONK_EXPORT(AttendF16);
PRONK_EXPORT(AttendQuantized);
PRONK_EXPORT(AttendConverted);

void AttendQueries(const QueryBlock& block, const KeyPart& part, bool few) {
  const KvTypes type = block.kv.type;
  if (IsBlocks(type.k) && IsBlocks(type.v)) {
    return PRONK_DISPATCH(AttendQuantized)(block, part, few);
  }
  if (type == KvType::kF32) return PRONK_DISPATCH(AttendF32)(block, part, few);
  if (type == KvType::kF16) return PRONK_DISPATCH(AttendF16)(block, part, few);
  PRONK_DISPATCH(AttendConverted)(block, part, few);
}

}  // namespace kernels
#endif  // HWY_ONCE
