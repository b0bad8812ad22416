// Attention for a batch, see attention_tiles.h.
//
// A tile of queries (some tokens, with all query heads that share a key-value head) meets a tile of
// keys after the other. Both of its products have the shape that gemm-inl.h explains: keys become a
// panel whose lanes are keys, so that a query's scores need no sums across lanes, and values are
// such a panel as they are, with a lane for each number. Converting a tile of keys to floats is
// paid once for all queries. Between the products stand the weights, exp(score - maximum so far);
// where a tile raises the maximum, what was added up before is scaled down (Dao et al. 2022).
#include "kernels/attention_tiles.h"

#include <algorithm>
#include <array>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_tiles.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/cached-inl.h"
#include "kernels/exp-inl.h"
#include "kernels/panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kKeys = 64;    // of a tile
constexpr size_t kPart = 64;    // of a head's numbers, converted at a time
constexpr size_t kRegRows = 8;  // queries whose sums are in registers together
static_assert(kTileQueries % kRegRows == 0 && kKeys % kGroupRows == 0);

// 56 KB: what a part of a tile's work needs at a time is in the first-level cache, the rest in the
// second.
struct TileState {
  alignas(64) float scores[kTileQueries][kKeys];
  alignas(64) float panel[kPart * kKeys];
  alignas(64) float q_part[kTileQueries][kPart];
  alignas(64) float rows[kGroupRows][kPart];  // of keys
  std::array<float, kTileQueries> max, sum, factors;
  std::array<const float*, kTileQueries> q;
  std::array<float*, kTileQueries> out;
  std::array<size_t, kTileQueries> position;
  size_t n_queries;  // a multiple of kRegRows: the last query stands in for what is missing
};

// Numbers [first, first + n) of a cached vector as floats, zeros up to a multiple of a vector's.
template <typename T>
HWY_INLINE void LoadRow(const std::byte* HWY_RESTRICT row, size_t first, size_t n,
                        float* HWY_RESTRICT to) {
  const DF d;
  for (size_t i = 0; i < n; i += kFloats) {
    hn::StoreU(LoadCached<T>(d, row, first + i, first + n), d, to + i);
  }
}

// out[row][lane] = factors[row] * out[row][lane] + sum over i < n of x[row * kStride + i] *
// w[i * w_stride + lane] for kRegRows rows and kRowVectors vectors of lanes, of which the first
// n_lanes count.
template <size_t kStride>
HWY_INLINE void AddProducts(const float* HWY_RESTRICT w, size_t w_stride, size_t n,
                            const float* HWY_RESTRICT x, const float* HWY_RESTRICT factors,
                            float* const* HWY_RESTRICT out, size_t n_lanes) {
  const DF d;
  VF sums[kRegRows][kRowVectors];
  const auto count = [&](size_t v) { return n_lanes - std::min(n_lanes, v * kFloats); };
  HWY_UNROLL(kRegRows)
  for (size_t r = 0; r < kRegRows; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) {
      const VF old = count(v) >= kFloats ? hn::LoadU(d, out[r] + v * kFloats)
                                         : hn::LoadN(d, out[r] + v * kFloats, count(v));
      sums[r][v] = hn::Mul(old, hn::Set(d, factors[r]));
    }
  }
  for (size_t i = 0; i < n; ++i) {
    VF weights[kRowVectors];
    for (size_t v = 0; v < kRowVectors; ++v) {
      weights[v] = hn::LoadU(d, w + i * w_stride + v * kFloats);
    }
    HWY_UNROLL(kRegRows)
    for (size_t r = 0; r < kRegRows; ++r) {
      const VF factor = hn::Set(d, x[r * kStride + i]);
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[r][v] = hn::MulAdd(weights[v], factor, sums[r][v]);
      }
    }
  }
  HWY_UNROLL(kRegRows)
  for (size_t r = 0; r < kRegRows; ++r) {
    for (size_t v = 0; v < kRowVectors; ++v) {
      if (count(v) >= kFloats) {
        hn::StoreU(sums[r][v], d, out[r] + v * kFloats);
      } else {
        hn::StoreN(sums[r][v], d, out[r] + v * kFloats, count(v));
      }
    }
  }
}

// scores = q . k for n_keys keys from `key` on.
template <typename T>
void ScoreTile(const AttentionTile& tile, size_t key, size_t n_keys, TileState& s) {
  static constexpr std::array<float, kRegRows> kOnes = {1, 1, 1, 1, 1, 1, 1, 1};
  for (size_t i = 0; i < s.n_queries; ++i) std::fill_n(s.scores[i], kKeys, 0.0f);
  for (size_t first = 0; first < tile.key_length; first += kPart) {
    const size_t n = std::min(kPart, tile.key_length - first);
    // Rows that are a constant stride apart need one register for all of their addresses.
    for (size_t i = 0; i < s.n_queries; ++i) std::copy_n(s.q[i] + first, n, s.q_part[i]);
    for (size_t group = 0; group < n_keys; group += kGroupRows) {
      for (size_t r = 0; r < kGroupRows; ++r) {
        // The last key stands in for keys past it, whose scores nobody wants.
        const size_t row = key + std::min(group + r, n_keys - 1);
        LoadRow<T>(tile.k + row * CachedBytes<T>(tile.key_length), first, n, s.rows[r]);
      }
      Interleave<kPart, sizeof(s.rows[0])>(reinterpret_cast<const uint8_t*>(s.rows[0]), 0,
                                           reinterpret_cast<uint8_t*>(s.panel));
      for (size_t i = 0; i < s.n_queries; i += kRegRows) {
        std::array<float*, kRegRows> scores;
        for (size_t r = 0; r < kRegRows; ++r) scores[r] = s.scores[i + r] + group;
        AddProducts<kPart>(s.panel, kGroupRows, n, s.q_part[i], kOnes.data(), scores.data(),
                           kGroupRows);
      }
    }
  }
}

// Turns a query's scores of the first n_keys keys into weights, those of keys after it into zeros.
HWY_INLINE void Weigh(size_t i, size_t n_keys, float scale, TileState& s) {
  const DF d;
  float* const scores = s.scores[i];
  const VF factor = hn::Set(d, scale), lowest = hn::Set(d, std::numeric_limits<float>::lowest());
  VF max = lowest;
  for (size_t p = 0; p < kKeys; p += kFloats) {
    const size_t n = n_keys - std::min(n_keys, p);
    VF v = hn::Mul(hn::Load(d, scores + p), factor);
    if (n < kFloats) v = hn::IfThenElse(hn::FirstN(d, n), v, lowest);
    max = hn::Max(max, v);
    hn::Store(v, d, scores + p);
  }
  const float new_max = std::max(s.max[i], hn::ReduceMax(d, max));
  const VF shift = hn::Set(d, new_max);
  VF sum = hn::Zero(d);
  for (size_t p = 0; p < kKeys; p += kFloats) {
    const size_t n = n_keys - std::min(n_keys, p);
    VF e = Exp(d, hn::Sub(hn::Load(d, scores + p), shift));
    if (n < kFloats) e = hn::IfThenElseZero(hn::FirstN(d, n), e);
    hn::Store(e, d, scores + p);
    sum = hn::Add(sum, e);
  }
  s.factors[i] = hn::GetLane(Exp(d, hn::Set(d, s.max[i] - new_max)));
  s.sum[i] = s.sum[i] * s.factors[i] + hn::ReduceSum(d, sum);
  s.max[i] = new_max;
}

// out = factors * out + scores . v
template <typename T>
void AddValues(const AttentionTile& tile, size_t key, size_t n_keys, TileState& s) {
  for (size_t first = 0; first < tile.value_length; first += kPart) {
    const size_t n = std::min(kPart, tile.value_length - first);
    for (size_t p = 0; p < n_keys; ++p) {
      const std::byte* const v = tile.v + (key + p) * CachedBytes<T>(tile.value_length);
      LoadRow<T>(v, first, n, s.panel + p * kPart);
    }
    for (size_t i = 0; i < s.n_queries; i += kRegRows) {
      std::array<float*, kRegRows> out;
      for (size_t lane = 0; lane < n; lane += kGroupRows) {
        for (size_t r = 0; r < kRegRows; ++r) out[r] = s.out[i + r] + first + lane;
        AddProducts<kKeys>(s.panel + lane, kPart, n_keys, s.scores[i], &s.factors[i], out.data(),
                           n - lane);
      }
    }
  }
}

HWY_INLINE void BeginTile(const AttentionTile& tile, TileState& s) {
  const size_t n = tile.n_tokens * tile.n_heads;
  s.n_queries = (n + kRegRows - 1) / kRegRows * kRegRows;
  for (size_t i = 0; i < s.n_queries; ++i) {
    const size_t query = std::min(i, n - 1);
    const size_t token = query / tile.n_heads, head = query % tile.n_heads;
    s.q[i] = tile.q + token * tile.q_stride + head * tile.key_length;
    s.out[i] = tile.out + token * tile.out_stride + head * tile.value_length;
    s.position[i] = tile.first_pos + token;
    std::fill_n(s.out[i], tile.value_length, 0.0f);
  }
  s.max.fill(std::numeric_limits<float>::lowest());
  s.sum.fill(0.0f);
}

template <typename T>
HWY_INLINE void AttendOne(const AttentionTile& tile) {
  TileState s;
  BeginTile(tile, s);
  const size_t n_positions = tile.first_pos + tile.n_tokens;
  for (size_t key = 0; key < n_positions; key += kKeys) {
    const size_t n_keys = std::min(kKeys, n_positions - key);
    ScoreTile<T>(tile, key, n_keys, s);
    for (size_t i = 0; i < s.n_queries; ++i) {
      const size_t before = s.position[i] + 1 - std::min(key, s.position[i] + 1);
      Weigh(i, std::min(n_keys, before), tile.scale, s);
    }
    AddValues<T>(tile, key, n_keys, s);
  }
  for (size_t i = 0; i < tile.n_tokens * tile.n_heads; ++i) {
    const float factor = 1.0f / s.sum[i];
    for (size_t j = 0; j < tile.value_length; ++j) s.out[i][j] *= factor;
  }
}

void AttendTileF32(const AttentionTile& tile) { AttendOne<float>(tile); }
void AttendTileF16(const AttentionTile& tile) { AttendOne<hwy::float16_t>(tile); }
void AttendTileQ8(const AttentionTile& tile) { AttendOne<gguf::BlockQ8_0>(tile); }

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(AttendTileF32);
HWY_EXPORT(AttendTileF16);
HWY_EXPORT(AttendTileQ8);

void AttendTile(const AttentionTile& tile) {
  switch (tile.type) {
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
