// The two products of attention for a batch, a tile of queries with a tile of keys (tiles.cc), in
// floats. Included once per instruction set.
//
// Both have the shape that kernels/matmul/panel-inl.h explains. The lanes of a panel of keys are
// keys, so that a query's scores need no sums across lanes; the lanes of a panel of values are a
// value's numbers. A tile of keys is converted once for all queries.
#if defined(PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_
#undef PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <array>

#include "kernels/attention/block.h"
#include "kernels/attention/cached-inl.h"
#include "kernels/matmul/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kKeys = 128;     // of a tile
constexpr size_t kPart = 64;      // of a head's numbers, converted at a time
constexpr size_t kQueryUnit = 8;  // queries whose sums are in registers together
static_assert(kKvTile % kKeys == 0);
static_assert(kTileQueries % kQueryUnit == 0 && kKeys % kMicroRows == 0 && kPart % kMicroRows == 0);

// The state of a tile of queries from one tile of keys to the next. A tile's weights are relative
// to its own maximum: earlier sums count `keep` times, new ones `gain` times.
struct TileState {
  alignas(64) float scores[kTileQueries][kKeys];
  alignas(64) float max[kTileQueries], sum[kTileQueries];
  alignas(64) float tile_max[kTileQueries] = {}, tile_sum[kTileQueries] = {};
  alignas(64) float keep[kTileQueries], gain[kTileQueries];
  std::array<const float*, kTileQueries> q;
  std::array<float*, kTileQueries> out;
  std::array<size_t, kTileQueries> first, last;  // the query sees the keys [first, last]
  size_t n_present;                              // queries
  size_t n_queries;  // rounded up to a multiple of kQueryUnit by repeating the last query
};

// The keys of a tile, from position `key` and slot `slot` of the cache on.
struct TileKeys {
  size_t key, slot, n;
};

// The number of keys in [key, key + n_keys) before those that query i sees.
HWY_INLINE size_t HiddenKeys(const TileState& s, size_t i, size_t key, size_t n_keys) {
  return std::min(n_keys, s.first[i] - std::min(key, s.first[i]));
}
// Likewise before those that a unit's first query sees, which sees the most of them.
HWY_INLINE size_t HiddenUnitKeys(const TileState& s, size_t unit, size_t key, size_t n_keys) {
  return HiddenKeys(s, unit / kQueryUnit * kQueryUnit, key, n_keys);
}
// The number of keys up to the last that query i sees, hidden ones included.
HWY_INLINE size_t VisibleKeys(const TileState& s, size_t i, size_t key, size_t n_keys) {
  const size_t end = s.last[i] + 1;
  return std::min(n_keys, end - std::min(key, end));
}
// Likewise of a unit's last query, which sees the furthest.
HWY_INLINE size_t UnitKeys(const TileState& s, size_t unit, size_t key, size_t n_keys) {
  return VisibleKeys(s, unit / kQueryUnit * kQueryUnit + kQueryUnit - 1, key, n_keys);
}

using VSums = VF[kQueryUnit][kRowVectors];

// Numbers [first, first + n) of a cached vector as floats, zeros up to a multiple of the lanes.
template <typename T>
HWY_INLINE void LoadRow(const std::byte* HWY_RESTRICT row, size_t first, size_t n,
                        float* HWY_RESTRICT to) {
  const DF d;
  for (size_t i = 0; i < n; i += kFloats) {
    hn::StoreU(LoadCached<T>(d, row, first + i, first + n), d, to + i);
  }
}

// For caches of floats, and for CPUs on which int16 is not faster (int16-inl.h).
template <typename T>
class FloatProducts {
 public:
  // Numbers [first, first + n) of all queries, n <= kPart.
  void PackQueries(const QueryBlock& tile, const TileState& s, size_t first, size_t n) {
    std::fill_n(scales_, kTileQueries, tile.params.scale);
    for (size_t i = 0; i < s.n_queries; ++i) std::copy_n(s.q[i] + first, n, q_[i]);
  }

  // The same numbers of kMicroRows keys in the slots from `slot` on. After the last, end - 1, it is
  // repeated; those scores are not used.
  void PackKeys(const QueryBlock& tile, size_t slot, size_t end, size_t first, size_t n) {
    for (size_t r = 0; r < kMicroRows; ++r) {
      const size_t row = std::min(slot + r, end - 1);
      LoadRow<T>(tile.kv.k + row * CachedBytes<T>(tile.kv.key_length), first, n, rows_[r]);
    }
    Interleave<kPart, sizeof(rows_[0])>(reinterpret_cast<const uint8_t*>(rows_[0]), 0,
                                        reinterpret_cast<uint8_t*>(panel_));
  }

  // scale * q . k of the unit of queries from number `unit` on, over the numbers that are packed.
  HWY_INLINE void Score(size_t unit, size_t n, VSums& sums) const {
    Multiply<kPart>(panel_, kMicroRows, n, q_[unit], scales_ + unit, sums);
  }

  // For Mean: the weights of the keys [key, key + n_keys) are read from the state.
  void PackWeights(const TileState& /*s*/, size_t /*key*/, size_t /*n_keys*/) {}

  // Numbers [first, first + n) of the values in the slots from `slot` on, n <= kPart.
  void PackValues(const QueryBlock& tile, size_t slot, size_t n_keys, size_t first, size_t n) {
    for (size_t p = 0; p < n_keys; ++p) {
      const std::byte* const v = tile.kv.v + (slot + p) * CachedBytes<T>(tile.kv.value_stride);
      LoadRow<T>(v, first, n, panel_ + p * kPart);
    }
  }

  // gain * weights . v of a unit for the numbers from first + lane on, over the first n_keys keys.
  HWY_INLINE void Mean(const TileState& s, size_t unit, size_t lane, size_t n_keys,
                       VSums& sums) const {
    Multiply<kKeys>(panel_ + lane, kPart, n_keys, s.scores[unit], s.gain + unit, sums);
  }

 private:
  // sums[row][lane] = gain[row] * sum over i < n of x[row * kStride + i] * w[i * w_stride + lane].
  // Rows that are a constant stride apart need one register for all of their addresses.
  template <size_t kStride>
  static HWY_INLINE void Multiply(const float* HWY_RESTRICT w, size_t w_stride, size_t n,
                                  const float* HWY_RESTRICT x, const float* HWY_RESTRICT gain,
                                  VSums& sums) {
    const DF d;
    HWY_UNROLL(kQueryUnit)
    for (size_t r = 0; r < kQueryUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) sums[r][v] = hn::Zero(d);
    }
    for (size_t i = 0; i < n; ++i) {
      VF weights[kRowVectors];
      for (size_t v = 0; v < kRowVectors; ++v) {
        weights[v] = hn::LoadU(d, w + i * w_stride + v * kFloats);
      }
      HWY_UNROLL(kQueryUnit)
      for (size_t r = 0; r < kQueryUnit; ++r) {
        const VF factor = hn::Set(d, x[r * kStride + i]);
        for (size_t v = 0; v < kRowVectors; ++v) {
          sums[r][v] = hn::MulAdd(weights[v], factor, sums[r][v]);
        }
      }
    }
    HWY_UNROLL(kQueryUnit)
    for (size_t r = 0; r < kQueryUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v)
        sums[r][v] = hn::Mul(sums[r][v], hn::Set(d, gain[r]));
    }
  }

  alignas(64) float panel_[kPart * kKeys];
  alignas(64) float q_[kTileQueries][kPart];
  alignas(64) float rows_[kMicroRows][kPart];  // of keys
  float scales_[kTileQueries];
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_
