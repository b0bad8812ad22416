// Attention for one token or a few, see attention_few.h.
//
// A block of queries walks through the keys in tiles small enough for the first-level cache: scores
// of the tile for each query, then the values weighted with exp(score - maximum so far). When a
// tile raises the maximum, what was added up before is scaled down by exp(old maximum - new
// maximum).
//
// A query's result is always the same chain of operations, whichever queries are in the block:
// tiles are aligned to positions; a score is the sum over kLanes chains (chain i has the numbers i,
// i + kLanes and so on of query and key), which AddLanes adds up in one order; a mean adds key
// after key, and none that the query does not see. What differs is how they are computed. Where
// queries are few, a vector holds kLanes numbers of a key, and a score is a sum across its lanes
// (Scores, AddValues). Where they are many, it is worth to convert and transpose a tile once: a
// vector then holds one number of many keys and a lane adds up its key's score alone (PanelScores,
// PanelValues).
#include "kernels/attention_few.h"

#include <algorithm>
#include <array>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_few.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/attention_products-inl.h"
#include "kernels/cached-inl.h"
#include "kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

constexpr size_t kTile = 64;        // keys
constexpr size_t kHeads = 4;        // queries whose sums fit in registers together
constexpr size_t kMaxPanel = 640;   // numbers of a key in a panel, at most
constexpr size_t kManyQueries = 8;  // from which on a panel pays
static_assert(kKvTile % kTile == 0 && kTile % kBandRows == 0 && kTile % kLanes == 0);

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
  std::array<float, kBlockQueries> factor;        // for what was added up in earlier tiles
  std::array<size_t, kBlockQueries> first, last;  // positions that the query sees
  std::array<Range, kBlockQueries> keys;          // of the tile
  size_t n_queries;
};

// A tile of keys, as far as any query sees them.
struct Tile {
  const std::byte* k;  // of the tile's first position
  const std::byte* v;
  Range keys;
};

HWY_INLINE V LoadFloats(const float* p, size_t n) {
  const D d;
  return n >= kLanes ? hn::LoadU(d, p) : hn::LoadN(d, p, n);
}

HWY_INLINE void StoreFloats(V v, float* p, size_t n) {
  const D d;
  if (n >= kLanes) {
    hn::StoreU(v, d, p);
  } else {
    hn::StoreN(v, d, p, n);
  }
}

// The sum of all lanes: fours are added up first, then (0 + 3) + (1 + 2). PanelScores does the
// same.
template <class DV = D>
HWY_INLINE float AddLanes(hn::Vec<DV> v) {
  const DV d;
  if constexpr (kLanes > 4) v = hn::Add(v, hn::SwapAdjacentBlocks(v));
  if constexpr (kLanes > 8) v = hn::Add(v, hn::ReverseBlocks(d, v));
  v = hn::Add(v, hn::Reverse4(d, v));
  return hn::GetLane(hn::Add(v, hn::Reverse2(d, v)));
}

// scores[h][p] = scale * q[h] . k[p] for kHeads queries; those past the last repeat it.
template <typename T>
HWY_INLINE void Scores(const std::byte* HWY_RESTRICT k, Range keys, size_t length,
                       const std::array<const float*, kHeads>& q, float scale,
                       const std::array<float*, kHeads>& scores) {
  const D d;
  for (size_t p = keys.begin; p < keys.end; ++p) {
    V sums[kHeads] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (size_t i = 0; i < length; i += kLanes) {
      const V key = LoadCached<T>(d, k + p * CachedBytes<T>(length), i, length);
      for (size_t h = 0; h < kHeads; ++h) {
        sums[h] = hn::MulAdd(key, LoadFloats(q[h] + i, length - i), sums[h]);
      }
    }
    for (size_t h = 0; h < kHeads; ++h) scores[h][p] = AddLanes(sums[h]) * scale;
  }
}

// Turns the scores of a tile's keys into weights, keeps maximum and sum, and returns the factor for
// what was added up before.
HWY_INLINE float Weigh(float* HWY_RESTRICT scores, Range keys, float softcap, float& max,
                       float& sum) {
  const D d;
  const size_t begin = keys.begin / kLanes * kLanes;
  const auto visible = [&](size_t p) HWY_ATTR {
    const auto before_end = hn::FirstN(d, keys.end - p);
    return keys.begin <= p ? before_end : hn::AndNot(hn::FirstN(d, keys.begin - p), before_end);
  };
  V tile_max = hn::Set(d, std::numeric_limits<float>::lowest());
  for (size_t p = begin; p < keys.end; p += kLanes) {
    V score = hn::LoadU(d, scores + p);
    if (softcap != 0) {
      score = SoftCap(d, score, softcap);
      hn::StoreU(score, d, scores + p);
    }
    tile_max = hn::Max(tile_max, hn::IfThenElse(visible(p), score, tile_max));
  }
  const float new_max = std::max(max, hn::ReduceMax(d, tile_max));
  const float factor = hn::GetLane(Exp(d, hn::Set(d, max - new_max)));  // 1 where nothing changes
  const V shift = hn::Set(d, new_max);
  V sums = hn::Zero(d);
  for (size_t p = begin; p < keys.end; p += kLanes) {
    const V e = Exp(d, hn::Sub(hn::LoadU(d, scores + p), shift));
    hn::StoreU(e, d, scores + p);
    sums = hn::Add(sums, hn::IfThenElseZero(visible(p), e));
  }
  max = new_max;
  sum = sum * factor + AddLanes(sums);
  return factor;
}

// out[h] = factor[h] * out[h] + sum over p of weights[h][p] * v[p] for kHeads queries, of which
// the first n are stored.
template <typename T>
HWY_INLINE void AddValues(const std::byte* HWY_RESTRICT v, Range keys, size_t length,
                          const std::array<const float*, kHeads>& weights,
                          const std::array<float, kHeads>& factors,
                          const std::array<float*, kHeads>& out, size_t n) {
  const D d;
  for (size_t i = 0; i < length; i += kLanes) {
    V sums[kHeads];
    for (size_t h = 0; h < kHeads; ++h) {
      sums[h] = hn::Mul(LoadFloats(out[h] + i, length - i), hn::Set(d, factors[h]));
    }
    for (size_t p = keys.begin; p < keys.end; ++p) {
      const V value = LoadCached<T>(d, v + p * CachedBytes<T>(length), i, length);
      for (size_t h = 0; h < kHeads; ++h) {
        sums[h] = hn::MulAdd(hn::Set(d, weights[h][p]), value, sums[h]);
      }
    }
    for (size_t h = 0; h < n; ++h) StoreFloats(sums[h], out[h] + i, length - i);
  }
}

// A tile for queries that stand beside each other and see the same of its keys.
template <typename T>
HWY_INLINE void AttendDirectly(const AttentionBlock& block, const Tile& tile, BlockState& s,
                               size_t first, size_t n) {
  const Range keys = s.keys[first];
  std::array<const float*, kHeads> q, weights;
  std::array<float*, kHeads> scores, out;
  std::array<float, kHeads> factors{};
  for (size_t h = 0; h < kHeads; ++h) {
    const size_t i = first + std::min(h, n - 1);
    q[h] = s.q[i];
    weights[h] = scores[h] = s.scores[i];
    out[h] = s.out[i];
  }
  Scores<T>(tile.k, keys, block.key_length, q, block.params.scale, scores);
  for (size_t h = 0; h < n; ++h) {
    factors[h] = Weigh(scores[h], keys, block.params.softcap, *s.max[first + h], *s.sum[first + h]);
  }
  AddValues<T>(tile.v, keys, block.value_length, weights, factors, out, n);
}

// A tile's keys or values as floats.
struct Panels {
  alignas(64) float k[kMaxPanel * kBandRows];  // [key_length][kBandRows keys]
  alignas(64) float v[kTile * kPart];          // [keys][kPart numbers of a value]
  alignas(64) float rows[kBandRows][kPart];    // of keys, to be transposed
};

// What stands where `row` does in the next tile, while this one is multiplied.
template <typename T>
HWY_INLINE void PrefetchAhead(const std::byte* row, size_t length) {
  const size_t bytes = CachedBytes<T>(length);
  for (size_t i = 0; i < bytes; i += 64) hwy::Prefetch(row + kTile * bytes + i);
}

// The keys from `key` on, kBandRows of them; those that nobody sees are copies.
template <typename T>
HWY_INLINE void PackKeys(const Tile& tile, size_t key, size_t length, Panels& panels) {
  for (size_t first = 0; first < length; first += kPart) {
    for (size_t r = 0; r < kBandRows; ++r) {
      const size_t row = std::clamp(key + r, tile.keys.begin, tile.keys.end - 1);
      const std::byte* const k = tile.k + row * CachedBytes<T>(length);
      if (first == 0) PrefetchAhead<T>(k, length);
      LoadRow<T>(k, first, std::min(kPart, length - first), panels.rows[r]);
    }
    Interleave<kPart, sizeof(panels.rows[0])>(
        reinterpret_cast<const uint8_t*>(panels.rows[0]), 0,
        reinterpret_cast<uint8_t*>(panels.k + first * kBandRows));
  }
}

constexpr size_t kScoreUnit = 4 / kRowVectors;  // queries
using UnitSums = VF[kScoreUnit][kRowVectors];

HWY_INLINE void AddUnit(UnitSums& a, const UnitSums& b) {
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) a[r][v] = hn::Add(a[r][v], b[r][v]);
  }
}

// Number i of a panel's keys times that of the queries, added to their sums.
HWY_INLINE void AddProducts(const float* HWY_RESTRICT panel, size_t i,
                            const std::array<const float*, kScoreUnit>& q, UnitSums& sums) {
  const DF d;
  VF key[kRowVectors];
  for (size_t v = 0; v < kRowVectors; ++v) {
    key[v] = hn::Load(d, panel + i * kBandRows + v * kFloats);
  }
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    const VF x = hn::Set(d, q[r][i]);
    for (size_t v = 0; v < kRowVectors; ++v) sums[r][v] = hn::MulAdd(key[v], x, sums[r][v]);
  }
}

// What AddLanes has in lane `lane` when it has added up fours, of a panel's scores. Not inline: GCC
// would keep the sums of the loop in memory.
HWY_NOINLINE void AddFours(const float* HWY_RESTRICT panel, size_t length,
                           const std::array<const float*, kScoreUnit>& q, size_t lane,
                           UnitSums& out) {
  constexpr size_t kChains = kLanes / 4;
  UnitSums sums[kChains];
  HWY_UNROLL(kChains)
  for (size_t c = 0; c < kChains; ++c) {
    HWY_UNROLL(kScoreUnit)
    for (size_t r = 0; r < kScoreUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) sums[c][r][v] = hn::Zero(DF());
    }
  }
  size_t i = lane;
  for (; i + kLanes - 4 < length; i += kLanes) {
    HWY_UNROLL(kChains)
    for (size_t c = 0; c < kChains; ++c) AddProducts(panel, i + 4 * c, q, sums[c]);
  }
  HWY_UNROLL(kChains)
  for (size_t c = 0; c + 1 < kChains; ++c) {
    if (i + 4 * c < length) AddProducts(panel, i + 4 * c, q, sums[c]);
  }
  if constexpr (kChains > 1) AddUnit(sums[0], sums[1]);
  if constexpr (kChains > 2) {
    AddUnit(sums[2], sums[3]);
    AddUnit(sums[0], sums[2]);
  }
  HWY_UNROLL(kScoreUnit)
  for (size_t r = 0; r < kScoreUnit; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) out[r][v] = sums[0][r][v];
  }
}

// The scores of kBandRows keys from `key` on for all queries.
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

// Adds kBandRows numbers of the weighted values of `keys`, of which n_lanes count, to kRows
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
      const VF old = count(v) >= kFloats ? hn::LoadU(d, out + v * kFloats)
                                         : hn::LoadN(d, out + v * kFloats, count(v));
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
      if (count(v) >= kFloats) {
        hn::StoreU(sums[r][v], d, out + v * kFloats);
      } else {
        hn::StoreN(sums[r][v], d, out + v * kFloats, count(v));
      }
    }
  }
}

// The weighted values of a tile for all queries.
template <typename T>
HWY_INLINE void PanelValues(const Tile& tile, size_t length, float* HWY_RESTRICT panel,
                            BlockState& s) {
  for (size_t number = 0; number < length; number += kPart) {
    const size_t n = std::min(kPart, length - number);
    for (size_t p = tile.keys.begin; p < tile.keys.end; ++p) {
      const std::byte* const v = tile.v + p * CachedBytes<T>(length);
      if (number == 0) PrefetchAhead<T>(v, length);
      LoadRow<T>(v, number, n, panel + p * kPart);
    }
    for (size_t i = 0; i < s.n_queries;) {
      // Together go only queries that see the same keys: what one does not see, it must not add.
      const auto begin = s.keys.begin() + static_cast<ptrdiff_t>(i);
      const bool together =
          i + kQueryUnit <= s.n_queries && std::equal(begin + 1, begin + kQueryUnit, begin);
      const size_t rows = together ? kQueryUnit : 1;
      for (size_t lane = 0; lane < n && !s.keys[i].empty(); lane += kBandRows) {
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

template <typename T>
HWY_INLINE void AttendByPanels(const AttentionBlock& block, const Tile& tile, Panels& panels,
                               BlockState& s) {
  for (size_t key = tile.keys.begin / kBandRows * kBandRows; key < tile.keys.end;
       key += kBandRows) {
    PackKeys<T>(tile, key, block.key_length, panels);
    PanelScores(panels.k, block.key_length, key, block.params.scale, s);
  }
  for (size_t i = 0; i < s.n_queries; ++i) {
    if (s.keys[i].empty()) continue;
    s.factor[i] = Weigh(s.scores[i], s.keys[i], block.params.softcap, *s.max[i], *s.sum[i]);
  }
  PanelValues<T>(tile, block.value_length, panels.v, s);
}

HWY_INLINE void BeginBlock(const AttentionBlock& block, BlockState& s) {
  s.n_queries = block.n_tokens * block.n_heads;
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t token = i / block.n_heads, head = i % block.n_heads;
    s.q[i] = block.q + token * block.q_stride + head * block.key_length;
    s.out[i] = block.out + token * block.out_stride + head * block.value_length;
    s.max[i] = block.max + token * block.sum_stride + head;
    s.sum[i] = block.sum + token * block.sum_stride + head;
    s.last[i] = block.first_pos + token;
    s.first[i] = FirstVisible(s.last[i], block.params.window);
    // A sink is as if a key had been there before all others.
    const bool sink = block.params.sinks != nullptr && s.first[i] >= block.begin;
    *s.max[i] = sink ? block.params.sinks[head] : std::numeric_limits<float>::lowest();
    *s.sum[i] = sink ? 1.0f : 0.0f;
    std::fill_n(s.out[i], block.value_length, 0.0f);
  }
}

// What the queries see of the tile at `position`, and what any of them does.
HWY_INLINE Range VisibleKeys(size_t position, size_t end, BlockState& s) {
  Range all = {kTile, 0};
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t first = std::max(s.first[i], position), last = std::min(s.last[i] + 1, end);
    s.keys[i] = {first - position, std::max(last, first) - position};
    if (s.keys[i].empty()) continue;
    all.begin = std::min(all.begin, s.keys[i].begin);
    all.end = std::max(all.end, s.keys[i].end);
  }
  return all;
}

template <typename T>
HWY_INLINE void Attend(const AttentionBlock& block) {
  BlockState s;
  Panels panels;
  BeginBlock(block, s);
  const bool many = s.n_queries >= kManyQueries && block.key_length <= kMaxPanel;
  size_t position =
      std::max(block.begin, FirstVisible(block.first_pos, block.params.window) / kTile * kTile);
  const size_t end = std::min(block.end, block.first_pos + block.n_tokens);
  for (; position < end; position += kTile) {
    const size_t slot = position % block.capacity;
    const Tile tile = {block.k + slot * CachedBytes<T>(block.key_length),
                       block.v + slot * CachedBytes<T>(block.value_length),
                       VisibleKeys(position, std::min(position + kTile, end), s)};
    if (tile.keys.empty()) continue;
    if (many) {
      AttendByPanels<T>(block, tile, panels, s);
      continue;
    }
    for (size_t token = 0; token < s.n_queries; token += block.n_heads) {
      if (s.keys[token].empty()) continue;
      for (size_t head = 0; head < block.n_heads; head += kHeads) {
        AttendDirectly<T>(block, tile, s, token + head, std::min(kHeads, block.n_heads - head));
      }
    }
  }
}

void AttendBlockF32(const AttentionBlock& block) { Attend<float>(block); }
void AttendBlockF16(const AttentionBlock& block) { Attend<hwy::float16_t>(block); }
void AttendBlockQ8(const AttentionBlock& block) { Attend<gguf::BlockQ8_0>(block); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(AttendBlockF32);
HWY_EXPORT(AttendBlockF16);
HWY_EXPORT(AttendBlockQ8);

void AttendBlock(const AttentionBlock& block) {
  switch (block.type) {
    case KvType::kF32:
      return HWY_DYNAMIC_DISPATCH(AttendBlockF32)(block);
    case KvType::kF16:
      return HWY_DYNAMIC_DISPATCH(AttendBlockF16)(block);
    case KvType::kQ8_0:
      return HWY_DYNAMIC_DISPATCH(AttendBlockQ8)(block);
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
