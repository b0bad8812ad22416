// The two products of attention, a block of queries with a tile of keys (tiles.cc), in floats.
// Included once per instruction set.
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
#include <bit>

#include "kernels/attention/block.h"
#include "kernels/attention/cached-inl.h"
#include "kernels/matmul/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kKeys = kKvTile;  // of a tile
constexpr size_t kSlice = 64;      // of a head's numbers, converted at a time
constexpr size_t kQueryUnit = 8;   // the most queries whose sums are in registers together
constexpr size_t kSlots = 2 * kBlockQueries;  // for packed slices of queries
static_assert(kBlockQueries % kQueryUnit == 0 && kKeys % kMicroRows == 0);
static_assert(kSlice % kMicroRows == 0);

// Keys of a tile, counted from its first position.
struct Range {
  size_t begin, end;
  bool empty() const { return begin >= end; }
  bool operator==(const Range&) const = default;
};

// A tile of keys: position and slot of its first key, and those that the block's queries see.
struct TileKeys {
  size_t position, slot;
  Range seen;
  Range stored;  // allocated slots, which may hold anything
};

// Prefetches the next tile while this one is multiplied: kBytes in each step of a loop, if
// `wanted`. All at once would wait for memory instead of multiplying (f16, 8 queries: 21 ns a key,
// not 12).
template <size_t kBytes>
class Prefetcher {
 public:
  Prefetcher(const std::byte* p, bool wanted) : p_(p), step_(wanted ? kBytes : 0) {}
  HWY_INLINE void Step() {
    for (size_t i = 0; i < kBytes; i += 64) __builtin_prefetch(p_ + i);
    p_ += step_;
  }

 private:
  const std::byte* p_;
  size_t step_;
};

// The data of the next tile that a loop over a part of the numbers, `before` bytes into a vector,
// prefetches.
HWY_INLINE const std::byte* NextTile(const std::byte* cache, size_t bytes, const TileKeys& keys,
                                     size_t before) {
  return cache + (keys.slot + kKeys) * bytes + kKeys * before;
}

// Rows of bytes in memory.
struct CachedRows {
  const std::byte* first;
  size_t stride;
  const std::byte* operator[](size_t i) const { return first + i * stride; }
};

// Bytes [offset, offset + size) of n cached vectors of a tile, from vector `begin` on: in place, or
// as a copy if some are outside the range `in_place`. The copy has seen vectors in place of unseen
// ones, whose scores and weights are ignored.
HWY_INLINE CachedRows FindRows(const std::byte* cache, size_t bytes, const TileKeys& keys,
                               Range in_place, size_t begin, size_t n, size_t offset, size_t size,
                               std::byte* copy, size_t copy_stride) {
  const CachedRows rows = {cache + keys.slot * bytes + offset, bytes};
  if (in_place.begin <= begin && begin + n <= in_place.end) return {rows[begin], bytes};
  for (size_t i = 0; i < n; ++i) {
    const size_t row = std::clamp(begin + i, keys.seen.begin, keys.seen.end - 1);
    std::copy_n(rows[row], size, copy + i * copy_stride);
  }
  return {copy, copy_stride};
}

// The state of a block of queries from one tile of keys to the next. A tile's weights are relative
// to its own maximum: earlier sums count `keep` times, new ones `gain` times.
struct BlockState {
  // In integers [kKeys / kShare][kFloats] for each vector of lanes, then pairs of weights.
  alignas(64) float scores[kBlockQueries][kKeys];
  alignas(64) float max[kBlockQueries], sum[kBlockQueries];
  alignas(64) float tile_max[kBlockQueries] = {}, tile_sum[kBlockQueries] = {};
  alignas(64) float keep[kBlockQueries], gain[kBlockQueries];
  std::array<const float*, kBlockQueries> q;
  std::array<float*, kBlockQueries> out;
  std::array<size_t, kBlockQueries> first, last;  // the query sees the keys [first, last]
  // The increase of a score from one key to the next (ALiBi), and the query's position, where ALiBi
  // adds 0.
  std::array<float, kBlockQueries> slopes;
  std::array<size_t, kBlockQueries> positions;

  // From query i to the tile's first key. An integer, so that a score's bits do not depend on how
  // keys are divided among lanes.
  float DistanceOf(size_t i, const TileKeys& keys) const {
    return static_cast<float>(keys.position) - static_cast<float>(positions[i]);
  }
  bool few;          // each query's result has the same bits as alone
  size_t n_present;  // queries
  size_t n_queries;  // rounded up to a multiple of a unit by repeating the last query
};

// The keys of a tile that some of the queries [begin, begin + n) see. The first query of a block
// sees the earliest keys, the last query the latest.
HWY_INLINE Range SeenBy(const BlockState& s, size_t begin, size_t n, const TileKeys& keys) {
  const auto in_tile = [&](size_t position) {
    return std::min(position - std::min(position, keys.position), keys.seen.end);
  };
  return {in_tile(s.first[begin]), in_tile(s.last[begin + n - 1] + 1)};
}

// Sums of a unit of kRows queries.
template <size_t kRows, size_t kVectors>
using VSums = VF[kRows][kVectors];

// Numbers [first, first + n) of a cached vector as floats, zeros up to a multiple of the lanes.
template <typename T>
HWY_INLINE void LoadRow(const std::byte* HWY_RESTRICT row, size_t first, size_t n,
                        float* HWY_RESTRICT to) {
  const DF d;
  for (size_t i = 0; i < n; i += kFloats) {
    hn::StoreU(LoadCached<T>(d, row, first + i, first + n), d, to + i);
  }
}

// Stands for the elements of a cache of any types, which become floats before they are used.
struct Converted {};

// In floats. A sum is one chain of additions, whatever the other queries of its block are. T: the
// element of both keys and values.
template <typename T>
class FloatProducts {
 public:
  // Vectors of sums for each of kRows queries: as many as there are registers for, so that an
  // addition need not wait for the one before it.
  template <size_t kRows>
  static constexpr size_t kVectors =
      std::min(std::bit_floor((HWY_ARCH_X86 && kPieces < 4 ? 8 : 16) / kRows), kSlice / kFloats);
  static constexpr size_t kGroupKeys = kVectors<1> * kFloats;  // packed at a time
  static constexpr float kPerDoubling = 1;  // adding this to a kept score doubles the weight
  static constexpr float kOne = 1;          // what a weight of 1 is
  static constexpr bool kIntegers = false;

  // Numbers [first, first + n) of all queries, n <= kSlice, to the slots from `slot` on.
  void PackQueries(const QueryBlock& block, const BlockState& s, size_t slot, size_t first,
                   size_t n) {
    std::fill_n(scales_, kQueryUnit, block.params.scale);
    for (size_t i = 0; i < s.n_queries; ++i) std::copy_n(s.q[i] + first, n, q_[slot + i]);
  }

  // Transposes the numbers [first, first + n) of kGroupKeys keys of a tile, from key `group` on.
  // Numbers in f16 are moved as pairs and separated afterwards.
  void PackKeys(const QueryBlock& block, const TileKeys& keys, size_t group, size_t first,
                size_t n) {
    const KvType type = block.kv.type.k;
    const size_t bytes = KvBytes(type, block.kv.key_length);
    next_keys_ = NextTile(block.kv.k, bytes, keys, KvBytes(type, first)) + group * KvBytes(type, n);
    const size_t left = keys.seen.end - group;
    const size_t n_keys =
        std::min(kGroupKeys, (left + kTransposed - 1) / kTransposed * kTransposed);
    CachedRows rows;
    if constexpr (kConverts) {
      WithElement(type, [&](auto element) HWY_ATTR {
        for (size_t r = 0; r < n_keys; ++r) {
          const size_t key = std::clamp(group + r, keys.seen.begin, keys.seen.end - 1);
          LoadRow<decltype(element)>(block.kv.k + (keys.slot + key) * bytes, first, n, rows_[r]);
        }
      });
      rows = {reinterpret_cast<const std::byte*>(rows_), sizeof(rows_[0])};
    } else {
      const bool whole =
          n * kNumberBytes % kChunk == 0;  // else a row's end may be that of the cache
      rows = FindRows(block.kv.k, bytes, keys, whole ? keys.stored : Range{}, group, n_keys,
                      first * kNumberBytes, n * kNumberBytes, reinterpret_cast<std::byte*>(rows_),
                      sizeof(rows_[0]));
    }
    for (size_t key = 0; key < n_keys; key += kTransposed) {
      for (size_t chunk = 0; chunk < n * kNumberBytes; chunk += kChunk) {
        const auto* const in = reinterpret_cast<const uint8_t*>(rows[key]) + chunk;
        const size_t to = chunk / kNumberBytes * kGroupKeys + key;
        VU8 low[4], high[4];
        TransposeFour(in, rows.stride, 0, [&](VU8 v, size_t i) HWY_ATTR { low[i] = v; });
        TransposeFour(in + kFloats * rows.stride, rows.stride, 0,
                      [&](VU8 v, size_t i) HWY_ATTR { high[i] = v; });
        HWY_UNROLL(4)
        for (size_t i = 0; i < 4; ++i) {
          if constexpr (kNumberBytes == 2) {
            const DU16 d16;
            const auto a = hn::BitCast(d16, low[i]), b = hn::BitCast(d16, high[i]);
            uint16_t* const panel = reinterpret_cast<uint16_t*>(panel_) + to + 2 * i * kGroupKeys;
            hn::Store(hn::ConcatEven(d16, b, a), d16, panel);
            hn::Store(hn::ConcatOdd(d16, b, a), d16, panel + kGroupKeys);
          } else {
            float* const panel = panel_ + to + i * kGroupKeys;
            hn::Store(hn::BitCast(DF(), low[i]), DF(), panel);
            hn::Store(hn::BitCast(DF(), high[i]), DF(), panel + kFloats);
          }
        }
      }
    }
  }

  // scale * q . k of the unit of queries in the slots from `slot` on and the keys from number `key`
  // of the group on, over the n numbers that are packed. prefetches: a share of the next tile.
  template <size_t kRows>
  HWY_INLINE void Score(size_t slot, size_t key, size_t n, bool prefetches,
                        VSums<kRows, kVectors<kRows>>& sums) const {
    const DF d;
    const auto load = [&](size_t i, size_t v) HWY_ATTR {
      const size_t at = i * kGroupKeys + key + v * kFloats;
      if constexpr (kNumberBytes == 2) {
        return hn::PromoteTo(
            d, hn::Load(hn::Rebind<T, DF>(), reinterpret_cast<const T*>(panel_) + at));
      } else {
        return hn::Load(d, panel_ + at);
      }
    };
    Prefetcher<kStep<kRows>> ahead(next_keys_ + key * n * kNumberBytes, prefetches);
    Multiply<kRows, kSlice>(load, {0, n}, q_[slot], scales_, ahead, sums);
  }

  // Numbers [first, first + n) of a tile's values, n <= kSlice: converted once for all queries, or
  // where they are used.
  void PackValues(const QueryBlock& block, const TileKeys& keys, size_t first, size_t n) {
    const KvType type = block.kv.type.v;
    bytes_ = KvBytes(type, block.kv.value_stride);
    values_ = block.kv.v + keys.slot * bytes_;
    next_values_ = NextTile(block.kv.v, bytes_, keys, KvBytes(type, first));
    if constexpr (kConverts) {
      WithElement(type, [&](auto element) HWY_ATTR {
        for (size_t p = keys.seen.begin; p < keys.seen.end; ++p) {
          LoadRow<decltype(element)>(values_ + p * bytes_, first, n, panel_ + p * kSlice);
        }
      });
    }
  }

  // gain * weights . v of a unit for the numbers from first + lane on, of which n exist, over keys.
  template <size_t kRows>
  HWY_INLINE void WeightedSum(const BlockState& s, size_t unit, Range keys, size_t first,
                              size_t lane, size_t n, VSums<kRows, kVectors<kRows>>& sums) const {
    const DF d;
    Prefetcher<kStep<kRows>> ahead(next_values_ + kKeys * lane * kNumberBytes,
                                   unit == 0 && !kConverts);
    if constexpr (kConverts) {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        return hn::Load(d, panel_ + p * kSlice + lane + v * kFloats);
      };
      Multiply<kRows, kKeys>(value, keys, s.scores[unit], s.gain + unit, ahead, sums);
    } else if (n >= kVectors<kRows> * kFloats) {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        const size_t i = first + lane + v * kFloats;
        return LoadCached<T>(d, values_ + p * bytes_, i, i + kFloats);
      };
      Multiply<kRows, kKeys>(value, keys, s.scores[unit], s.gain + unit, ahead, sums);
    } else {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        const size_t i = first + lane + v * kFloats, end = first + lane + n;
        return i < end ? LoadCached<T>(d, values_ + p * bytes_, i, end) : hn::Zero(d);
      };
      Multiply<kRows, kKeys>(value, keys, s.scores[unit], s.gain + unit, ahead, sums);
    }
  }

 private:
  // sums[row][lane] = gain[row] * sum over i in range of x[row * kStride + i] * load(i)[lane].
  // Rows that are a constant stride apart need one register for all of their addresses.
  template <size_t kRows, size_t kStride, class Load, class Next>
  static HWY_INLINE void Multiply(Load load, Range range, const float* HWY_RESTRICT x,
                                  const float* HWY_RESTRICT gain, Next ahead,
                                  VSums<kRows, kVectors<kRows>>& sums) {
    const DF d;
    constexpr size_t n_vectors = kVectors<kRows>;
    VF chains[kRows][n_vectors];  // GCC would keep sums in memory
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) chains[r][v] = hn::Zero(d);
    }
    for (size_t i = range.begin; i < range.end; ++i) {
      ahead.Step();
      VF w[n_vectors];
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) w[v] = load(i, v);
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        const VF factor = hn::Set(d, x[r * kStride + i]);
        HWY_UNROLL(16)
        for (size_t v = 0; v < n_vectors; ++v) {
          chains[r][v] = hn::MulAdd(w[v], factor, chains[r][v]);
        }
      }
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) {
        sums[r][v] = hn::Mul(chains[r][v], hn::Set(d, gain[r]));
      }
    }
  }

  static constexpr bool kConverts = std::is_same_v<T, Converted>;
  static constexpr size_t kNumberBytes =
      kConverts ? sizeof(float) : sizeof(T);  // bytes of a packed number
  // Keys that are transposed at a time, and bytes of each.
  static constexpr size_t kTransposed = 2 * kFloats, kChunk = 16;

  // Bytes of the vectors that a step of Multiply reads.
  template <size_t kRows>
  static constexpr size_t kStep = kVectors<kRows>* kFloats* kNumberBytes;

  alignas(64) float panel_[kSlice * (kConverts ? kKeys : kGroupKeys)];
  alignas(64) float q_[kSlots][kSlice];
  alignas(64) float rows_[kGroupKeys][kSlice];  // of keys that are not read in place
  float scales_[kQueryUnit];                    // of scores, all the same
  const std::byte* values_;                     // of the tile
  const std::byte *next_keys_, *next_values_;   // of the next one
  size_t bytes_;                                // of a cached value
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_PRODUCTS_INL_H_
