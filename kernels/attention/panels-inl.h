// Scores and weighted values of a tile of keys for many queries of a block (few.cc): the tile is
// converted to floats, and its keys transposed, once for all of them. Every query's sums have the
// order of a single query's. Included once per instruction set.

#include <algorithm>
#include <array>

#include "kernels/attention/cached-inl.h"
#include "kernels/attention/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kLanes = hn::MaxLanes(hn::CappedTag<float, 16>());  // chains of a score

constexpr size_t kTile = 64;       // keys
constexpr size_t kMaxPanel = 640;  // numbers of a key in a panel, at most
static_assert(kKvTile % kTile == 0 && kTile % kMicroRows == 0 && kTile % kLanes == 0);

// Keys of a tile, counted from its first position.
struct Range {
  size_t begin, end;
  bool empty() const { return begin >= end; }
  bool operator==(const Range&) const = default;
};

// The state of a block.
struct BlockState {
  alignas(64) float scores[kBlockQueries][kTile];
  std::array<const float*, kBlockQueries> q;
  std::array<float*, kBlockQueries> out;
  std::array<float*, kBlockQueries> max, sum;
  std::array<float, kBlockQueries> factor;        // for the sums of earlier tiles
  std::array<size_t, kBlockQueries> first, last;  // positions that the query sees
  std::array<Range, kBlockQueries> keys;          // of the tile
  size_t n_queries;
};

// A tile of keys that some query sees.
struct Tile {
  const std::byte* k;  // of the tile's first position
  const std::byte* v;
  Range keys;
};

// A tile's keys or values as floats.
struct Panels {
  alignas(64) float k[kMaxPanel * kMicroRows];  // [key_length][kMicroRows keys]
  alignas(64) float v[kTile * kPart];           // [keys][kPart numbers of a value]
  alignas(64) float rows[kMicroRows][kPart];    // of keys, to be transposed
};

// kMicroRows keys from `key` on; keys that no query sees are replaced by copies of others.
template <typename T>
HWY_INLINE void PackKeys(const Tile& tile, size_t key, size_t length, Panels& panels) {
  for (size_t first = 0; first < length; first += kPart) {
    for (size_t r = 0; r < kMicroRows; ++r) {
      const size_t row = std::clamp(key + r, tile.keys.begin, tile.keys.end - 1);
      const std::byte* const k = tile.k + row * CachedBytes<T>(length);
      if (first == 0) PrefetchAhead<T>(k, length, kTile);
      LoadRow<T>(k, first, std::min(kPart, length - first), panels.rows[r]);
    }
    Interleave<kPart, sizeof(panels.rows[0])>(
        reinterpret_cast<const uint8_t*>(panels.rows[0]), 0,
        reinterpret_cast<uint8_t*>(panels.k + first * kMicroRows));
  }
}

constexpr size_t kScoreUnit = 4;  // queries whose scores are computed together
using UnitSums = VF[kScoreUnit][kRowVectors];

HWY_INLINE void AddUnit(UnitSums& a, const UnitSums& b) {
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) a[r][v] = hn::Add(a[r][v], b[r][v]);
  }
}

// Adds number i of a panel's keys times number i of the queries to their sums.
HWY_INLINE void AddProducts(const float* HWY_RESTRICT panel, size_t i,
                            const std::array<const float*, kScoreUnit>& q, UnitSums& sums) {
  const DF d;
  VF key[kRowVectors];
  for (size_t v = 0; v < kRowVectors; ++v) {
    key[v] = hn::Load(d, panel + i * kMicroRows + v * kFloats);
  }
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    const VF x = hn::Set(d, q[r][i]);
    for (size_t v = 0; v < kRowVectors; ++v) sums[r][v] = hn::MulAdd(key[v], x, sums[r][v]);
  }
}

// The sum of two chains of a panel's scores, `chain` and chain + 4, or of one where vectors have
// four lanes. Not inline: GCC would keep the sums of the loop in memory.
HWY_NOINLINE void AddChains(const float* HWY_RESTRICT panel, size_t length,
                            const std::array<const float*, kScoreUnit>& q, size_t chain,
                            UnitSums& out) {
  constexpr size_t kChains = kLanes > 4 ? 2 : 1;
  UnitSums sums[kChains];
  HWY_UNROLL(kChains)
  for (size_t c = 0; c < kChains; ++c) {
    HWY_UNROLL(kScoreUnit)
    for (size_t r = 0; r < kScoreUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) sums[c][r][v] = hn::Zero(DF());
    }
  }
  size_t i = chain;
  for (; i + 4 * (kChains - 1) < length; i += kLanes) {
    HWY_UNROLL(kChains)
    for (size_t c = 0; c < kChains; ++c) AddProducts(panel, i + 4 * c, q, sums[c]);
  }
  if (kChains > 1 && i < length) AddProducts(panel, i, q, sums[0]);
  if constexpr (kChains > 1) AddUnit(sums[0], sums[1]);
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) out[r][v] = sums[0][r][v];
  }
}

// Lane `lane` of AddLanes after it has added up vectors of four.
HWY_INLINE void AddFours(const float* HWY_RESTRICT panel, size_t length,
                         const std::array<const float*, kScoreUnit>& q, size_t lane,
                         UnitSums& sums) {
  AddChains(panel, length, q, lane, sums);
  if constexpr (kLanes > 8) {
    UnitSums upper;
    AddChains(panel, length, q, lane + 8, upper);
    AddUnit(sums, upper);
  }
}

// The scores of kMicroRows keys from `key` on, for all queries.
HWY_INLINE void PanelScores(const float* HWY_RESTRICT panel, size_t length, size_t key, float scale,
                            BlockState& s) {
  const DF d;
  for (size_t first = 0; first < s.n_queries; first += kScoreUnit) {
    std::array<const float*, kScoreUnit> q;
    for (size_t r = 0; r < kScoreUnit; ++r) q[r] = s.q[std::min(first + r, s.n_queries - 1)];
    UnitSums sums, middle, other;
    AddFours(panel, length, q, 0, sums);
    AddFours(panel, length, q, 3, other);
    AddUnit(sums, other);
    AddFours(panel, length, q, 1, middle);
    AddFours(panel, length, q, 2, other);
    AddUnit(middle, other);
    AddUnit(sums, middle);
    for (size_t r = 0; r < std::min(kScoreUnit, s.n_queries - first); ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        hn::Store(hn::Mul(sums[r][v], hn::Set(d, scale)), d,
                  s.scores[first + r] + key + v * kFloats);
      }
    }
  }
}

// Adds kMicroRows numbers of the weighted values of `keys`, of which n_lanes exist, to kRows
// queries from `first` on.
template <size_t kRows>
HWY_INLINE void AddMeans(const float* HWY_RESTRICT panel, Range keys, size_t first, size_t number,
                         size_t n_lanes, BlockState& s) {
  const DF d;
  VF sums[kRows][kRowVectors];
  const auto count = [&](size_t v) { return n_lanes - std::min(n_lanes, v * kFloats); };
  for (size_t r = 0; r < kRows; ++r) {
    const float* const out = s.out[first + r] + number;
    for (size_t v = 0; v < kRowVectors; ++v) {
      const VF old = LoadUpTo(d, out + v * kFloats, count(v));
      sums[r][v] = hn::Mul(old, hn::Set(d, s.factor[first + r]));
    }
  }
  const float* const weights = s.scores[first];
  for (size_t p = keys.begin; p < keys.end; ++p) {
    VF value[kRowVectors];
    for (size_t v = 0; v < kRowVectors; ++v) {
      value[v] = hn::Load(d, panel + p * kPart + v * kFloats);
    }
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      const VF weight = hn::Set(d, weights[r * kTile + p]);
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[r][v] = hn::MulAdd(weight, value[v], sums[r][v]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    float* const out = s.out[first + r] + number;
    for (size_t v = 0; v < kRowVectors; ++v) {
      StoreUpTo(d, sums[r][v], out + v * kFloats, count(v));
    }
  }
}

// The weighted values of a tile for all queries.
template <typename T>
HWY_INLINE void PanelValues(const Tile& tile, size_t length, size_t stride,
                            float* HWY_RESTRICT panel, BlockState& s) {
  for (size_t number = 0; number < length; number += kPart) {
    const size_t n = std::min(kPart, length - number);
    for (size_t p = tile.keys.begin; p < tile.keys.end; ++p) {
      const std::byte* const v = tile.v + p * CachedBytes<T>(stride);
      if (number == 0) PrefetchAhead<T>(v, stride, kTile);
      LoadRow<T>(v, number, n, panel + p * kPart);
    }
    for (size_t i = 0; i < s.n_queries;) {
      // Only queries that see the same keys are grouped, so none adds a key that it does not see.
      const auto begin = s.keys.begin() + static_cast<ptrdiff_t>(i);
      const bool together =
          i + kQueryUnit <= s.n_queries && std::equal(begin + 1, begin + kQueryUnit, begin);
      const size_t rows = together ? kQueryUnit : 1;
      for (size_t lane = 0; lane < n && !s.keys[i].empty(); lane += kMicroRows) {
        if (together) {
          AddMeans<kQueryUnit>(panel + lane, s.keys[i], i, number + lane, n - lane, s);
        } else {
          AddMeans<1>(panel + lane, s.keys[i], i, number + lane, n - lane, s);
        }
      }
      i += rows;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();
