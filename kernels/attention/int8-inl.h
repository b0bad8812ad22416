// The products of attention for caches in Q8_0 on x86. Included once per instruction set.
//
// Keys stay the bytes that they are, and queries are rounded to int8 with a scale for each 32
// numbers, as keys are. Values become int16 without rounding, and weights int16 after they are
// multiplied by their values' scales. All sums are integers below 2^31 (128 keys * 32767 * 127), so
// no result depends on the other queries of a block.
#if defined(PRONK_KERNELS_ATTENTION_INT8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_ATTENTION_INT8_INL_H_
#undef PRONK_KERNELS_ATTENTION_INT8_INL_H_
#else
#define PRONK_KERNELS_ATTENTION_INT8_INL_H_
#endif

#include <algorithm>
#include <array>

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

  void PackQueries(const QueryBlock& block, const BlockState& s, size_t first, size_t n) {
    for (size_t i = 0; i < s.n_queries; ++i) {
      std::array<float, kPart> padded{};
      std::copy_n(s.q[i] + first, n, padded.data());
      std::array<float, kBlocks> scales;
      std::array<int16_t, 2 * kBlocks> sums;
      QuantizeActivations(padded.data(), kPart, q_[i], scales.data(), sums.data());
      float nan = 0;  // rounding would hide those of a query
      for (const float x : padded) nan += 0 * x;
      for (size_t b = 0; b < kBlocks; ++b) {
        q_gains_[b][i] = block.params.scale * scales[b] + nan;
        q_offsets_[b][i] = -kKeyBias * (sums[2 * b] + sums[2 * b + 1]);
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
    for (size_t b = 0; b < (n + 31) / 32; ++b) {
      LoadScales(rows, b, kMicroRows, scales_[b]);
      uint32_t* const to = panel_ + 8 * b * kMicroRows;
      TransposeUnits<8>(reinterpret_cast<const uint8_t*>(Numbers(rows[0], b)), rows.stride,
                        kKeyBias, [&](VU8 v, size_t k, size_t r) HWY_ATTR {
                          hn::Store(hn::BitCast(DU32(), v), DU32(), to + k * kMicroRows + r);
                        });
    }
  }

  template <size_t kRows>
  HWY_INLINE void Score(size_t unit, size_t /*key*/, size_t n,
                        VSums<kRows, kRowVectors>& sums) const {
    const DF d;
    Ahead<kMicroRows * sizeof(Block) / 8> ahead(next_keys_, unit == 0);
    for (size_t b = 0; b < (n + 31) / 32; ++b) {
      VI32 dots[kRows][kRowVectors];
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        for (size_t v = 0; v < kRowVectors; ++v) {
          dots[r][v] = hn::Set(DI32(), q_offsets_[b][unit + r]);
        }
      }
      const uint32_t* const q = reinterpret_cast<const uint32_t*>(q_[unit]) + 8 * b;
      const uint32_t* const panel = panel_ + 8 * b * kMicroRows;
      HWY_UNROLL(8)
      for (size_t k = 0; k < 8; ++k) {
        ahead.Step();
        VU8 w[kRowVectors];
        for (size_t v = 0; v < kRowVectors; ++v) {
          w[v] = hn::BitCast(DU8(), hn::Load(DU32(), panel + k * kMicroRows + v * kFloats));
        }
        HWY_UNROLL(8)
        for (size_t r = 0; r < kRows; ++r) {
          const VI8 x = hn::BitCast(DI8(), hn::Set(DU32(), q[r * kPart / 4 + k]));
          for (size_t v = 0; v < kRowVectors; ++v) {
#if PRONK_VNNI
            dots[r][v] = DotBytes(dots[r][v], w[v], x);
#else
            dots[r][v] = DotSigned(dots[r][v], x, hn::BitCast(DI8(), w[v]));
#endif
          }
        }
      }
      HWY_UNROLL(8)
      for (size_t r = 0; r < kRows; ++r) {
        const VF gain = hn::Set(d, q_gains_[b][unit + r]);
        for (size_t v = 0; v < kRowVectors; ++v) {
          const VF scale = hn::Mul(hn::Load(d, scales_[b] + v * kFloats), gain);
          const VF dot = hn::ConvertTo(d, dots[r][v]);
          sums[r][v] = b == 0 ? hn::Mul(dot, scale) : hn::MulAdd(dot, scale, sums[r][v]);
        }
      }
    }
  }

  // Values as pairs of two keys, in the order of the weights' pairs.
  void PackValues(const QueryBlock& block, const TileKeys& keys, size_t first, size_t n) {
    const DI32 d;
    const DI16 d16;
    const hn::Rebind<int8_t, DI32> d8;
    const size_t bytes = CachedBytes<Block>(block.kv.value_stride);
    next_values_ = NextTile<Block>(block.kv.v, bytes, keys, first);
    const size_t n_keys = 2 * CountPairs(keys.seen.end);
    const CachedRows rows =
        FindRows(block.kv.v, bytes, keys, keys.seen, 0, n_keys, CachedBytes<Block>(first),
                 CachedBytes<Block>(n), copy_, kCopyStride);
    n_blocks_ = (n + 31) / 32;
    for (size_t b = 0; b < n_blocks_; ++b) {
      LoadScales(rows, b, n_keys, value_scales_[b]);
      for (size_t pair = 0; pair < n_keys / 2; ++pair) {
        const size_t p = pair / kFloats * kPairLanes + pair % kFloats;
        const int8_t *const low = Numbers(rows[p], b), *const high = Numbers(rows[p + kFloats], b);
        HWY_UNROLL(8)
        for (size_t i = 0; i < 32; i += kFloats) {
          const auto lower = hn::PromoteTo(d, hn::LoadU(d8, low + i));
          const auto upper = hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(d8, high + i)));
          const VI16 both = hn::OddEven(hn::BitCast(d16, upper), hn::BitCast(d16, lower));
          hn::Store(hn::BitCast(DU32(), both), DU32(), values_[b] + pair * 32 + i);
        }
      }
    }
  }

  // The weights times the scales of their keys' values.
  template <size_t kRows>
  void PackWeights(const BlockState& s, const TileKeys& keys) {
    const DF d;
    Range range = {};
    float limits[kBlocks] = {};
    for (size_t i = 0; i < s.n_queries; ++i) {
      const Range seen = SeenBy(s, i, 1, keys);
      if (i == 0 || seen.begin != range.begin || seen.end != range.end) {
        range = seen;
        for (size_t b = 0; b < n_blocks_; ++b) {
          float largest = 5e-8f;  // less than any f16, so that no limit is infinite
          for (size_t p = seen.begin; p < seen.end; ++p) {
            largest = std::max(largest, value_scales_[b][p]);
          }
          limits[b] = kInt16Limit / largest;
        }
      }
      const size_t n_keys = SeenBy(s, i / kRows * kRows, kRows, keys).end;
      for (size_t b = 0; b < n_blocks_; ++b) {
        const VF limit = hn::Set(d, limits[b]);
        RoundWeights(
            s.scores[i], n_keys,
            [&](size_t p) HWY_ATTR { return hn::Mul(limit, hn::Load(d, value_scales_[b] + p)); },
            weights_[b][i]);
        gains_[b][i] = s.gain[i] / limits[b];
      }
    }
  }

  template <size_t kRows>
  HWY_INLINE void Mean(const BlockState& /*s*/, size_t unit, Range keys, size_t /*first*/,
                       size_t lane, size_t /*n*/, VSums<kRows, kRowVectors>& sums) const {
    VI32 dots[kRows][kRowVectors];
    const size_t b = lane / 32;
    constexpr size_t kStep = 2 * kMicroRows * sizeof(Block) / 32;  // bytes of a step's pairs
    const Ahead<kStep> ahead(next_values_ + kKeys * lane * sizeof(Block) / 32, unit == 0);
    MultiplyPairs<kRows, kKeys / 2>(values_[b] + lane % 32, 32, CountPairs(keys.end),
                                    weights_[b][unit], ahead, dots);
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

  // Block b of a part of a row.
  static const int8_t* Numbers(const std::byte* row, size_t b) {
    return reinterpret_cast<const Block*>(row)[b].qs;
  }
  static HWY_INLINE void LoadScales(const CachedRows& rows, size_t b, size_t n, float* scales) {
    const hn::Rebind<hwy::float16_t, DF> dh;
    alignas(64) std::array<uint16_t, kKeys> halves;
    for (size_t i = 0; i < n; ++i) halves[i] = reinterpret_cast<const Block*>(rows[i])[b].d;
    for (size_t i = 0; i < n; i += kFloats) {
      const auto* const from = reinterpret_cast<const hwy::float16_t*>(halves.data());
      hn::Store(hn::PromoteTo(DF(), hn::Load(dh, from + i)), DF(), scales + i);
    }
  }

  alignas(64) uint32_t panel_[kPart / 4 * kMicroRows];    // [kPart / 4][kMicroRows keys]
  alignas(64) uint32_t values_[kBlocks][32 * kKeys / 2];  // [pairs of keys][32]
  alignas(64) int8_t q_[kBlockQueries][kPart];
  alignas(64) uint32_t weights_[kBlocks][kBlockQueries][kKeys / 2];
  static constexpr size_t kCopyStride = kBlocks * sizeof(Block);
  std::byte copy_[kKeys * kCopyStride];  // of rows that are not read in place
  alignas(64) float scales_[kBlocks][kMicroRows], value_scales_[kBlocks][kKeys];
  float q_gains_[kBlocks][kBlockQueries], gains_[kBlocks][kBlockQueries];
  int32_t q_offsets_[kBlocks][kBlockQueries];
  size_t n_blocks_;                            // of the values
  const std::byte *next_keys_, *next_values_;  // of the next tile
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_ATTENTION_INT8_INL_H_
