// Attention for a batch, see block.h.
//
// A tile of queries (some tokens, with all query heads that share a key-value head) processes one
// tile of keys after the other. Between the two products, scores = q . k and means = weights . v
// (products-inl.h, int16-inl.h), scores become weights, exp(score - maximum of the tile). Earlier
// sums and new ones are scaled to the larger of their maximums (Dao et al. 2022).
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/attention/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/tiles.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#if HWY_ARCH_X86
#include "kernels/attention/int16-inl.h"
#endif
#include "kernels/attention/products-inl.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using OutRows = std::array<float*, kQueryUnit>;

// out[row][lane] = keep[row] * out[row][lane] + sums[row][lane] for the first n_lanes lanes.
// Without `keep` out is overwritten.
HWY_INLINE void Add(const VSums& sums, const float* HWY_RESTRICT keep, const OutRows& out,
                    size_t n_lanes) {
  const DF d;
  for (size_t r = 0; r < kQueryUnit; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) {
      float* const to = out[r] + v * kFloats;
      const size_t count = n_lanes - std::min(n_lanes, v * kFloats);
      VF result = sums[r][v];
      if (keep != nullptr) {
        result = hn::MulAdd(LoadUpTo(d, to, count), hn::Set(d, keep[r]), result);
      }
      StoreUpTo(d, result, to, count);
    }
  }
}

// The scores of a tile's keys; skips groups of keys of which a unit of queries sees none.
// `is_first`: this is the first tile.
template <class Products>
HWY_INLINE void Score(const QueryBlock& tile, const TileKeys& keys, bool is_first,
                      Products& products, TileState& s) {
  static constexpr float kOnes[kQueryUnit] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t first = 0; first < tile.kv.key_length; first += kPart) {
    const size_t n = std::min(kPart, tile.kv.key_length - first);
    // Queries of one part stay packed.
    if (is_first || tile.kv.key_length > kPart) products.PackQueries(tile, s, first, n);
    for (size_t group = 0; group < keys.n; group += kMicroRows) {
      products.PackKeys(tile, keys.slot + group, keys.slot + keys.n, first, n);
      for (size_t unit = 0; unit < s.n_queries; unit += kQueryUnit) {
        if (group >= UnitKeys(s, unit, keys.key, keys.n)) continue;
        if (group + kMicroRows <= HiddenUnitKeys(s, unit, keys.key, keys.n)) continue;
        VSums sums;
        products.Score(unit, n, sums);
        OutRows scores;
        for (size_t r = 0; r < kQueryUnit; ++r) scores[r] = s.scores[unit + r] + group;
        Add(sums, first == 0 ? nullptr : kOnes, scores, kMicroRows);
      }
    }
  }
}

// Turns query i's scores into weights relative to their maximum: zeros for the keys that it does
// not see, up to a multiple of 32 of those that its unit sees.
HWY_INLINE void WeighQuery(const TileKeys& keys, float softcap, size_t i, TileState& s) {
  const DF d;
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  float* const scores = s.scores[i];
  const size_t begin = HiddenKeys(s, i, keys.key, keys.n);
  const size_t n = std::max(VisibleKeys(s, i, keys.key, keys.n), begin);
  const size_t end = (UnitKeys(s, i, keys.key, keys.n) + 31) / 32 * 32;
  if (softcap != 0) {
    for (size_t p = begin / kFloats * kFloats; p < n; p += kFloats) {
      hn::Store(SoftCap(d, hn::Load(d, scores + p), softcap), d, scores + p);
    }
  }
  std::fill(scores, scores + begin, kLowest);
  if (n < end) std::fill(scores + n, scores + end, kLowest);
  VF max = hn::Set(d, kLowest);
  for (size_t p = 0; p < end; p += kFloats) max = hn::Max(max, hn::Load(d, scores + p));
  max = hn::MaxOfLanes(d, max);
  VF sum = hn::Zero(d);
  for (size_t p = 0; p < end; p += kFloats) {
    const VF e = Exp(d, hn::Sub(hn::Load(d, scores + p), max));
    hn::Store(e, d, scores + p);
    sum = hn::Add(sum, e);
  }
  std::fill(scores, scores + begin, 0.0f);
  if (n < end) std::fill(scores + n, scores + end, 0.0f);
  s.tile_max[i] = hn::GetLane(max);
  s.tile_sum[i] = begin < n ? hn::ReduceSum(d, sum) : 0;
}

// The weights of all queries, and the factors of these and of earlier sums.
HWY_INLINE void Weigh(const TileKeys& keys, float softcap, TileState& s) {
  const DF d;
  for (size_t i = 0; i < s.n_queries; ++i) WeighQuery(keys, softcap, i, s);
  for (size_t i = 0; i < s.n_queries; i += kFloats) {
    const VF old_max = hn::Load(d, s.max + i), tile_max = hn::Load(d, s.tile_max + i);
    const VF max = hn::Max(old_max, tile_max);
    const VF keep = Exp(d, hn::Sub(old_max, max)), gain = Exp(d, hn::Sub(tile_max, max));
    const VF sum =
        hn::MulAdd(hn::Load(d, s.sum + i), keep, hn::Mul(hn::Load(d, s.tile_sum + i), gain));
    hn::Store(max, d, s.max + i);
    hn::Store(sum, d, s.sum + i);
    hn::Store(keep, d, s.keep + i);
    hn::Store(gain, d, s.gain + i);
  }
  // Padding queries of the last unit share the last query's result and leave it unchanged.
  std::fill(s.keep + s.n_present, s.keep + s.n_queries, 1.0f);
  std::fill(s.gain + s.n_present, s.gain + s.n_queries, 0.0f);
}

// out = keep * out + gain * weights . v of the same keys.
template <class Products>
HWY_INLINE void AddValues(const QueryBlock& tile, const TileKeys& keys, Products& products,
                          TileState& s) {
  products.PackWeights(s, keys.key, keys.n);
  for (size_t first = 0; first < tile.kv.value_length; first += kPart) {
    const size_t n = std::min(kPart, tile.kv.value_length - first);
    products.PackValues(tile, keys.slot, keys.n, first, n);
    for (size_t unit = 0; unit < s.n_queries; unit += kQueryUnit) {
      const size_t n_visible = UnitKeys(s, unit, keys.key, keys.n);
      if (n_visible <= HiddenUnitKeys(s, unit, keys.key, keys.n)) continue;
      for (size_t lane = 0; lane < n; lane += kMicroRows) {
        VSums sums;
        products.Mean(s, unit, lane, n_visible, sums);
        OutRows out;
        for (size_t r = 0; r < kQueryUnit; ++r) out[r] = s.out[unit + r] + first + lane;
        Add(sums, s.keep + unit, out, n - lane);
      }
    }
  }
}

HWY_INLINE void BeginTile(const QueryBlock& tile, TileState& s) {
  std::fill_n(s.max, kTileQueries, std::numeric_limits<float>::lowest());
  std::fill_n(s.sum, kTileQueries, 0.0f);
  const size_t n = tile.n_tokens * tile.n_heads;
  s.n_present = n;
  s.n_queries = (n + kQueryUnit - 1) / kQueryUnit * kQueryUnit;
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t query = std::min(i, n - 1);
    const size_t token = query / tile.n_heads, head = query % tile.n_heads;
    s.q[i] = tile.q + token * tile.q_stride + head * tile.kv.key_length;
    s.out[i] = tile.out + token * tile.out_stride + head * tile.kv.value_length;
    const size_t pos = tile.first_pos + token;
    s.first[i] = FirstVisible(pos, tile.params.window);
    s.last[i] = LastVisible(pos, tile.params.ahead, tile.end);
    std::fill_n(s.out[i], tile.kv.value_length, 0.0f);
    // A sink acts like a key without a value before all others.
    if (tile.params.sinks != nullptr) {
      s.max[i] = tile.params.sinks[head];
      s.sum[i] = 1;
    }
  }
}

template <class Products>
HWY_INLINE void Attend(const QueryBlock& tile) {
  TileState s;
  BeginTile(tile, s);
  Products products;
  const size_t begin = FirstVisible(tile.first_pos, tile.params.window);
  const size_t end = s.last[s.n_queries - 1] + 1;
  for (size_t key = begin, next; key < end; key = next) {
    next = std::min((key / kKeys + 1) * kKeys, end);  // aligned, so that no tile wraps
    const TileKeys keys = {key, key % tile.kv.capacity, next - key};
    Score(tile, keys, key == begin, products, s);
    Weigh(keys, tile.params.softcap, s);
    AddValues(tile, keys, products, s);
  }
  for (size_t i = 0; i < tile.n_tokens * tile.n_heads; ++i) {
    const float factor = 1.0f / s.sum[i];
    for (size_t j = 0; j < tile.kv.value_length; ++j) s.out[i][j] *= factor;
  }
}

// For f16 and Q8_0 caches.
#if HWY_ARCH_X86
template <typename T>
using RoundedProducts = Int16Products<T>;
#else  // NEON multiplies floats as fast as int16
template <typename T>
using RoundedProducts = FloatProducts<T>;
#endif

// One function for each type, as in few.cc.
void AttendTileF32(const QueryBlock& tile) { Attend<FloatProducts<float>>(tile); }
void AttendTileF16(const QueryBlock& tile) { Attend<RoundedProducts<hwy::float16_t>>(tile); }
void AttendTileQ8(const QueryBlock& tile) { Attend<RoundedProducts<gguf::BlockQ8_0>>(tile); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(AttendTileF32);
HWY_EXPORT(AttendTileF16);
HWY_EXPORT(AttendTileQ8);

void AttendTile(const QueryBlock& tile) {
  switch (tile.kv.type) {
    case KvType::kF32:
      return HWY_DYNAMIC_DISPATCH(AttendTileF32)(tile);
    case KvType::kF16:
      return HWY_DYNAMIC_DISPATCH(AttendTileF16)(tile);
    case KvType::kQ8_0:
      return HWY_DYNAMIC_DISPATCH(AttendTileQ8)(tile);
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
