// The products of attention in int16, which x86 multiplies twice as fast as floats: both for
// batches of tokens and caches in f16 (Int16Products), the weighted values of Q8_0 (int8-inl.h).
// Included once per instruction set.
//
// Each part of a query or key, each number of a tile's values (over its keys) and each query's
// weights become integers with their own scale. They have some 13 bits, because sums of products
// must stay below 2^31, with an error of about 1e-8 of their power, like f16. One instruction
// multiplies and adds pairs: those of queries and keys are a number and the one a vector's lanes
// after it, which needs no permutation; those of weights and values two neighbours.
#if defined(PRONK_KERNELS_ATTENTION_INT16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INT16_INL_H_
#undef PRONK_KERNELS_ATTENTION_INT16_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INT16_INL_H_
#endif

#include <algorithm>
#include <cmath>

#include "kernels/attention/products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A query's product with a key is at most the product of their lengths (Cauchy and Schwarz).
// Rounding adds less than sqrt(kPart) / 2 to a length: (kLengthLimit + 4)^2 < 2^31.
constexpr float kLengthLimit = 46300;
// Weights and values: (kWeightSum + kKeys / 2) * kValueLimit < 2^31.
constexpr float kValueLimit = 8190, kWeightSum = 262000;
constexpr float kInt16Limit = 32767;

using DU32 = hn::Repartition<uint32_t, DF>;
using VU32 = hn::Vec<DU32>;
constexpr size_t kPairLanes = 2 * kFloats;  // numbers in a vector of pairs
static_assert(kPart % kPairLanes == 0 && kKeys % kPairLanes == 0);

// Words of n numbers, whole vectors.
template <size_t kNumbers>
constexpr size_t CountWords(size_t n) {
  return (n + kNumbers * kFloats - 1) / (kNumbers * kFloats) * kFloats;
}

// The addend is so large that the sum's last bits are the integer.
HWY_INLINE VF Rounded(VF x, VF factor) {
  return hn::MulAdd(x, factor, hn::Set(DF(), 12582912.0f));  // 1.5 * 2^23
}

// Lane i holds the integers of lane i of both.
HWY_INLINE VU32 Pairs(VF low, VF high) {
  const DU16 d16;
  const VU32 shifted = hn::ShiftLeft<16>(hn::BitCast(DU32(), high));
  return hn::BitCast(DU32(), hn::OddEven(hn::BitCast(d16, shifted), hn::BitCast(d16, low)));
}

template <size_t kRows>
using VDots = VI32[kRows][kRowVectors];

template <size_t kRows>
HWY_INLINE void SetZero(VDots<kRows>& dots) {
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    for (VI32& sum : dots[r]) sum = hn::Zero(DI32());  // by indices GCC 12 fails with -O1
  }
}

// Adds to dots[row][lane] the products of numbers in the words x[row * kStride] and w[lane].
template <size_t kRows, size_t kStride, class Dot>
HWY_INLINE void AddProducts(const uint32_t* HWY_RESTRICT w, const uint32_t* HWY_RESTRICT x, Dot dot,
                            VDots<kRows>& dots) {
  VU32 words[kRowVectors];
  for (size_t v = 0; v < kRowVectors; ++v) words[v] = hn::Load(DU32(), w + v * kFloats);
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    const VU32 factors = hn::Set(DU32(), x[r * kStride]);
    for (size_t v = 0; v < kRowVectors; ++v) dots[r][v] = dot(dots[r][v], words[v], factors);
  }
}

// The same for n words x[row * kStride + i] and w[i * w_stride + lane].
template <size_t kRows, size_t kStride, class Dot, class Next>
HWY_INLINE void MultiplyWords(const uint32_t* HWY_RESTRICT w, size_t w_stride, size_t n,
                              const uint32_t* HWY_RESTRICT x, Dot dot, Next ahead,
                              VDots<kRows>& dots) {
  for (size_t i = 0; i < n; i += 4) {  // GCC copies all sums wherever a loop ends
    HWY_UNROLL(4)
    for (size_t k = i; k < i + 4; ++k) {
      ahead.Step();
      AddProducts<kRows, kStride>(w + k * w_stride, x + k, dot, dots);
    }
  }
}

// Of int16.
template <size_t kRows, size_t kStride, class Next>
HWY_INLINE void MultiplyPairs(const uint32_t* HWY_RESTRICT w, size_t w_stride, size_t n,
                              const uint32_t* HWY_RESTRICT x, Next ahead, VDots<kRows>& dots) {
  const auto dot = [](VI32 sum, VU32 a, VU32 b) HWY_ATTR {
    return DotWords(sum, hn::BitCast(DI16(), a), hn::BitCast(DI16(), b));
  };
  SetZero<kRows>(dots);
  MultiplyWords<kRows, kStride>(w, w_stride, n, x, dot, ahead, dots);
}

// Integers that are kept in place of floats.
HWY_INLINE int16_t* Integers(float* p) { return reinterpret_cast<int16_t*>(p); }
HWY_INLINE const int16_t* Integers(const float* p) { return reinterpret_cast<const int16_t*>(p); }

// Weights and factors of keys lie as instructions narrow two vectors to one, in turns of four:
// the first of the kWordKeys keys, neighbours, whose numbers are in a word together.
template <size_t kWordKeys>
constexpr size_t FirstKey(size_t word) {
  const size_t in_four = word % 4 * kWordKeys;
  return word / kFloats * kFloats * kWordKeys + in_four / 4 * kFloats + word % kFloats / 4 * 4 +
         in_four % 4;
}

// Like FloatProducts. The scales of values depend on all keys of a tile, so a token's result
// depends on the others of its batch.
class Int16Products {
 public:
  template <size_t kRows>
  static constexpr size_t kVectors = kRowVectors;
  static constexpr size_t kGroupKeys = kMicroRows;
  static constexpr float kSteps = 2048, kOne = 32768;
  static constexpr bool kIntegerWeights = true;

  void PackQueries(const QueryBlock& block, const BlockState& s, size_t slot, size_t first,
                   size_t n) {
    for (size_t i = 0; i < s.n_queries; ++i) {
      const auto* const part = reinterpret_cast<const std::byte*>(s.q[i] + first);
      q_gains_[slot + i] = block.params.scale * RoundPart<float>(part, n, q_[slot + i]);
    }
  }

  void PackKeys(const QueryBlock& block, const TileKeys& keys, size_t group, size_t first,
                size_t n) {
    const size_t bytes = CachedBytes<T>(block.kv.key_length);
    next_keys_ = NextTile<T>(block.kv.k, bytes, keys, first) + group * CachedBytes<T>(n);
    const CachedRows rows = FindRows(block.kv.k, bytes, keys, keys.stored, group, kMicroRows,
                                     CachedBytes<T>(first), CachedBytes<T>(n), copy_, kCopyStride);
    for (size_t r = 0; r < kMicroRows; ++r) scales_[r] = RoundPart<T>(rows[r], n, rows_[r]);
    Interleave<kPart / 2, sizeof(rows_[0])>(reinterpret_cast<const uint8_t*>(rows_[0]), 0,
                                            reinterpret_cast<uint8_t*>(panel_));
  }

  template <size_t kRows>
  HWY_INLINE void Score(size_t slot, size_t /*key*/, size_t n, bool prefetches,
                        VSums<kRows, kRowVectors>& sums) const {
    VI32 dots[kRows][kRowVectors];
    MultiplyPairs<kRows, kPart / 2>(panel_, kMicroRows, CountWords<2>(n), q_[slot],
                                    Ahead<kStep>(next_keys_, prefetches), dots);
    Convert<kRows>(dots, q_gains_ + slot, scales_, sums);
  }

  // Values as pairs of two keys, in the order of the weights' pairs, and a scale for each number.
  void PackValues(const QueryBlock& block, const TileKeys& keys, size_t first, size_t n) {
    const DF d;
    const size_t bytes = CachedBytes<T>(block.kv.value_stride);
    next_values_ = NextTile<T>(block.kv.v, bytes, keys, first);
    const size_t n_keys = 2 * CountWords<2>(keys.seen.end);
    const CachedRows rows = FindRows(block.kv.v, bytes, keys, keys.seen, 0, n_keys,
                                     CachedBytes<T>(first), CachedBytes<T>(n), copy_, kCopyStride);
    VI32 max[kPart / kFloats];
    for (VI32& m : max) m = hn::Zero(DI32());
    for (size_t p = keys.seen.begin; p < keys.seen.end; ++p) {
      for (size_t i = 0; i < kPart / kFloats; ++i) {
        max[i] = hn::Max(max[i], Magnitude(Load<T>(rows[p], i * kFloats, n)));
      }
    }
    VF factors[kPart / kFloats];
    for (size_t i = 0; i < kPart / kFloats; ++i) {
      const VF largest = hn::BitCast(d, max[i]), limit = hn::Set(d, kValueLimit);
      factors[i] = hn::IfThenZeroElse(hn::Eq(largest, hn::Zero(d)), hn::Div(limit, largest));
      hn::Store(hn::Div(largest, limit), d, scales_ + i * kFloats);
    }
    for (size_t pair = 0; pair < n_keys / 2; ++pair) {
      const size_t p = FirstKey<2>(pair);
      const std::byte *const low = rows[p], *const high = rows[p + 1];
      for (size_t i = 0; i < kPart / kFloats; ++i) {
        const VF a = Rounded(Load<T>(low, i * kFloats, n), factors[i]);
        const VF b = Rounded(Load<T>(high, i * kFloats, n), factors[i]);
        hn::Store(Pairs(a, b), DU32(), panel_ + pair * kPart + i * kFloats);
      }
    }
  }

  template <size_t kRows>
  void PackWeights(const BlockState& s, const TileKeys& keys, size_t first) {
    if (first != 0) return;  // those of the first part serve all
    for (size_t i = 0; i < s.n_queries; ++i) {
      const float limit = std::floor(kWeightSum / std::max(8.0f, s.tile_sum[i] / kOne));
      const VI16 factor = hn::Set(DI16(), static_cast<int16_t>(limit));
      const size_t n_keys = SeenBy(s, i / kRows * kRows, kRows, keys).end;
      for (size_t p = 0; p < n_keys; p += kPairLanes) {
        const VI16 weights = hn::Load(DI16(), Integers(s.scores[i]) + p);
        hn::Store(hn::BitCast(DU32(), hn::MulFixedPoint15(weights, factor)), DU32(),
                  weights_[i] + p / 2);
      }
      gains_[i] = s.gain[i] / limit;
    }
  }

  template <size_t kRows>
  HWY_INLINE void Mean(const BlockState& /*s*/, size_t unit, Range keys, size_t /*first*/,
                       size_t lane, size_t /*n*/, VSums<kRows, kRowVectors>& sums) const {
    VI32 dots[kRows][kRowVectors];
    MultiplyPairs<kRows, kKeys / 2>(
        panel_ + lane, kPart, CountWords<2>(keys.end), weights_[unit],
        Ahead<kStep>(next_values_ + kKeys * CachedBytes<T>(lane), unit == 0), dots);
    Convert<kRows>(dots, gains_ + unit, scales_ + lane, sums);
  }

 private:
  using T = hwy::float16_t;

  // A magnitude as an integer. NaNs compare above everything, so they propagate.
  static HWY_INLINE VI32 Magnitude(VF x) { return hn::BitCast(DI32(), hn::Abs(x)); }

  // Numbers [i, i + lanes) of a cached vector, zeros from `end` on.
  template <typename From>
  static HWY_INLINE VF Load(const std::byte* row, size_t i, size_t end) {
    return i < end ? LoadCached<From>(DF(), row, i, end) : hn::Zero(DF());
  }

  // A part of n numbers of a vector as pairs; returns their scale.
  template <typename From>
  static HWY_INLINE float RoundPart(const std::byte* part, size_t n, uint32_t* pairs) {
    const DF d;
    VF max = hn::Zero(d), squares = hn::Zero(d);
    for (size_t i = 0; i < n; i += kFloats) {
      const VF x = Load<From>(part, i, n);
      max = hn::Max(max, hn::Abs(x));
      squares = hn::MulAdd(x, x, squares);
    }
    const float length = std::sqrt(hn::ReduceSum(d, squares));
    const float scale = std::max(length / kLengthLimit, hn::ReduceMax(d, max) / kInt16Limit);
    const VF factor = hn::Set(d, length == 0 ? 0 : 1 / scale);
    for (size_t i = 0; i < n; i += kPairLanes, pairs += kFloats) {
      const VF low = Rounded(Load<From>(part, i, n), factor);
      const VF high = Rounded(Load<From>(part, i + kFloats, n), factor);
      hn::Store(Pairs(low, high), DU32(), pairs);
    }
    return scale;
  }

  // sums = gain of the row * scale of the lane * dots
  template <size_t kRows>
  static HWY_INLINE void Convert(const VI32 (&dots)[kRows][kRowVectors],
                                 const float* HWY_RESTRICT gain, const float* HWY_RESTRICT scales,
                                 VSums<kRows, kRowVectors>& sums) {
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[r][v] = hn::Mul(hn::ConvertTo(DF(), dots[r][v]),
                             hn::Mul(hn::Load(DF(), scales + v * kFloats), hn::Set(DF(), gain[r])));
      }
    }
  }

  alignas(64) uint32_t panel_[kPart * kKeys / 2];
  alignas(64) uint32_t q_[kSlots][kPart / 2];
  alignas(64) uint32_t weights_[kBlockQueries][kKeys / 2];
  alignas(64) uint32_t rows_[kMicroRows][kPart / 2];  // of keys
  static constexpr size_t kCopyStride = CachedBytes<T>(kPart);
  std::byte copy_[kKeys * kCopyStride];                        // of rows that are not read in place
  alignas(64) float scales_[kPart];                            // of the panel's lanes
  float q_gains_[kSlots], gains_[kBlockQueries];               // of the rows of q_ and weights_
  static constexpr size_t kStep = 2 * kMicroRows * sizeof(T);  // bytes of a step's pairs
  const std::byte *next_keys_, *next_values_;                  // of the next tile
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INT16_INL_H_
