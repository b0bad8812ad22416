// Attention of a query tile, see query_tile.h.
//
// A query tile (some tokens, with the query heads that share a key-value head) is multiplied with
// one tile of keys after the other. Between the two products, scores = q . k and
// means = weights . v (float_products-inl.h in floats, integer_products-inl.h in integers), scores
// become attention weights: 2^(score - maximum of the tile), since log2 e is in the scale of
// scores. Earlier sums and new ones are scaled to the larger of their maximums (Dao et al. 2022).
//
// Tiles are aligned to positions, and attention weights of keys that a query does not see are
// zeros. So a query's sums do not depend on the other queries, except in integer products of a
// batch, where the queries of a query tile share the scales of the values.
#include <algorithm>
#include <array>
#include <limits>

#include "kernels/attention/query_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/key_tiles.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "kernels/attention/float_products-inl.h"
#include "kernels/attention/softmax-inl.h"
#if HWY_ARCH_X86
#include "kernels/attention/int16_operands-inl.h"
#include "kernels/attention/int8_operands-inl.h"
#endif
#include "kernels/simd/targets.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// out[query][lane] = keep[query] * out[query][lane] + sums[query][lane] for the first n_lanes
// lanes; without `keep`, sums[query][lane].
template <size_t kQueries, size_t kVectors>
HWY_INLINE void AccumulateLanes(const VSums<kQueries, kVectors>& sums,
                                const float* HWY_RESTRICT keep,
                                const std::array<float*, kQueries>& out, size_t n_lanes) {
  const DF d;
  HWY_UNROLL(8)
  for (size_t q = 0; q < kQueries; ++q) {
    HWY_UNROLL(16)
    for (size_t v = 0; v < kVectors; ++v) {
      float* const to = out[q] + v * kFloatLanes;
      const size_t count = n_lanes - std::min(n_lanes, v * kFloatLanes);
      VF result = sums[q][v];
      if (keep != nullptr) result = hn::MulAdd(LoadUpTo(d, to, count), hn::Set(d, keep[q]), result);
      StoreUpTo(d, result, to, count);
    }
  }
}

// AccumulateLanes, with a compile-time n_lanes if all lanes are used.
template <size_t kQueries, size_t kVectors>
HWY_INLINE void Accumulate(const VSums<kQueries, kVectors>& sums, const float* HWY_RESTRICT keep,
                           const std::array<float*, kQueries>& out, size_t n_lanes) {
  constexpr size_t kWhole = kVectors * kFloatLanes;
  if (n_lanes >= kWhole) return AccumulateLanes<kQueries, kVectors>(sums, keep, out, kWhole);
  AccumulateLanes<kQueries, kVectors>(sums, keep, out, n_lanes);
}

// Computes the scores of a tile's keys, for kQueries queries at a time, by panels of keys. Vectors
// of keys that these queries do not see are skipped. `is_first`: this is the query tile's first
// tile of keys, so its queries are packed.
template <size_t kQueries, class Products>
HWY_INLINE void ScoreTile(const QueryTile& query_tile, const KeyTile& tile, bool is_first,
                          Products& products, QueryState& s) {
  static constexpr float kOnes[kRegisterQueries] = {1, 1, 1, 1, 1, 1, 1, 1};
  const size_t n_chunks = (query_tile.kv.key_length + kHeadChunk - 1) / kHeadChunk;
  const bool stay_packed = n_chunks * s.n_padded <= kPackedChunks;
  for (size_t chunk = 0; chunk < n_chunks; ++chunk) {
    const size_t first = chunk * kHeadChunk,
                 n = std::min(kHeadChunk, query_tile.kv.key_length - first);
    const size_t packed = stay_packed ? chunk * s.n_padded : 0;
    if (is_first || !stay_packed) products.PackQueries(query_tile, s, packed, first, n);
    constexpr size_t kPanelKeys = Products::kPanelKeys;
    for (size_t panel = tile.seen.begin / kPanelKeys * kPanelKeys; panel < tile.seen.end;
         panel += kPanelKeys) {
      products.PackKeys(query_tile, tile, panel, first, n);
      for (size_t query = 0; query < s.n_padded; query += kQueries) {
        const KeyRange seen = SeenBy(s, query, kQueries, tile);
        constexpr size_t kVectors = Products::template kVectors<kQueries>,
                         kScores = kVectors * kFloatLanes;
        for (size_t key = 0; key < kPanelKeys; key += kScores) {
          if (panel + key >= seen.end || panel + key + kScores <= seen.begin) continue;
          VSums<kQueries, kVectors> sums;
          products.template DotKeys<kQueries>(packed + query, key, n, query == 0, sums);
          std::array<float*, kQueries> scores;
          for (size_t q = 0; q < kQueries; ++q) scores[q] = s.scores[query + q] + panel + key;
          Accumulate(sums, first == 0 ? nullptr : kOnes, scores, kScores);
        }
      }
    }
  }
}

// out = keep * out + gain * weights . v, with the values of a tile's keys.
template <size_t kQueries, class Products>
HWY_INLINE void AddValues(const QueryTile& query_tile, const KeyTile& tile, Products& products,
                          QueryState& s) {
  for (size_t first = 0; first < query_tile.kv.value_length; first += kHeadChunk) {
    const size_t n = std::min(kHeadChunk, query_tile.kv.value_length - first);
    products.PackValues(query_tile, tile, first, n);
    if constexpr (Products::kIntegers) products.PackWeights(s, tile, first);
    for (size_t query = 0; query < s.n_queries; query += kQueries) {
      const KeyRange seen = SeenBy(s, query, kQueries, tile);
      if (seen.empty()) continue;
      constexpr size_t kVectors = Products::template kVectors<kQueries>;
      for (size_t lane = 0; lane < n; lane += kVectors * kFloatLanes) {
        VSums<kQueries, kVectors> sums;
        if constexpr (Products::kIntegers) {
          products.template WeightedSum<kQueries>(query, seen, lane, sums);
        } else {
          products.template WeightedSum<kQueries>(s, query, seen, first, lane, n - lane, sums);
        }
        std::array<float*, kQueries> out;
        for (size_t q = 0; q < kQueries; ++q) out[q] = s.out[query + q] + first + lane;
        Accumulate(sums, s.keep + query, out, n - lane);
      }
    }
  }
}

// Sets the state before the first tile. n_together: queries that are processed at a time; the last
// query is repeated up to a multiple of it.
HWY_INLINE void BeginQueries(const QueryTile& query_tile, const KeySpan& span,
                             float units_per_score, size_t n_together, QueryState& s) {
  std::fill_n(s.max, kTileQueries, std::numeric_limits<float>::lowest());
  std::fill_n(s.sum, kTileQueries, 0.0f);
  const size_t n = query_tile.n_tokens * query_tile.n_heads;
  s.n_queries = n;
  s.n_padded = (n + n_together - 1) / n_together * n_together;
  for (size_t i = 0; i < s.n_padded; ++i) {
    const size_t query = std::min(i, n - 1);
    const size_t token = query / query_tile.n_heads, head = query % query_tile.n_heads;
    s.q[i] = query_tile.q + token * query_tile.q_stride + head * query_tile.kv.key_length;
    s.out[i] = query_tile.out + token * query_tile.out_stride + head * query_tile.kv.value_length;
    const size_t position = query_tile.first_position + token;
    s.positions[i] = position;
    s.slopes[i] =
        query_tile.params.slopes != nullptr ? query_tile.params.slopes[head] * units_per_score : 0;
    s.first[i] = FirstVisible(position, query_tile.params.window);
    s.last[i] = LastVisible(position, query_tile.params.ahead, query_tile.end);
    std::fill_n(s.out[i], query_tile.kv.value_length, 0.0f);
    // A sink acts like a key without a value, before every other key.
    if (query_tile.params.sinks != nullptr && s.first[i] >= span.begin) {
      s.max[i] = query_tile.params.sinks[head] * units_per_score;
      s.sum[i] = 1;
    }
  }
}

// Divides the means by the sums of the attention weights or, for only a span of the keys, writes
// these sums and the maximums to the span.
HWY_INLINE void EndQueries(const QueryTile& query_tile, const KeySpan& span, float units_per_score,
                           const QueryState& s) {
  for (size_t i = 0; i < s.n_queries; ++i) {
    if (span.sum == nullptr) {
      const float factor = 1.0f / s.sum[i];
      for (size_t j = 0; j < query_tile.kv.value_length; ++j) s.out[i][j] *= factor;
      continue;
    }
    const size_t to = i / query_tile.n_heads * span.sum_stride + i % query_tile.n_heads;
    span.max[to] = s.max[i] / units_per_score;
    span.sum[to] = s.sum[i];
  }
}

// Attention of a query tile, by tiles of keys. The sums of kQueries queries are in registers at a
// time. Integer products make the scores of kScoredQueries queries at a time. Results in floats are
// always batch-invariant, results in integers only if `batch_invariant` is set.
template <size_t kQueries, size_t kScoredQueries, class Products>
HWY_NOINLINE void LoopOverKeyTiles(QueryTile query_tile, const KeySpan& span,
                                   bool batch_invariant = true) {
  QueryState s;
  // A kept score is a score times this, so that e^score is 2^(kept / Products::kUnitsPerOctave).
  constexpr float kUnitsPerScore = Products::kUnitsPerOctave * 1.44269504f;
  BeginQueries(query_tile, span, kUnitsPerScore, kScoredQueries, s);
  query_tile.params.scale *= kUnitsPerScore;
  query_tile.params.softcap *= kUnitsPerScore;
  s.batch_invariant = batch_invariant;
  Products products;
  const size_t begin = std::max(span.begin, s.first[0]);
  const size_t end = std::min(span.end, s.last[s.n_padded - 1] + 1);
  bool is_first = true;
  for (size_t key = begin / kTileKeys * kTileKeys; key < end; key += kTileKeys, is_first = false) {
    const size_t before = begin - std::min(begin, key);
    const size_t cache_index = key % query_tile.kv.capacity;
    const KeyTile tile = {.position = key,
                          .cache_index = cache_index,
                          .seen = {before, std::min(kTileKeys, end - key)},
                          .stored = {0, query_tile.kv.capacity - cache_index}};
    if constexpr (Products::kIntegers) {
      ScoreLanes<kScoredQueries / Products::kWidth>(query_tile, tile, is_first, products, s);
    } else {
      ScoreTile<kQueries>(query_tile, tile, is_first, products, s);
    }
    Weigh<kQueries, Products>(tile,
                              {query_tile.params.softcap, query_tile.params.slopes != nullptr}, s);
    AddValues<kQueries>(query_tile, tile, products, s);
  }
  EndQueries(query_tile, span, kUnitsPerScore, s);
}

// Attention in floats. Chooses the number of queries in registers that needs the fewest padding
// queries: models often have 5, 6, 7 or 14 query heads for each key-value head.
template <class Products>
HWY_INLINE void AttendInFloats(const QueryTile& query_tile, const KeySpan& span) {
  const size_t n = query_tile.n_tokens * query_tile.n_heads;
  const auto padded = [n](size_t together) { return (n + together - 1) / together * together; };
  if (n == 1) return LoopOverKeyTiles<1, 1, Products>(query_tile, span);
  if (n == 2) return LoopOverKeyTiles<2, 2, Products>(query_tile, span);
  if (n == 3) return LoopOverKeyTiles<3, 3, Products>(query_tile, span);
  if (n == 4) return LoopOverKeyTiles<4, 4, Products>(query_tile, span);
  const size_t fewest = std::min({padded(6), padded(7), padded(8)});
  if (padded(8) == fewest) return LoopOverKeyTiles<8, 8, Products>(query_tile, span);
  if (padded(7) == fewest) return LoopOverKeyTiles<7, 7, Products>(query_tile, span);
  LoopOverKeyTiles<6, 6, Products>(query_tile, span);
}

// One function for each type: with a switch within a target, GCC makes slower code (NOTEBOOK.md).
void AttendF32(const QueryTile& query_tile, const KeySpan& span, bool /*batch_invariant*/) {
  AttendInFloats<FloatProducts<float>>(query_tile, span);
}
void AttendF16(const QueryTile& query_tile, const KeySpan& span,
               [[maybe_unused]] bool batch_invariant) {
#if HWY_ARCH_X86  // NEON multiplies floats as fast as int16
  if (!batch_invariant)
    return LoopOverKeyTiles<kRegisterQueries, 2 * kFloatLanes, Int16Products>(query_tile, span,
                                                                              batch_invariant);
#endif
  AttendInFloats<FloatProducts<hwy::float16_t>>(query_tile, span);
}
void AttendConverted(const QueryTile& query_tile, const KeySpan& span, bool /*batch_invariant*/) {
  AttendInFloats<FloatProducts<Converted>>(query_tile, span);
}
void AttendQuantized(const QueryTile& query_tile, const KeySpan& span,
                     [[maybe_unused]] bool batch_invariant) {
#if HWY_ARCH_X86
  // Up to kFloatLanes queries share one vector of lanes, more queries use two vectors.
  const size_t n = query_tile.n_tokens * query_tile.n_heads;
  if (n == 1)
    return LoopOverKeyTiles<1, 2, Int8Products<kFloatLanes / 2>>(query_tile, span, batch_invariant);
  if (n == 2)
    return LoopOverKeyTiles<2, 2, Int8Products<kFloatLanes / 2>>(query_tile, span, batch_invariant);
  if (n <= 4)
    return LoopOverKeyTiles<4, 4, Int8Products<std::max<size_t>(kFloatLanes / 4, 2)>>(
        query_tile, span, batch_invariant);
  if constexpr (kFloatLanes >= 8) {
    if (n <= 8)
      return LoopOverKeyTiles<kRegisterQueries, 8, Int8Products<2>>(query_tile, span,
                                                                    batch_invariant);
    if (n <= kFloatLanes)
      return LoopOverKeyTiles<kRegisterQueries, kFloatLanes, Int8Products<2>>(query_tile, span,
                                                                              batch_invariant);
  }
  LoopOverKeyTiles<kRegisterQueries, 2 * kFloatLanes, Int8Products<1>>(query_tile, span,
                                                                       batch_invariant);
#else
  AttendInFloats<FloatProducts<Converted>>(query_tile, span);
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

#if HWY_ARCH_ARM_A64  // attention is not compiled for Arm's extensions
#undef PRONK_EXPORT
#undef PRONK_DISPATCH
#define PRONK_EXPORT HWY_EXPORT
#define PRONK_DISPATCH HWY_DYNAMIC_DISPATCH
#endif

PRONK_EXPORT(AttendF32);
PRONK_EXPORT(AttendF16);
PRONK_EXPORT(AttendQuantized);
PRONK_EXPORT(AttendConverted);

void AttendQueryTile(const QueryTile& query_tile, const KeySpan& span, bool batch_invariant) {
  const KvTypes type = query_tile.kv.type;
  if (IsBlocks(type.k) && IsBlocks(type.v)) {
    return PRONK_DISPATCH(AttendQuantized)(query_tile, span, batch_invariant);
  }
  if (type == KvType::kF32) return PRONK_DISPATCH(AttendF32)(query_tile, span, batch_invariant);
  if (type == KvType::kF16) return PRONK_DISPATCH(AttendF16)(query_tile, span, batch_invariant);
  PRONK_DISPATCH(AttendConverted)(query_tile, span, batch_invariant);
}

}  // namespace kernels
#endif  // HWY_ONCE
