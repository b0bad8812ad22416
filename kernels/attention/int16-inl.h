// The products of attention for a batch in int16, which x86 multiplies twice as fast as floats; for
// f16 and Q8_0 caches. Included once per instruction set.
//
// Each part of a query or key, each number of a tile's values (over its keys) and each query's
// weights become integers with their own scale. They have some 13 bits, because sums of products
// must stay below 2^31, with an error of about 1e-8 of their power, like f16. One instruction
// multiplies and adds pairs: a number and the one a vector's lanes after it, which needs no
// permutation.

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

// A magnitude as an integer. NaNs compare above everything, so they propagate.
HWY_INLINE VI32 Magnitude(VF x) { return hn::BitCast(DI32(), hn::Abs(x)); }

// Like FloatProducts.
template <typename T>
class Int16Products {
 public:
  void PackQueries(const QueryBlock& tile, const TileState& s, size_t first, size_t n) {
    for (size_t i = 0; i < s.n_queries; ++i) {
      q_gains_[i] = tile.params.scale *
                    RoundPart<float>(reinterpret_cast<const std::byte*>(s.q[i]), first, n, q_[i]);
    }
  }

  void PackKeys(const QueryBlock& tile, size_t slot, size_t end, size_t first, size_t n) {
    for (size_t r = 0; r < kMicroRows; ++r) {
      const size_t row = std::min(slot + r, end - 1);
      const std::byte* const k = tile.kv.k + row * CachedBytes<T>(tile.kv.key_length);
      if (first == 0) PrefetchAhead<T>(k, tile.kv.key_length, kKeys);
      scales_[r] = RoundPart<T>(k, first, n, rows_[r]);
    }
    Interleave<kPart / 2, sizeof(rows_[0])>(reinterpret_cast<const uint8_t*>(rows_[0]), 0,
                                            reinterpret_cast<uint8_t*>(panel_));
  }

  HWY_INLINE void Score(size_t unit, size_t n, VSums& sums) const {
    Multiply<kPart / 2>(panel_, kMicroRows, CountPairs(n), q_[unit], q_gains_ + unit, scales_,
                        sums);
  }

  void PackWeights(const TileState& s, size_t key, size_t n_keys) {
    for (size_t i = 0; i < s.n_queries; ++i) {
      const float limit = std::min(kInt16Limit, kWeightSum / s.tile_sum[i]);
      RoundWeights(s.scores[i], limit, UnitKeys(s, i, key, n_keys), weights_[i]);
      gains_[i] = s.gain[i] / limit;
    }
  }

  // Values as pairs of two keys, in the order of the weights' pairs, and a scale for each number.
  void PackValues(const QueryBlock& tile, size_t slot, size_t n_keys, size_t first, size_t n) {
    const DF d;
    const auto row = [&](size_t i) HWY_ATTR {
      // Keys past the last have weight 0.
      return tile.kv.v + (slot + std::min(i, n_keys - 1)) * CachedBytes<T>(tile.kv.value_stride);
    };
    const size_t end = first + n;
    VI32 max[kPart / kFloats];
    for (VI32& m : max) m = hn::Zero(DI32());
    for (size_t p = 0; p < n_keys; ++p) {
      const std::byte* const v = row(p);
      if (first == 0) PrefetchAhead<T>(v, tile.kv.value_stride, kKeys);
      for (size_t i = 0; i < kPart / kFloats; ++i) {
        max[i] = hn::Max(max[i], Magnitude(Load<T>(v, first + i * kFloats, end)));
      }
    }
    VF factors[kPart / kFloats];
    for (size_t i = 0; i < kPart / kFloats; ++i) {
      const VF largest = hn::BitCast(d, max[i]), limit = hn::Set(d, kValueLimit);
      factors[i] = hn::IfThenZeroElse(hn::Eq(largest, hn::Zero(d)), hn::Div(limit, largest));
      hn::Store(hn::Div(largest, limit), d, scales_ + i * kFloats);
    }
    for (size_t pair = 0; pair < CountPairs(n_keys); ++pair) {
      const size_t p = pair / kFloats * kPairLanes + pair % kFloats;
      const std::byte *const low = row(p), *const high = row(p + kFloats);
      for (size_t i = 0; i < kPart / kFloats; ++i) {
        const VF a = Rounded(Load<T>(low, first + i * kFloats, end), factors[i]);
        const VF b = Rounded(Load<T>(high, first + i * kFloats, end), factors[i]);
        hn::Store(Pairs(a, b), DU32(), panel_ + pair * kPart + i * kFloats);
      }
    }
  }

  HWY_INLINE void Mean(const TileState& /*s*/, size_t unit, size_t lane, size_t n_keys,
                       VSums& sums) const {
    Multiply<kKeys / 2>(panel_ + lane, kPart, CountPairs(n_keys), weights_[unit], gains_ + unit,
                        scales_ + lane, sums);
  }

 private:
  static constexpr size_t CountPairs(size_t n) {
    return (n + kPairLanes - 1) / kPairLanes * kFloats;
  }

  // Numbers [i, i + lanes) of a cached vector, zeros from `end` on.
  template <typename From>
  static HWY_INLINE VF Load(const std::byte* row, size_t i, size_t end) {
    return i < end ? LoadCached<From>(DF(), row, i, end) : hn::Zero(DF());
  }

  // Numbers [first, first + n) of a vector as pairs; returns their scale.
  template <typename From>
  static HWY_INLINE float RoundPart(const std::byte* row, size_t first, size_t n, uint32_t* pairs) {
    const DF d;
    VF max = hn::Zero(d), squares = hn::Zero(d);
    for (size_t i = first; i < first + n; i += kFloats) {
      const VF x = Load<From>(row, i, first + n);
      max = hn::Max(max, hn::Abs(x));
      squares = hn::MulAdd(x, x, squares);
    }
    const float length = std::sqrt(hn::ReduceSum(d, squares));
    const float scale = std::max(length / kLengthLimit, hn::ReduceMax(d, max) / kInt16Limit);
    const VF factor = hn::Set(d, length == 0 ? 0 : 1 / scale);
    for (size_t i = first; i < first + n; i += kPairLanes, pairs += kFloats) {
      const VF low = Rounded(Load<From>(row, i, first + n), factor);
      const VF high = Rounded(Load<From>(row, i + kFloats, first + n), factor);
      hn::Store(Pairs(low, high), DU32(), pairs);
    }
    return scale;
  }

  // A query's weights of n_keys keys and, up to a vector, zeros.
  static HWY_INLINE void RoundWeights(const float* weights, float limit, size_t n_keys,
                                      uint32_t* pairs) {
    const DF d;
    const VF factor = hn::Set(d, limit);
    for (size_t p = 0; p < n_keys; p += kPairLanes, pairs += kFloats) {
      const VF low = Rounded(hn::Load(d, weights + p), factor);
      const VF high = Rounded(hn::Load(d, weights + p + kFloats), factor);
      hn::Store(Pairs(low, high), DU32(), pairs);
    }
  }

  // sums[row][lane] = gain[row] * scales[lane] * sum over i < n of the two products of
  // x[row * kStride + i] and w[i * w_stride + lane].
  template <size_t kStride>
  static HWY_INLINE void Multiply(const uint32_t* HWY_RESTRICT w, size_t w_stride, size_t n,
                                  const uint32_t* HWY_RESTRICT x, const float* HWY_RESTRICT gain,
                                  const float* HWY_RESTRICT scales, VSums& sums) {
    const DI16 d16;
    const DU32 d32;
    VI32 dots[kQueryUnit][kRowVectors], unused = hn::Zero(DI32());
    HWY_UNROLL(kQueryUnit)
    for (size_t r = 0; r < kQueryUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) dots[r][v] = hn::Zero(DI32());
    }
    for (size_t i = 0; i < n; i += 4) {  // GCC copies all sums wherever a loop ends
      HWY_UNROLL(4)
      for (size_t k = i; k < i + 4; ++k) {
        VI16 weights[kRowVectors];
        for (size_t v = 0; v < kRowVectors; ++v) {
          weights[v] = hn::BitCast(d16, hn::Load(d32, w + k * w_stride + v * kFloats));
        }
        HWY_UNROLL(kQueryUnit)
        for (size_t r = 0; r < kQueryUnit; ++r) {
          const VI16 pair = hn::BitCast(d16, hn::Set(d32, x[r * kStride + k]));
          for (size_t v = 0; v < kRowVectors; ++v) {
            dots[r][v] =
                hn::ReorderWidenMulAccumulate(DI32(), weights[v], pair, dots[r][v], unused);
          }
        }
      }
    }
    HWY_UNROLL(kQueryUnit)
    for (size_t r = 0; r < kQueryUnit; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[r][v] = hn::Mul(hn::ConvertTo(DF(), dots[r][v]),
                             hn::Mul(hn::Load(DF(), scales + v * kFloats), hn::Set(DF(), gain[r])));
      }
    }
  }

  alignas(64) uint32_t panel_[kPart * kKeys / 2];
  alignas(64) uint32_t q_[kTileQueries][kPart / 2];
  alignas(64) uint32_t weights_[kTileQueries][kKeys / 2];
  alignas(64) uint32_t rows_[kMicroRows][kPart / 2];   // of keys
  alignas(64) float scales_[kPart];                    // of the panel's lanes
  float q_gains_[kTileQueries], gains_[kTileQueries];  // of the rows of q_ and weights_
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();
