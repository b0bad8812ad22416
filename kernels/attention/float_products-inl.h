// The two products of attention, a query tile with a tile of keys (key_tiles.cc), in floats.
// Included once per instruction set.
//
// Both have the shape that kernels/matmul/panel-inl.h explains. The lanes of a panel of keys are
// keys, so that a query's scores need no sums across lanes; the lanes of a panel of values are a
// value's numbers. A tile of keys is converted once for all queries of a query tile.
#if defined(PRONK_KERNELS_ATTENTION_FLOAT_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_FLOAT_PRODUCTS_INL_H_
#undef PRONK_KERNELS_ATTENTION_FLOAT_PRODUCTS_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_FLOAT_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/attention/cached-inl.h"
#include "kernels/attention/query_tile.h"
#include "kernels/matmul/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kHeadChunk = 64;       // numbers of a head that are converted at a time
constexpr size_t kRegisterQueries = 8;  // queries whose sums are in registers, at most
constexpr size_t kPackedChunks = 2 * kTileQueries;  // chunks of queries that stay packed, at most
static_assert(kTileQueries % kRegisterQueries == 0 && kTileKeys % kMicroRows == 0);
static_assert(kHeadChunk % kMicroRows == 0);

// Keys [begin, end) of a tile, counted from its first position.
struct KeyRange {
  size_t begin, end;
  bool empty() const { return begin >= end; }
  bool operator==(const KeyRange&) const = default;
};

// A tile of keys: position and cache index of its first key, and the keys of the tile that a query
// tile sees.
struct KeyTile {
  size_t position, cache_index;
  KeyRange seen;
  KeyRange stored;  // keys whose memory is allocated; it may hold anything
};

// Prefetches the next tile while this one is multiplied: kBytes in each step of a loop, if
// `wanted`. Prefetching a tile in one go would wait for memory instead of multiplying (f16, 8
// queries: 21 ns a key, not 12).
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

// n vectors in memory, `stride` bytes apart: a tile's keys or values, or a chunk of each.
struct CachedRows {
  const std::byte* first;
  size_t stride;
  const std::byte* operator[](size_t i) const { return first + i * stride; }
};

// Bytes [offset, offset + size) of each vector.
struct ByteRange {
  size_t offset, size;
};

// The keys or the values of a tile, `bytes` each, in a cache that begins at `cache`.
struct TileVectors {
  const std::byte* cache;
  size_t bytes;
  const KeyTile& tile;

  // The part of the next tile that a loop prefetches while it reads this tile's vectors from byte
  // `offset` on. Loops that read different numbers of the same vectors prefetch different parts.
  HWY_INLINE const std::byte* NextTile(size_t offset) const {
    return cache + (tile.cache_index + kTileKeys) * bytes + kTileKeys * offset;
  }

  // Returns `part` of the n vectors from number `begin` on: in place, or as a copy if some vectors
  // are outside `in_place`. In the copy, seen vectors replace unseen ones, whose scores and
  // attention weights are ignored.
  HWY_INLINE CachedRows Find(KeyRange in_place, size_t begin, size_t n, ByteRange part,
                             std::byte* copy, size_t copy_stride) const {
    const CachedRows rows = {cache + tile.cache_index * bytes + part.offset, bytes};
    if (in_place.begin <= begin && begin + n <= in_place.end) return {rows[begin], bytes};
    for (size_t i = 0; i < n; ++i) {
      const size_t row = std::clamp(begin + i, tile.seen.begin, tile.seen.end - 1);
      std::copy_n(rows[row], part.size, copy + i * copy_stride);
    }
    return {copy, copy_stride};
  }
};

// The state of a query tile from one tile of keys to the next. A tile's attention weights are
// relative to its own maximum: earlier sums count `keep` times, new ones `gain` times.
struct QueryState {
  // Integer products store [kTileKeys / kQueryLanes][kFloatLanes] for each vector of lanes
  // (integer_products-inl.h), and later replace the scores with pairs of attention weights.
  alignas(64) float scores[kTileQueries][kTileKeys];
  alignas(64) float max[kTileQueries], sum[kTileQueries];
  alignas(64) float tile_max[kTileQueries] = {}, tile_sum[kTileQueries] = {};
  alignas(64) float keep[kTileQueries], gain[kTileQueries];
  std::array<const float*, kTileQueries> q;
  std::array<float*, kTileQueries> out;
  std::array<size_t, kTileQueries> first, last;  // the query sees the keys [first, last]
  // The increase of a score from one key to the next (ALiBi), and the query's position, where ALiBi
  // adds 0.
  std::array<float, kTileQueries> slopes;
  std::array<size_t, kTileQueries> positions;

  // The distance from query i to the tile's first key. It is an integer, so a score's bits do not
  // depend on how keys are divided among lanes.
  float DistanceOf(size_t i, const KeyTile& tile) const {
    return static_cast<float>(tile.position) - static_cast<float>(positions[i]);
  }
  bool batch_invariant;  // required of integer products (kernels/README.md)
  size_t n_queries;
  // n_queries rounded up to what the loops process at a time; the last query is repeated.
  size_t n_padded;
};

// The keys of a tile that at least one of the queries [begin, begin + n) sees. The first query of a
// query tile sees the earliest keys, the last query the latest.
HWY_INLINE KeyRange SeenBy(const QueryState& s, size_t begin, size_t n, const KeyTile& tile) {
  const auto in_tile = [&](size_t position) {
    return std::min(position - std::min(position, tile.position), tile.seen.end);
  };
  return {in_tile(s.first[begin]), in_tile(s.last[begin + n - 1] + 1)};
}

// The sums of kQueries queries, in registers.
template <size_t kQueries, size_t kVectors>
using VSums = VF[kQueries][kVectors];

// Numbers [first, first + n) of a cached vector as floats, zeros up to a multiple of the lanes.
template <typename T>
HWY_INLINE void LoadRow(const std::byte* HWY_RESTRICT row, size_t first, size_t n,
                        float* HWY_RESTRICT to) {
  const DF d;
  for (size_t i = 0; i < n; i += kFloatLanes) {
    hn::StoreU(LoadCached<T>(d, row, first + i, first + n), d, to + i);
  }
}

// Stands for the element of caches of any types, whose numbers become floats before they are used.
struct Converted {};

// Products in floats. A sum is one chain of additions, whatever other queries its tile has. T: the
// element of both keys and values.
template <typename T>
class FloatProducts {
 public:
  // Vectors of sums for each of kQueries queries: as many as there are registers for, so that an
  // addition need not wait for the one before it.
  template <size_t kQueries>
  static constexpr size_t kVectors =
      std::min(std::bit_floor((HWY_ARCH_X86 && kLanes128 < 4 ? 8 : 16) / kQueries),
               kHeadChunk / kFloatLanes);
  static constexpr size_t kPanelKeys = kVectors<1> * kFloatLanes;  // packed at a time
  static constexpr float kUnitsPerOctave = 1;  // adding this to a kept score doubles the weight
  static constexpr float kWeightOfOne = 1;     // stands for a weight of 1
  static constexpr bool kIntegers = false;

  // Packs numbers [first, first + n) of each query, n <= kHeadChunk: query i's chunk becomes packed
  // chunk number packed + i.
  void PackQueries(const QueryTile& query_tile, const QueryState& s, size_t packed, size_t first,
                   size_t n) {
    std::fill_n(scales_, kRegisterQueries, query_tile.params.scale);
    for (size_t i = 0; i < s.n_padded; ++i) std::copy_n(s.q[i] + first, n, q_[packed + i]);
  }

  // Packs numbers [first, first + n) of the kPanelKeys keys of a tile from number `key` on: a panel
  // has a number of every key, then the next number.
  void PackKeys(const QueryTile& query_tile, const KeyTile& tile, size_t key, size_t first,
                size_t n) {
    const KvType type = query_tile.kv.type.k;
    const TileVectors keys = {query_tile.kv.k, KvBytes(type, query_tile.kv.key_length), tile};
    next_keys_ = keys.NextTile(KvBytes(type, first)) + key * KvBytes(type, n);
    const size_t left = tile.seen.end - key;
    const size_t n_keys =
        std::min(kPanelKeys, (left + kTransposed - 1) / kTransposed * kTransposed);
    CachedRows rows;
    if constexpr (kConverts) {
      WithElement(type, [&](auto element) HWY_ATTR {
        for (size_t r = 0; r < n_keys; ++r) {
          const size_t seen = std::clamp(key + r, tile.seen.begin, tile.seen.end - 1);
          LoadRow<decltype(element)>(keys.cache + (tile.cache_index + seen) * keys.bytes, first, n,
                                     rows_[r]);
        }
      });
      rows = {reinterpret_cast<const std::byte*>(rows_), sizeof(rows_[0])};
    } else {
      // Transposing reads kTransposedBytes at a time. A vector that ends within them may be the
      // last of the cache.
      const bool is_whole = n * kNumberBytes % kTransposedBytes == 0;
      rows = keys.Find(is_whole ? tile.stored : KeyRange{}, key, n_keys,
                       {first * kNumberBytes, n * kNumberBytes},
                       reinterpret_cast<std::byte*>(rows_), sizeof(rows_[0]));
    }
    for (size_t r = 0; r < n_keys; r += kTransposed) {
      for (size_t byte = 0; byte < n * kNumberBytes; byte += kTransposedBytes) {
        Transpose(reinterpret_cast<const uint8_t*>(rows[r]) + byte, rows.stride,
                  byte / kNumberBytes * kPanelKeys + r);
      }
    }
  }

  // Computes scale * q . k over the n packed numbers, for kQueries queries from packed chunk number
  // `packed` on and the panel's keys from number `key` on. `prefetches`: prefetches a part of the
  // next tile, too.
  template <size_t kQueries>
  HWY_INLINE void DotKeys(size_t packed, size_t key, size_t n, bool prefetches,
                          VSums<kQueries, kVectors<kQueries>>& sums) const {
    const DF d;
    const auto load = [&](size_t i, size_t v) HWY_ATTR {
      const size_t at = i * kPanelKeys + key + v * kFloatLanes;
      if constexpr (kNumberBytes == 2) {
        return hn::PromoteTo(
            d, hn::Load(hn::Rebind<T, DF>(), reinterpret_cast<const T*>(panel_) + at));
      } else {
        return hn::Load(d, panel_ + at);
      }
    };
    Prefetcher<kPrefetchedBytes<kQueries>> ahead(next_keys_ + key * n * kNumberBytes, prefetches);
    Multiply<kQueries, kHeadChunk>(load, 0, n, q_[packed], scales_, ahead, sums);
  }

  // Prepares numbers [first, first + n) of a tile's values, n <= kHeadChunk. With kConverts they
  // are converted here, once for all queries, otherwise where they are used.
  void PackValues(const QueryTile& query_tile, const KeyTile& tile, size_t first, size_t n) {
    const KvType type = query_tile.kv.type.v;
    bytes_ = KvBytes(type, query_tile.kv.value_stride);
    values_ = query_tile.kv.v + tile.cache_index * bytes_;
    next_values_ = TileVectors{query_tile.kv.v, bytes_, tile}.NextTile(KvBytes(type, first));
    if constexpr (kConverts) {
      WithElement(type, [&](auto element) HWY_ATTR {
        for (size_t p = tile.seen.begin; p < tile.seen.end; ++p) {
          LoadRow<decltype(element)>(values_ + p * bytes_, first, n, panel_ + p * kHeadChunk);
        }
      });
    }
  }

  // Computes gain * weights . v over `keys`, for kQueries queries from `query` on and the values'
  // numbers from first + lane on, of which n exist.
  template <size_t kQueries>
  HWY_INLINE void WeightedSum(const QueryState& s, size_t query, KeyRange keys, size_t first,
                              size_t lane, size_t n,
                              VSums<kQueries, kVectors<kQueries>>& sums) const {
    const DF d;
    Prefetcher<kPrefetchedBytes<kQueries>> ahead(next_values_ + kTileKeys * lane * kNumberBytes,
                                                 query == 0 && !kConverts);
    if constexpr (kConverts) {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        return hn::Load(d, panel_ + p * kHeadChunk + lane + v * kFloatLanes);
      };
      Multiply<kQueries, kTileKeys>(value, keys.begin, keys.end, s.scores[query], s.gain + query,
                                    ahead, sums);
    } else if (n >= kVectors<kQueries> * kFloatLanes) {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        const size_t i = first + lane + v * kFloatLanes;
        return LoadCached<T>(d, values_ + p * bytes_, i, i + kFloatLanes);
      };
      Multiply<kQueries, kTileKeys>(value, keys.begin, keys.end, s.scores[query], s.gain + query,
                                    ahead, sums);
    } else {
      const auto value = [&](size_t p, size_t v) HWY_ATTR {
        const size_t i = first + lane + v * kFloatLanes, end = first + lane + n;
        return i < end ? LoadCached<T>(d, values_ + p * bytes_, i, end) : hn::Zero(d);
      };
      Multiply<kQueries, kTileKeys>(value, keys.begin, keys.end, s.scores[query], s.gain + query,
                                    ahead, sums);
    }
  }

 private:
  // Transposes kTransposedBytes of kTransposed keys, from `in` on, to panel_ from number `to` on.
  // Numbers in f16 are moved as pairs and separated afterwards.
  HWY_INLINE void Transpose(const uint8_t* in, size_t stride, size_t to) {
    VU8 low[4], high[4];
    TransposeRows(in, stride, 0, [&](VU8 v, size_t i) HWY_ATTR { low[i] = v; });
    TransposeRows(in + kFloatLanes * stride, stride, 0,
                  [&](VU8 v, size_t i) HWY_ATTR { high[i] = v; });
    HWY_UNROLL(4)
    for (size_t i = 0; i < 4; ++i) {
      if constexpr (kNumberBytes == 2) {
        const DU16 d16;
        const auto a = hn::BitCast(d16, low[i]), b = hn::BitCast(d16, high[i]);
        uint16_t* const panel = reinterpret_cast<uint16_t*>(panel_) + to + 2 * i * kPanelKeys;
        hn::Store(hn::ConcatEven(d16, b, a), d16, panel);
        hn::Store(hn::ConcatOdd(d16, b, a), d16, panel + kPanelKeys);
      } else {
        float* const panel = panel_ + to + i * kPanelKeys;
        hn::Store(hn::BitCast(DF(), low[i]), DF(), panel);
        hn::Store(hn::BitCast(DF(), high[i]), DF(), panel + kFloatLanes);
      }
    }
  }

  // sums[query][lane] = gain[query] * sum over i in [begin, end) of x[query * kStride + i] *
  // load(i)[lane]. With a constant stride, one register holds the address of all queries.
  template <size_t kQueries, size_t kStride, class Load, class Next>
  static HWY_INLINE void Multiply(Load load, size_t begin, size_t end, const float* HWY_RESTRICT x,
                                  const float* HWY_RESTRICT gain, Next ahead,
                                  VSums<kQueries, kVectors<kQueries>>& sums) {
    const DF d;
    constexpr size_t n_vectors = kVectors<kQueries>;
    VF chains[kQueries][n_vectors];  // GCC would keep sums in memory
    HWY_UNROLL(8)
    for (size_t q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) chains[q][v] = hn::Zero(d);
    }
    for (size_t i = begin; i < end; ++i) {
      ahead.Step();
      VF w[n_vectors];
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) w[v] = load(i, v);
      HWY_UNROLL(8)
      for (size_t q = 0; q < kQueries; ++q) {
        const VF factor = hn::Set(d, x[q * kStride + i]);
        HWY_UNROLL(16)
        for (size_t v = 0; v < n_vectors; ++v) {
          chains[q][v] = hn::MulAdd(w[v], factor, chains[q][v]);
        }
      }
    }
    HWY_UNROLL(8)
    for (size_t q = 0; q < kQueries; ++q) {
      HWY_UNROLL(16)
      for (size_t v = 0; v < n_vectors; ++v) {
        sums[q][v] = hn::Mul(chains[q][v], hn::Set(d, gain[q]));
      }
    }
  }

  static constexpr bool kConverts = std::is_same_v<T, Converted>;
  static constexpr size_t kNumberBytes =
      kConverts ? sizeof(float) : sizeof(T);  // bytes of a packed number
  // Keys that are transposed at a time, and the bytes of each key.
  static constexpr size_t kTransposed = 2 * kFloatLanes, kTransposedBytes = 16;

  // Bytes of the vectors that Multiply reads for each i.
  template <size_t kQueries>
  static constexpr size_t kPrefetchedBytes = kVectors<kQueries>* kFloatLanes* kNumberBytes;

  alignas(64) float panel_[kHeadChunk * (kConverts ? kTileKeys : kPanelKeys)];
  alignas(64) float q_[kPackedChunks][kHeadChunk];
  alignas(64) float rows_[kPanelKeys][kHeadChunk];  // keys that are not read in place
  float scales_[kRegisterQueries];                  // scales of scores: equal for each query
  const std::byte* values_;                         // values of the tile
  const std::byte *next_keys_, *next_values_;       // keys and values of the next tile
  size_t bytes_;                                    // bytes of a cached value
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_FLOAT_PRODUCTS_INL_H_
