// Attention in int16 for batches of tokens and caches in f16, on x86, which multiplies int16 twice
// as fast as floats. Included once per instruction set.
//
// Each chunk of a query or key, each number of the values (over a tile's keys) and each query's
// attention weights become integers with their own scale. The integers have about 13 bits, because
// sums of products must stay below 2^31. The relative squared error is about 1e-8, as with f16. One
// instruction multiplies and adds pairs. The numbers of a pair of a query or key are kFloatLanes
// apart, which needs no permutation; a pair of weights or values belongs to two neighbouring keys.
#if defined(PRONK_KERNELS_ATTENTION_INT16_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INT16_OPERANDS_INL_H_
#undef PRONK_KERNELS_ATTENTION_INT16_OPERANDS_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INT16_OPERANDS_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/attention/integer_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A query's product with a key is at most the product of their lengths (Cauchy and Schwarz).
// Rounding adds less than sqrt(kHeadChunk) / 2 to a length: (kLengthLimit + 4)^2 < 2^31.
constexpr float kLengthLimit = 46300;
// Weights and values: (kWeightSum + kTileKeys / 2) * kValueLimit < 2^31.
constexpr float kValueLimit = 8190, kWeightSum = 262000;

// x * factor, rounded to an integer in the last bits of the sum: the addend is so large that the
// sum has no bits for fractions.
HWY_INLINE VF Rounded(VF x, VF factor) {
  return hn::MulAdd(x, factor, hn::Set(DF(), 12582912.0f));  // 1.5 * 2^23
}

// Lane i holds the integers of lane i of `low` and of `high`, each a result of Rounded().
HWY_INLINE VU32 Pairs(VF low, VF high) {
  const DU16 d16;
  const VU32 shifted = hn::ShiftLeft<16>(hn::BitCast(DU32(), high));
  return hn::BitCast(DU32(), hn::OddEven(hn::BitCast(d16, shifted), hn::BitCast(d16, low)));
}

// The scales of values depend on all keys of a tile, so a token's result depends on the other
// tokens of its batch.
class Int16Products : public LaneBuffers<hwy::float16_t, 1, 1, kHeadChunk / 2> {
 public:
  // The words that n numbers of a chunk take.
  static constexpr size_t CountWords(size_t n) {
    return ((n + 2 * kFloatLanes - 1) / (2 * kFloatLanes) * kFloatLanes + 7) / 8 * 8;
  }
  static constexpr size_t KeyStride() { return sizeof(keys[0]); }
  const std::byte* KeyAt(size_t key, size_t /*b*/) const {
    return reinterpret_cast<const std::byte*>(keys[key]);
  }
  static HWY_INLINE VI32 Dot(VI32 sum, VU8 key, VU32 q) {
    return DotWords(sum, hn::BitCast(DI16(), key), hn::BitCast(DI16(), q));
  }

  void PackQueries(const QueryTile& query_tile, const QueryState& s, size_t packed, size_t first,
                   size_t n) {
    for (size_t i = 0; i < s.n_padded; ++i) {
      alignas(64) std::array<uint32_t, kWords> words{};
      const auto* const chunk = reinterpret_cast<const std::byte*>(s.q[i] + first);
      SetScale(i, packed + i, first == 0, RoundChunk<float>(chunk, n, words.data()),
               query_tile.params.scale);
      for (size_t k = 0; k < kWords; ++k) PutWord(packed + i, k, words[k]);
    }
  }

  void PackKeys(const QueryTile& query_tile, const KeyTile& tile, size_t first, size_t n) {
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    const CachedRows rows =
        FindVectors(query_tile.kv.k, query_tile.kv.key_length, tile, first, n, next_keys);
    for (size_t p = aligned.begin; p < aligned.end; ++p) {
      key_scales[0][p] = RoundChunk<T>(rows[p - aligned.begin], n, keys[p]);
    }
  }

  // Packs values as pairs of two keys, in the order of the weights' pairs, with a scale for each
  // number.
  void PackValues(const QueryTile& query_tile, const KeyTile& tile, size_t first, size_t n) {
    const DF d;
    const KeyRange aligned = AlignKeys<kQueryLanes>(tile.seen);
    const CachedRows rows =
        FindVectors(query_tile.kv.v, query_tile.kv.value_stride, tile, first, n, next_values);
    VI32 max[kHeadChunk / kFloatLanes];
    for (VI32& m : max) m = hn::Zero(DI32());
    for (size_t p = tile.seen.begin; p < tile.seen.end; ++p) {
      for (size_t i = 0; i < kHeadChunk / kFloatLanes; ++i) {
        max[i] = hn::Max(max[i], Magnitude(Load<T>(rows[p - aligned.begin], i * kFloatLanes, n)));
      }
    }
    VF factors[kHeadChunk / kFloatLanes];
    for (size_t i = 0; i < kHeadChunk / kFloatLanes; ++i) {
      const VF largest = hn::BitCast(d, max[i]), limit = hn::Set(d, kValueLimit);
      factors[i] = hn::IfThenZeroElse(hn::Eq(largest, hn::Zero(d)), hn::Div(limit, largest));
      hn::Store(hn::Div(largest, limit), d, value_scales_ + i * kFloatLanes);
    }
    for (size_t p = aligned.begin; p < aligned.end; p += 2) {
      const std::byte *const low = rows[p - aligned.begin], *const high =
                                                                rows[p + 1 - aligned.begin];
      for (size_t i = 0; i < kHeadChunk / kFloatLanes; ++i) {
        const VF a = Rounded(Load<T>(low, i * kFloatLanes, n), factors[i]);
        const VF b = Rounded(Load<T>(high, i * kFloatLanes, n), factors[i]);
        hn::Store(Pairs(a, b), DU32(), values_ + p / 2 * kHeadChunk + i * kFloatLanes);
      }
    }
  }

  void PackWeights(const QueryState& s, const KeyTile& tile, size_t first) {
    if (first != 0) return;  // the first chunk's weights serve all chunks
    for (size_t i = 0; i < s.n_padded; i += kFloatLanes) {
      const VF sums = hn::Mul(hn::Load(DF(), s.tile_sum + i), hn::Set(DF(), 1 / kWeightOfOne));
      const VF limit =
          hn::Floor(hn::Div(hn::Set(DF(), kWeightSum), hn::Max(hn::Set(DF(), 8.0f), sums)));
      hn::Store(hn::Div(hn::Load(DF(), s.gain + i), limit), DF(), gains_ + i);
      const VU32 one = hn::BitCast(DU32(), hn::ConvertTo(DI32(), limit));
      const VI16 factor = hn::BitCast(DI16(), hn::Or(one, hn::ShiftLeft<16>(one)));
      const size_t outer = i / kWeightQueries * kWeightQueries;
      const KeyRange aligned = AlignKeys<kQueryLanes>(SeenBy(s, outer, kWeightQueries, tile));
      const float* const pairs = s.scores[i];
      for (size_t pair = aligned.begin / 2; pair < aligned.end / 2; ++pair) {
        const VI16 both = hn::BitCast(DI16(), hn::Load(DF(), pairs + pair * kFloatLanes));
        const VI16 product = hn::MulFixedPoint15(both, factor);
        hn::Store(hn::BitCast(DU32(), product), DU32(),
                  weights[0] + i * (kTileKeys / 2) + pair * kFloatLanes);
      }
    }
  }

  template <size_t kQueries>
  HWY_INLINE void WeightedSum(size_t query, KeyRange seen, size_t lane,
                              VSums<kQueries, kRowVectors>& sums) const {
    const KeyRange aligned = AlignKeys<kQueryLanes>(seen);
    VDots<kQueries> dots;
    const auto dot = [](VI32 sum, VU32 a, VU32 b) HWY_ATTR {
      return DotWords(sum, hn::BitCast(DI16(), a), hn::BitCast(DI16(), b));
    };
    SetZero<kQueries>(dots);
    MultiplyValues<kQueries, 1>(
        values_ + lane, kHeadChunk, aligned.begin / 2, aligned.end / 2, weights[0], query, dot,
        Prefetcher<kPrefetchedBytes>(next_values + kTileKeys * CachedBytes<T>(lane), query == 0),
        dots);
    HWY_UNROLL(8)
    for (size_t q = 0; q < kQueries; ++q) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        const VF scale = hn::Load(DF(), value_scales_ + lane + v * kFloatLanes);
        sums[q][v] = hn::Mul(hn::ConvertTo(DF(), dots[q][v]),
                             hn::Mul(scale, hn::Set(DF(), gains_[query + q])));
      }
    }
  }

 private:
  using T = hwy::float16_t;
  // |x| as an integer. A NaN compares above every number, so it propagates.
  static HWY_INLINE VI32 Magnitude(VF x) { return hn::BitCast(DI32(), hn::Abs(x)); }

  // Numbers [i, i + lanes) of a cached vector, zeros from `end` on.
  template <typename From>
  static HWY_INLINE VF Load(const std::byte* row, size_t i, size_t end) {
    return i < end ? LoadCached<From>(DF(), row, i, end) : hn::Zero(DF());
  }

  // Rounds a chunk of n numbers of a vector to pairs; returns their scale.
  template <typename From>
  static HWY_INLINE float RoundChunk(const std::byte* chunk, size_t n, uint32_t* pairs) {
    const DF d;
    VF max = hn::Zero(d), squares = hn::Zero(d);
    for (size_t i = 0; i < n; i += kFloatLanes) {
      const VF x = Load<From>(chunk, i, n);
      max = hn::Max(max, hn::Abs(x));
      squares = hn::MulAdd(x, x, squares);
    }
    const float length = std::sqrt(hn::ReduceSum(d, squares));
    const float scale = std::max(length / kLengthLimit, hn::ReduceMax(d, max) / kInt16Limit);
    const VF factor = hn::Set(d, length == 0 ? 0 : 1 / scale);
    for (size_t i = 0; i < n; i += 2 * kFloatLanes, pairs += kFloatLanes) {
      const VF low = Rounded(Load<From>(chunk, i, n), factor);
      const VF high = Rounded(Load<From>(chunk, i + kFloatLanes, n), factor);
      hn::Store(Pairs(low, high), DU32(), pairs);
    }
    return scale;
  }

  alignas(64) uint32_t values_[kHeadChunk * kTileKeys / 2];
  alignas(64) float value_scales_[kHeadChunk], gains_[kTileQueries];
  // The cached bytes that become a word for each of kMicroRows numbers.
  static constexpr size_t kPrefetchedBytes = 2 * kMicroRows * sizeof(T);
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INT16_OPERANDS_INL_H_
