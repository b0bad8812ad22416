// Attention for one token or a few, see block.h: what engine/plain.cc does with three loops over
// all keys, in one sweep over the cache, which may be f16 or int8.
//
// A block of queries goes through the keys in tiles that fit the first-level cache: scores of the
// tile for each query, then the values weighted with exp(score - maximum so far). When a tile
// raises the maximum, the sums so far are scaled down by exp(old maximum - new maximum).
//
// A query's result is always the same chain of operations, whatever queries are in the block: tiles
// are aligned to positions; a score is the sum of kLanes chains (chain i has the numbers i, i +
// kLanes and so on of query and key), which AddLanes adds up in one order; a mean adds key after
// key, and none that the query does not see. Only the layout differs. With few queries a vector has
// kLanes numbers of a key, and a score is a sum across its lanes (Scores, AddValues). With many it
// pays to convert and transpose a tile once: a vector has one number of many keys, and each lane
// sums the score of its key (PanelScores, PanelValues).
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/attention/block.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/few.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/attention/cached-inl.h"
#include "kernels/attention/panels-inl.h"
#include "kernels/simd/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

constexpr size_t kHeads = 4;        // queries whose sums fit in registers together
constexpr size_t kManyQueries = 8;  // from here on a panel pays

// The sum of all lanes: vectors of four are added up first, then (0 + 3) + (1 + 2), as PanelScores
// does.
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
        sums[h] = hn::MulAdd(key, LoadUpTo(d, q[h] + i, length - i), sums[h]);
      }
    }
    for (size_t h = 0; h < kHeads; ++h) scores[h][p] = AddLanes(sums[h]) * scale;
  }
}

// Turns the scores of a tile's keys into weights, updates maximum and sum, and returns the factor
// for earlier sums.
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
HWY_INLINE void AddValues(const std::byte* HWY_RESTRICT v, Range keys, size_t length, size_t stride,
                          const std::array<const float*, kHeads>& weights,
                          const std::array<float, kHeads>& factors,
                          const std::array<float*, kHeads>& out, size_t n) {
  const D d;
  for (size_t i = 0; i < length; i += kLanes) {
    V sums[kHeads];
    for (size_t h = 0; h < kHeads; ++h) {
      sums[h] = hn::Mul(LoadUpTo(d, out[h] + i, length - i), hn::Set(d, factors[h]));
    }
    for (size_t p = keys.begin; p < keys.end; ++p) {
      const V value = LoadCached<T>(d, v + p * CachedBytes<T>(stride), i, length);
      for (size_t h = 0; h < kHeads; ++h) {
        sums[h] = hn::MulAdd(hn::Set(d, weights[h][p]), value, sums[h]);
      }
    }
    for (size_t h = 0; h < n; ++h) StoreUpTo(d, sums[h], out[h] + i, length - i);
  }
}

// A tile for neighbouring queries that see the same of its keys.
template <typename T>
HWY_INLINE void AttendDirectly(const QueryBlock& block, const Tile& tile, BlockState& s,
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
  Scores<T>(tile.k, keys, block.kv.key_length, q, block.params.scale, scores);
  for (size_t h = 0; h < n; ++h) {
    factors[h] = Weigh(scores[h], keys, block.params.softcap, *s.max[first + h], *s.sum[first + h]);
  }
  AddValues<T>(tile.v, keys, block.kv.value_length, block.kv.value_stride, weights, factors, out,
               n);
}

template <typename T>
HWY_INLINE void AttendByPanels(const QueryBlock& block, const Tile& tile, Panels& panels,
                               BlockState& s) {
  for (size_t key = tile.keys.begin / kMicroRows * kMicroRows; key < tile.keys.end;
       key += kMicroRows) {
    PackKeys<T>(tile, key, block.kv.key_length, panels);
    PanelScores(panels.k, block.kv.key_length, key, block.params.scale, s);
  }
  for (size_t i = 0; i < s.n_queries; ++i) {
    if (s.keys[i].empty()) continue;
    s.factor[i] = Weigh(s.scores[i], s.keys[i], block.params.softcap, *s.max[i], *s.sum[i]);
  }
  PanelValues<T>(tile, block.kv.value_length, block.kv.value_stride, panels.v, s);
}

HWY_INLINE void BeginBlock(const QueryBlock& block, const KeyPart& part, BlockState& s) {
  s.n_queries = block.n_tokens * block.n_heads;
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t token = i / block.n_heads, head = i % block.n_heads;
    s.q[i] = block.q + token * block.q_stride + head * block.kv.key_length;
    s.out[i] = block.out + token * block.out_stride + head * block.kv.value_length;
    s.max[i] = part.max + token * part.sum_stride + head;
    s.sum[i] = part.sum + token * part.sum_stride + head;
    s.first[i] = FirstVisible(block.first_pos + token, block.params.window);
    s.last[i] = LastVisible(block.first_pos + token, block.params.ahead, block.end);
    // A sink acts like a key before all others.
    const bool sink = block.params.sinks != nullptr && s.first[i] >= part.begin;
    *s.max[i] = sink ? block.params.sinks[head] : std::numeric_limits<float>::lowest();
    *s.sum[i] = sink ? 1.0f : 0.0f;
    std::fill_n(s.out[i], block.kv.value_length, 0.0f);
  }
}

// The keys of the tile at `position` that each query sees, and that any of them sees.
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
HWY_INLINE void Attend(const QueryBlock& block, const KeyPart& part) {
  BlockState s;
  Panels panels;
  BeginBlock(block, part, s);
  const bool many = s.n_queries >= kManyQueries && block.kv.key_length <= kMaxPanel;
  size_t position =
      std::max(part.begin, FirstVisible(block.first_pos, block.params.window) / kTile * kTile);
  const size_t end = std::min(part.end, s.last[s.n_queries - 1] + 1);
  for (; position < end; position += kTile) {
    const size_t slot = position % block.kv.capacity;
    const Tile tile = {block.kv.k + slot * CachedBytes<T>(block.kv.key_length),
                       block.kv.v + slot * CachedBytes<T>(block.kv.value_stride),
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

// One function for each type: with a switch that calls Attend<T>, not inlined, GCC makes code that
// takes 15 to 50% longer (Zen 5).
void AttendF32(const QueryBlock& block, const KeyPart& part) { Attend<float>(block, part); }
void AttendF16(const QueryBlock& block, const KeyPart& part) {
  Attend<hwy::float16_t>(block, part);
}
void AttendQ8(const QueryBlock& block, const KeyPart& part) {
  Attend<gguf::BlockQ8_0>(block, part);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(AttendF32);
HWY_EXPORT(AttendF16);
HWY_EXPORT(AttendQ8);

void AttendPart(const QueryBlock& block, const KeyPart& part) {
  switch (block.kv.type) {
    case KvType::kF32:
      return HWY_DYNAMIC_DISPATCH(AttendF32)(block, part);
    case KvType::kF16:
      return HWY_DYNAMIC_DISPATCH(AttendF16)(block, part);
    case KvType::kQ8_0:
      return HWY_DYNAMIC_DISPATCH(AttendQ8)(block, part);
  }
}

}  // namespace kernels
#endif  // HWY_ONCE
