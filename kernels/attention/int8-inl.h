// The products of attention for caches in Q8_0 on x86. Included once per instruction set.
//
// Keys stay the bytes that they are, and queries are rounded to int8 with a scale for each 32
// numbers, as keys are. Values become int16 without rounding; weights, 15 bits, are multiplied by
// their values' scales in steps of the tile's largest. All sums are integers below 2^31 (128 keys *
// 32767 * 127), so no result depends on the other queries of a block.
//
// Where instructions multiply any unsigned bytes (VNNI), values stay bytes, too. Weights have 15
// bits, in two bytes, or 8 in one, which halves the products: if no key of the tile has more than
// 1/32 of all weights so far. Then rounding them and the scales moves at most 128 / 255 / 32 = 1.6%
// of these, usually far less, since errors have both signs.
#if defined(PRONK_KERNELS_ATTENTION_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INT8_INL_H_
#undef PRONK_KERNELS_ATTENTION_INT8_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INT8_INL_H_
#endif

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/attention/int16-inl.h"
#include "kernels/ops/quantize.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Like FloatProducts.
class Int8Products {
 public:
  template <size_t kRows>
  static constexpr size_t kVectors = kRowVectors;
  static constexpr size_t kGroupKeys = kMicroRows;
  static constexpr float kSteps = Int16Products::kSteps, kOne = Int16Products::kOne;
  static constexpr bool kIntegerWeights = true;

  void PackQueries(const QueryBlock& block, const BlockState& s, size_t slot, size_t first,
                   size_t n) {
    for (size_t i = 0; i < s.n_queries; ++i) {
      std::array<float, kPart> padded{};
      std::copy_n(s.q[i] + first, n, padded.data());
      std::array<float, kBlocks> scales;
      std::array<int16_t, 2 * kBlocks> sums;
      QuantizeActivations(padded.data(), kPart, q_[slot + i], scales.data(), sums.data());
      for (size_t b = 0; b < kBlocks; ++b) {
        q_gains_[b][slot + i] = block.params.scale * scales[b];
        q_offsets_[b][slot + i] = -kKeyBias * (sums[2 * b] + sums[2 * b + 1]);
      }
    }
  }

  void PackKeys(const QueryBlock& block, const TileKeys& keys, size_t group, size_t first,
                size_t n) {
    const size_t bytes = CachedBytes<Block>(block.kv.key_length);
    next_keys_ = NextTile<Block>(block.kv.k, bytes, keys, first) + group * CachedBytes<Block>(n);
    const CachedRows rows =
        FindRows(block.kv.k, bytes, keys, keys.stored, group, kMicroRows, CachedBytes<Block>(first),
                 CachedBytes<Block>(n), copy_, kCopyStride);
    const size_t n_blocks = (n + 31) / 32;
    CopyScales(rows, n_blocks, kMicroRows);
    for (size_t b = 0; b < n_blocks; ++b) {
      uint32_t* const to = panel_ + 8 * b * kMicroRows;
      TransposeUnits<8>(reinterpret_cast<const uint8_t*>(Numbers(rows[0], b)), rows.stride,
                        kKeyBias, [&](VU8 v, size_t k, size_t r) HWY_ATTR {
                          hn::Store(hn::BitCast(DU32(), v), DU32(), to + k * kMicroRows + r);
                        });
    }
    for (size_t b = 0; b < n_blocks; ++b) ConvertScales(b, kMicroRows, scales_[b]);
  }

  template <size_t kRows>
  HWY_INLINE void Score(size_t slot, size_t /*key*/, size_t n, bool prefetches,
                        VSums<kRows, kRowVectors>& sums) const {
    const DF d;
    Ahead<kMicroRows * sizeof(Block) / 8> ahead(next_keys_, prefetches);
    for (size_t b = 0; b < (n + 31) / 32; ++b) {
      VDots<kRows> dots;
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        for (VI32& sum : dots[r]) sum = hn::Set(DI32(), q_offsets_[b][slot + r]);
      }
      const auto product = [](VI32 sum, VU32 key, VU32 q) HWY_ATTR {
#if PRONK_VNNI
        return DotBytes(sum, hn::BitCast(DU8(), key), hn::BitCast(DI8(), q));
#else
        return DotSigned(sum, hn::BitCast(DI8(), key), hn::BitCast(DI8(), q));
#endif
      };
      const uint32_t* const q = reinterpret_cast<const uint32_t*>(q_[slot]) + 8 * b;
      HWY_UNROLL(8)
      for (size_t k = 0; k < 8; ++k) {
        ahead.Step();
        AddProducts<kRows, kPart / 4>(panel_ + (8 * b + k) * kMicroRows, q + k, product, dots);
      }
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        const VF gain = hn::Set(d, q_gains_[b][slot + r]);
        for (size_t v = 0; v < kRowVectors; ++v) {
          const VF scale = hn::Mul(hn::Load(d, scales_[b] + v * kFloats), gain);
          const VF dot = hn::ConvertTo(d, dots[r][v]);
          sums[r][v] = b == 0 ? hn::Mul(dot, scale) : hn::MulAdd(dot, scale, sums[r][v]);
        }
      }
    }
  }

  // Values as words of kWordKeys keys, in the order of the weights' words.
  void PackValues(const QueryBlock& block, const TileKeys& keys, size_t first, size_t n) {
    const size_t bytes = CachedBytes<Block>(block.kv.value_stride);
    next_values_ = NextTile<Block>(block.kv.v, bytes, keys, first);
    const size_t n_keys = kWordKeys * CountWords<kWordKeys>(keys.seen.end);
    const CachedRows rows =
        FindRows(block.kv.v, bytes, keys, keys.seen, 0, n_keys, CachedBytes<Block>(first),
                 CachedBytes<Block>(n), copy_, kCopyStride);
    n_blocks_ = (n + 31) / 32;
    CopyScales(rows, n_blocks_, n_keys);
#if PRONK_VNNI
    // Words of four rows' bytes, which are interleaved twice, each piece of 16 for itself: so a
    // row's words are dealt to the pieces first. A vector has as many blocks as fit.
    const DU8 d8;
    static constexpr auto kDeal = [] {
      std::array<uint32_t, kFloats> deal{};
      for (uint32_t i = 0; i < kFloats; ++i) deal[i] = i % 4 * uint32_t{kPieces} + i / 4;
      return deal;
    }();
    const auto deal = hn::SetTableIndices(DU32(), kDeal.data());
    for (size_t b = 0; b < n_blocks_; b += kVectorBytes / 32) {
      for (size_t word = 0; word < n_keys / kWordKeys; ++word) {
        const auto row = [&](size_t k) HWY_ATTR {
          const std::byte* const at = rows[FirstKey<kWordKeys>(word) + k];
          const hn::FixedTag<uint8_t, 32> d32;
          const auto numbers = [&](size_t i) HWY_ATTR {
            return hn::LoadU(d32, reinterpret_cast<const uint8_t*>(Numbers(at, i)));
          };
#if PRONK_WIDE
          const VU8 all = hn::Combine(d8, numbers(n_blocks_ - 1), numbers(0));
#else
          const VU8 all = numbers(b);
#endif
          return hn::BitCast(d8, hn::TableLookupLanes(hn::BitCast(DU32(), all), deal));
        };
        const VU8 r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
        const auto put = [&](size_t i, VU8 low, VU8 high) HWY_ATTR {
          const DU16 d16;
          const auto a = hn::BitCast(d16, low), c = hn::BitCast(d16, high);
          uint32_t* const to = values_[b + i / 32] + word * 32 + i % 32;
          hn::Store(hn::BitCast(DU32(), hn::InterleaveLower(d16, a, c)), DU32(), to);
          hn::Store(hn::BitCast(DU32(), hn::InterleaveUpper(d16, a, c)), DU32(), to + kFloats);
        };
        put(0, hn::InterleaveLower(d8, r0, r1), hn::InterleaveLower(d8, r2, r3));
        put(2 * kFloats, hn::InterleaveUpper(d8, r0, r1), hn::InterleaveUpper(d8, r2, r3));
      }
    }
#else
    for (size_t b = 0; b < n_blocks_; ++b) {
      for (size_t word = 0; word < n_keys / kWordKeys; ++word) {
        const size_t p = FirstKey<kWordKeys>(word);
        HWY_UNROLL(8)
        for (size_t i = 0; i < 32; i += kFloats) {
          const auto number = [&](size_t k) HWY_ATTR {
            const hn::Rebind<int8_t, DI32> d8;
            const auto q = hn::LoadU(d8, Numbers(rows[p + k], b) + i);
            return hn::BitCast(DF(), hn::PromoteTo(DI32(), q));
          };
          hn::Store(Pairs(number(0), number(1)), DU32(), values_[b] + word * 32 + i);
        }
      }
    }
#endif
    for (size_t b = 0; b < n_blocks_; ++b) ConvertScales(b, n_keys, value_scales_[b]);
  }

  // The weights times the scales of their keys' values, with VNNI low bytes, then high ones, which
  // a query with weights of one byte has as zeros.
  template <size_t kRows>
  void PackWeights(const BlockState& s, const TileKeys& keys, size_t /*first*/) {
    Range range = {};
    const auto is_wide = [&](size_t i) { return !PRONK_VNNI || s.gain[i] > kWideShare * s.sum[i]; };
    for (size_t i = 0; i < s.n_queries; ++i) {
      const size_t unit = i / kRows;
      if (i % kRows == 0) {
        wide_[unit] = false;
        for (size_t r = i; r < i + kRows; ++r) wide_[unit] |= is_wide(r);
      }
      const Range seen = SeenBy(s, i, 1, keys);
      if (i == 0 || seen.begin != range.begin || seen.end != range.end) {
        range = seen;
        for (size_t b = 0; b < n_blocks_; ++b) FindFactors(value_scales_[b], seen, b);
      }
      const size_t n_keys = SeenBy(s, unit * kRows, kRows, keys).end;
      const bool wide = is_wide(i);
      for (size_t b = 0; b < n_blocks_; ++b) {
        const int16_t *const weights = Integers(s.scores[i]), *const factors = factors_[wide][b];
        uint32_t* const words = weights_[b][i];
        for (size_t p = 0; p < n_keys; p += kWordKeys * kFloats) {
          const auto product = [&](size_t k) HWY_ATTR {
            return hn::MulFixedPoint15(hn::Load(DI16(), weights + p + k),
                                       hn::Load(DI16(), factors + p + k));
          };
#if PRONK_VNNI
          VI16 first = product(0), second = product(kPairLanes);
          if (wide_[unit]) {
            const VU32 high = Bytes(hn::ShiftRight<8>(first), hn::ShiftRight<8>(second));
            hn::Store(high, DU32(), words + (p + kKeys) / 4);
            first = hn::And(first, hn::Set(DI16(), 255));
            second = hn::And(second, hn::Set(DI16(), 255));
          }
          hn::Store(Bytes(first, second), DU32(), words + p / 4);
#else
          hn::Store(hn::BitCast(DU32(), product(0)), DU32(), words + p / 2);
#endif
        }
        gains_[b][i] = s.gain[i] / limits_[wide][b];
      }
    }
  }

  template <size_t kRows>
  HWY_INLINE void Mean(const BlockState& /*s*/, size_t unit, Range keys, size_t /*first*/,
                       size_t lane, size_t /*n*/, VSums<kRows, kRowVectors>& sums) const {
    VDots<kRows> dots;
    const size_t b = lane / 32;
    constexpr size_t kStep = kWordKeys * kMicroRows * sizeof(Block) / 32;  // bytes of its words
    const Ahead<kStep> ahead(next_values_ + kKeys * lane * sizeof(Block) / 32, unit == 0);
    const uint32_t *const values = values_[b] + lane % 32, *const weights = weights_[b][unit];
    const size_t n = CountWords<kWordKeys>(keys.end);
#if PRONK_VNNI
    const auto dot = [](VI32 sum, VU32 value, VU32 weight) HWY_ATTR {
      return DotBytes(sum, hn::BitCast(DU8(), weight), hn::BitCast(DI8(), value));
    };
    SetZero<kRows>(dots);
    if (wide_[unit / kRows]) {
      MultiplyWords<kRows, kKeys / 2>(values, 32, n, weights + kKeys / 4, dot, ahead, dots);
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        for (VI32& sum : dots[r]) sum = hn::ShiftLeft<8>(sum);
      }
    }
    MultiplyWords<kRows, kKeys / 2>(values, 32, n, weights, dot, ahead, dots);
#else
    MultiplyPairs<kRows, kKeys / 2>(values, 32, n, weights, ahead, dots);
#endif
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t v = 0; v < kRowVectors; ++v) {
        sums[r][v] = hn::Mul(hn::ConvertTo(DF(), dots[r][v]), hn::Set(DF(), gains_[b][unit + r]));
      }
    }
  }

 private:
  using Block = gguf::BlockQ8_0;
  static constexpr size_t kBlocks = kPart / 32;
  // VNNI needs one side unsigned: added to keys, and taken off each sum from the start.
  static constexpr uint8_t kKeyBias = PRONK_VNNI ? 128 : 0;
  static_assert(kMicroRows <= 32);
  // Keys whose values and weights are in a word together.
  static constexpr size_t kWordKeys = PRONK_VNNI ? 4 : 2;
  static constexpr float kWideShare = 1.0f / 32;

  // In turns of eight bytes.
  static HWY_INLINE VU32 Bytes(VI16 a, VI16 b) {
    return hn::BitCast(DU32(), hn::ReorderDemote2To(DU8(), a, b));
  }

  // Sets what weights of block b are multiplied by, in steps of the largest of those seen, for
  // weights of one byte and of two.
  HWY_INLINE void FindFactors(const float* HWY_RESTRICT scales, Range seen, size_t b) {
    // Less than any f16, so that no limit is infinite; integers, so that a NaN is the largest.
    int32_t largest = std::bit_cast<int32_t>(5e-8f);
    for (size_t p = seen.begin; p < seen.end; ++p) {
      largest = std::max(largest, std::bit_cast<int32_t>(scales[p]));
    }
    for (size_t wide = PRONK_VNNI ? 0 : 1; wide < 2; ++wide) {
      limits_[wide][b] = (wide == 1 ? kInt16Limit : 255) / std::bit_cast<float>(largest);
      const VF limit = hn::Set(DF(), limits_[wide][b]);
      const auto factor = [&](size_t p) HWY_ATTR {
        return hn::ConvertInRangeTo(
            DI32(), hn::MulAdd(hn::Load(DF(), scales + p), limit, hn::Set(DF(), 0.5f)));
      };
      for (size_t p = 0; p < kKeys; p += kPairLanes) {
        hn::Store(hn::ReorderDemote2To(DI16(), factor(p), factor(p + kFloats)), DI16(),
                  factors_[wide][b] + p);
      }
    }
  }

  // Block b of a part of a row.
  static const int8_t* Numbers(const std::byte* row, size_t b) {
    return reinterpret_cast<const Block*>(row)[b].qs;
  }
  // The scales of n rows' blocks, of which there are one or two, are copied as halves, and read as
  // vectors after other work, since such a load waits for the small stores before it.
  HWY_INLINE void CopyScales(const CachedRows& rows, size_t n_blocks, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      const Block* const row = reinterpret_cast<const Block*>(rows[i]);
      halves_[0][i] = row[0].d;
      halves_[n_blocks - 1][i] = row[n_blocks - 1].d;
    }
  }
  HWY_INLINE void ConvertScales(size_t b, size_t n, float* scales) const {
    const hn::Rebind<hwy::float16_t, DF> dh;
    const auto* const from = reinterpret_cast<const hwy::float16_t*>(halves_[b]);
    for (size_t i = 0; i < n; i += kFloats) {
      hn::Store(hn::PromoteTo(DF(), hn::Load(dh, from + i)), DF(), scales + i);
    }
  }

  alignas(64) uint16_t halves_[kBlocks][kKeys];           // scales
  alignas(64) uint32_t panel_[kPart / 4 * kMicroRows];    // [kPart / 4][kMicroRows keys]
  alignas(64) uint32_t values_[kBlocks][32 * kKeys / 2];  // [pairs or fours of keys][32]
  alignas(64) int8_t q_[kSlots][kPart];
  alignas(64) uint32_t weights_[kBlocks][kBlockQueries][kKeys / 2];
  static constexpr size_t kCopyStride = kBlocks * sizeof(Block);
  std::byte copy_[kKeys * kCopyStride];  // of rows that are not read in place
  alignas(64) float scales_[kBlocks][kMicroRows], value_scales_[kBlocks][kKeys];
  alignas(64) int16_t factors_[2][kBlocks][kKeys];  // of weights of one byte and of two
  float limits_[2][kBlocks];
  bool wide_[kBlockQueries];  // units with weights of two bytes
  float q_gains_[kBlocks][kSlots], gains_[kBlocks][kBlockQueries];
  int32_t q_offsets_[kBlocks][kSlots];
  size_t n_blocks_;                            // of the values
  const std::byte *next_keys_, *next_values_;  // of the next tile
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INT8_INL_H_
