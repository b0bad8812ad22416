// Q4_K: 256 weights of four bits, with a scale and a minimum for every 32, each of six bits times a
// common factor. 144 bytes, 4.5 bits a weight.
//
//   bytes    0 1          d
//            2 3          dmin
//            4 ... 15     scales: 8 sc and 8 min
//            16 ... 143   qs: each 32 bytes have 64 weights, first the low nibbles
//   scales   sc and min 0 to 3: the low six bits of bytes 0 to 3 and 4 to 7; sc and min 4 to 7:
//            the low and high nibbles of bytes 8 to 11, and above them the top two bits of bytes
//            0 to 3 and 4 to 7
//   weight   d * sc * q - dmin * min
#if defined(PRONK_KERNELS_TYPES_Q4_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q4_K_INL_H_
#undef PRONK_KERNELS_TYPES_Q4_K_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q4_K_INL_H_
#endif

#include "kernels/types/shared/types32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The scalar definition of a group's two small numbers.
struct ScaleMin {
  int scale, min;
};
inline ScaleMin SixBitScaleMin(const uint8_t (&s)[12], int group) {
  if (group < 4) return {s[group] & 63, s[group + 4] & 63};
  const int scale_top = s[group - 4] >> 6, min_top = s[group] >> 6;
  return {(s[group + 4] & 15) | scale_top << 4, (s[group + 4] >> 4) | min_top << 4};
}
// The four bits of weight j.
inline int FourBits(const uint8_t (&qs)[128], int j) {
  const uint8_t byte = qs[j / 64 * 32 + j % 32];
  return j % 64 < 32 ? byte & 15 : byte >> 4;
}

// Eight bytes as floats, times a factor.
template <class Bytes>
HWY_INLINE Floats8 ToFloats(Bytes bytes, VF8 factor) {
  const DF8 d;
  const hn::RebindToSigned<DF8> di;
  Floats8 floats;
#if PRONK_LANES128 == 1
  const auto words = hn::PromoteTo(hn::FixedTag<int16_t, 8>(), bytes);
  floats.vectors[0] = hn::Mul(hn::ConvertTo(d, hn::PromoteLowerTo(di, words)), factor);
  floats.vectors[1] = hn::Mul(hn::ConvertTo(d, hn::PromoteUpperTo(di, words)), factor);
#else
  floats.vectors[0] = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, bytes)), factor);
#endif
  return floats;
}

// The eight scales and then the eight minimums of Q4_K or Q5_K blocks, whose heads are 16 bytes
// each.
template <class V>
HWY_INLINE V ScalesAndMins(V heads) {
  const hn::DFromV<V> d8;
  const hn::Repartition<uint32_t, decltype(d8)> d32;
  alignas(16) static constexpr uint8_t kLow[16] = {4, 5, 6,  7,  12, 13, 14, 15,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
  alignas(16) static constexpr uint8_t kTop[16] = {128, 128, 128, 128, 4, 5, 6,  7,
                                                   128, 128, 128, 128, 8, 9, 10, 11};
  alignas(16) static constexpr uint32_t kShifts[4] = {0, 0, 0, 4};
  alignas(16) static constexpr uint32_t kMasks[4] = {0x3F3F3F3Fu, 0x0F0F0F0Fu, 0x3F3F3F3Fu,
                                                     0x0F0F0F0Fu};
  const auto low = hn::BitCast(d32, hn::TableLookupBytes(heads, hn::LoadDup128(d8, kLow)));
  const auto top = hn::BitCast(d32, hn::TableLookupBytesOr0(heads, hn::LoadDup128(d8, kTop)));
  const auto bits =
      hn::And(hn::Shr(low, hn::LoadDup128(d32, kShifts)), hn::LoadDup128(d32, kMasks));
  return hn::BitCast(d8, hn::OrAnd(bits, hn::ShiftRight<2>(top), hn::Set(d32, 0x30303030u)));
}

// d * sc and -dmin * min, for each 32 weights of a block.
HWY_INLINE Factors32 LoadScales6(const uint8_t* HWY_RESTRICT block) {
#if PRONK_LANES128 == 2 || HWY_ARCH_ARM_A64
  // Uses integer instructions: with one token, vector units are busy and integer units are idle.
  uint64_t halfs, packed;
  uint32_t high;
  hwy::CopyBytes<8>(block, &halfs);
  hwy::CopyBytes<8>(block + 4, &packed);
  hwy::CopyBytes<4>(block + 12, &high);
  constexpr uint64_t kSign = 0x8080808080808080u;
  const uint64_t first = packed & 0x3F3F3F3F3F3F3F3Fu;  // scales 0 to 3, minimums 0 to 3
  const uint64_t other =
      ((high | uint64_t{high} << 28) & 0x0F0F0F0F0F0F0F0Fu) | ((packed >> 2) & 0x3030303030303030u);
  const uint64_t scales = (first & 0xFFFFFFFFu) | other << 32;
  const uint64_t mins = first >> 32 | (other & 0xFFFFFFFF00000000u);
  const hn::FixedTag<int8_t, 8> d8;
  const auto signed_bytes = [=](uint64_t eight) HWY_ATTR {
#if HWY_ARCH_ARM_A64
    return hn::BitCast(d8, hn::Set(hn::FixedTag<uint64_t, 1>(), eight));
#else
    return hn::Vec<decltype(d8)>{_mm_cvtsi64_si128(static_cast<int64_t>(eight))};
#endif
  };
  const hn::Rebind<hwy::float16_t, DF8> d_half;
  const auto bits = hn::Set(hn::Repartition<uint64_t, decltype(d_half)>(), halfs);
  const VF8 d_dmin = hn::PromoteTo(DF8(), hn::BitCast(d_half, bits));
  return {ToFloats(signed_bytes(scales), hn::Broadcast<0>(d_dmin)),
          ToFloats(signed_bytes((kSign - mins) ^ kSign), hn::Broadcast<1>(d_dmin))};
#else
  const hn::FixedTag<float, 4> df;
  const auto head = hn::LoadU(DU8x16(), block), six = ScalesAndMins(head);
  const auto halfs = hn::LowerHalf(hn::BitCast(hn::FixedTag<hwy::float16_t, 8>(), head));
  const auto d_dmin = hn::ResizeBitCast(DF8(), hn::PromoteTo(df, halfs));
  return {ToFloats(hn::LowerHalf(six), hn::BroadcastLane<0>(d_dmin)),
          ToFloats(hn::UpperHalf(hn::Half<DU8x16>(), six), hn::Neg(hn::BroadcastLane<1>(d_dmin)))};
#endif
}

// The distance of the nibbles of kLanes128 even groups and of kLanes128 odd groups, in bytes.
constexpr size_t kNibbleStep = kLanes128 == 2 ? 64 : 32;

#if PRONK_VECTOR64
// The 6-bit scales of two rows, in the order of GroupOfLane<true>.
HWY_INLINE PairFactors LoadScales6(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1) {
  const hn::Half<DU8> d;
  const DU8x16 d16;
  const auto heads = hn::Combine(d, hn::LoadU(d16, w1), hn::LoadU(d16, w0));
  alignas(32) static constexpr uint8_t kOrder[32] = {
      0, 2,  4,  6,  1, 3,  5,  7,  16, 18, 20, 22, 17, 19, 21, 23,   // scales of both
      8, 10, 12, 14, 9, 11, 13, 15, 24, 26, 28, 30, 25, 27, 29, 31};  // minimums
  const auto six = hn::TableLookupLanes(ScalesAndMins(heads), hn::SetTableIndices(d, kOrder));
  // A half float of each head, in all lanes of its row.
  const auto halfs = [&](uint32_t bytes) HWY_ATTR {
    const hn::Repartition<uint32_t, decltype(d)> d32;
    const auto of_row = hn::TableLookupBytes(heads, hn::BitCast(d, hn::Set(d32, bytes)));
    return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), of_row));
  };
  const auto floats = [](hn::Vec<DU8x16> bytes)
                          HWY_ATTR { return hn::ConvertTo(DF(), hn::PromoteTo(DI32(), bytes)); };
  return {hn::Mul(floats(hn::LowerHalf(six)), halfs(0x01000100u)),
          hn::Mul(floats(hn::UpperHalf(d16, six)), hn::Neg(halfs(0x03020302u)))};
}
// The low nibbles for the lanes of even groups, the high nibbles for the lanes of odd groups.
template <class Block>
HWY_INLINE void LoadNibblePair(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                               VU8 (&codes)[8]) {
  VU8 row0[2], row1[2];
  LoadLanes128Pair<32>(w0 + offsetof(Block, qs), row0[0], row0[1]);
  LoadLanes128Pair<32>(w1 + offsetof(Block, qs), row1[0], row1[1]);
  // Matrices of bits, by which bytes are multiplied: bits 0 to 3, and 4 to 7.
  constexpr uint64_t kLow = 0x0102040800000000, kHigh = 0x1020408000000000;
  alignas(64) static constexpr uint64_t kBits[8] = {kLow, kLow, kHigh, kHigh,
                                                    kLow, kLow, kHigh, kHigh};
  HWY_UNROLL(8)
  for (size_t k = 0; k < 8; ++k) {
    const VU8 nibbles = PickLanes(row0[k / 4], row1[k / 4],
                                  [=](size_t i) { return i / 8 * 16 + i % 4 * 4 + k % 4; });
    const hn::Repartition<uint64_t, DU8> d64;
    codes[k] = VU8{_mm512_gf2p8affine_epi64_epi8(nibbles.raw, hn::Load(d64, kBits).raw, 0)};
  }
}
#endif

struct Q4_K : UnsignedType32<Q4_K, gguf::BlockQ4_K, 8, 15, true, true> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_K;
  static constexpr size_t kRowsAtOnceForOne = PRONK_VECTOR64 ? 4 : 2;

  static int Weight(const Block& block, int j) { return FourBits(block.qs, j); }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(SixBitScaleMin(block.scales, g).scale);
  }
  static float GroupMin(const Block& block, int g) {
    return -F16ToF32(block.dmin) * static_cast<float>(SixBitScaleMin(block.scales, g).min);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    VU8 nibbles[2];
    LoadLanes128Pair<kNibbleStep>(w + offsetof(Block, qs) + 16 * v, nibbles[0], nibbles[1]);
    for (size_t half = 0; half < 2; ++half) {
      codes[0][half] = LowNibbles(nibbles[half]);
      codes[1][half] = HighNibbles(nibbles[half]);
    }
  }
#if PRONK_VECTOR64
  static HWY_INLINE void PairCodes(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                                   VU8 (&codes)[8]) {
    LoadNibblePair<Block>(w0, w1, codes);
  }
  static HWY_INLINE PairFactors FactorsOfPair(const uint8_t* HWY_RESTRICT w0,
                                              const uint8_t* HWY_RESTRICT w1) {
    return LoadScales6(w0, w1);
  }
#endif
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) { return LoadScales6(w); }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q4_K_INL_H_
