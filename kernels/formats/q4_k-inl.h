// Q4_K: 256 weights of four bits, with a scale and a minimum for every 32, which are six bits each
// times a common one. 144 bytes, 4.5 bits a weight.
//
//   bytes    0 1          d
//            2 3          dmin
//            4 ... 15     scales: 8 sc and 8 min
//            16 ... 143   qs: each 32 bytes have 64 weights, first the low nibbles
//   scales   sc and min 0 to 3: the low six bits of bytes 0 to 3 and 4 to 7; sc and min 4 to 7:
//            the low and high nibbles of bytes 8 to 11, and above them the top two bits of bytes
//            0 to 3 and 4 to 7
//   weight   d * sc * q - dmin * min
#if defined(PRONK_KERNELS_FORMATS_Q4_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_Q4_K_INL_H_
#undef PRONK_KERNELS_FORMATS_Q4_K_INL_H_
#else
#define PRONK_KERNELS_FORMATS_Q4_K_INL_H_
#endif

#include "kernels/formats/shared/groups32-inl.h"

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

// Weights of Q4_K and Q5_K by their definition; code(j) is weight j's.
template <class Block, class Code>
void ScaleCodes(const Block& block, Code code, float* out) {
  const float d = F16ToF32(block.d), dmin = F16ToF32(block.dmin);
  for (int j = 0; j < 256; ++j) {
    const ScaleMin small = SixBitScaleMin(block.scales, j / 32);
    const float scale = d * static_cast<float>(small.scale);
    const float min = dmin * static_cast<float>(small.min);
    out[j] = scale * static_cast<float>(code(j)) - min;
  }
}

// Eight bytes as floats, times a factor.
HWY_INLINE Floats8 ToFloats(hn::Vec<hn::Half<DU8x16>> bytes, V8 factor) {
  const D8 d;
  const hn::RebindToSigned<D8> di;
  Floats8 floats;
#if PRONK_PIECES == 1
  const auto words = hn::PromoteTo(hn::FixedTag<int16_t, 8>(), bytes);
  floats.part[0] = hn::Mul(hn::ConvertTo(d, hn::PromoteLowerTo(di, words)), factor);
  floats.part[1] = hn::Mul(hn::ConvertTo(d, hn::PromoteUpperTo(di, words)), factor);
#else
  floats.part[0] = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, bytes)), factor);
#endif
  return floats;
}

// d * sc and -dmin * min, for each 32 weights of a Q4_K or Q5_K block.
HWY_INLINE Factors32 LoadScales6(const uint8_t* HWY_RESTRICT block) {
  const DU8x16 d8;
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<float, 4> df;
  const auto head = hn::LoadU(d8, block);
  alignas(16) static constexpr uint8_t kLow[16] = {4, 5, 6,  7,  12, 13, 14, 15,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
  alignas(16) static constexpr uint8_t kTop[16] = {128, 128, 128, 128, 4, 5, 6,  7,
                                                   128, 128, 128, 128, 8, 9, 10, 11};
  alignas(16) static constexpr uint32_t kShifts[4] = {0, 0, 0, 4};
  alignas(16) static constexpr uint32_t kMasks[4] = {0x3F3F3F3Fu, 0x0F0F0F0Fu, 0x3F3F3F3Fu,
                                                     0x0F0F0F0Fu};
  const auto low = hn::And(hn::Shr(hn::BitCast(d32, hn::TableLookupBytes(head, hn::Load(d8, kLow))),
                                   hn::Load(d32, kShifts)),
                           hn::Load(d32, kMasks));
  const auto top =
      hn::ShiftRight<2>(hn::BitCast(d32, hn::TableLookupBytesOr0(head, hn::Load(d8, kTop))));
  const auto six = hn::BitCast(d8, hn::OrAnd(low, top, hn::Set(d32, 0x30303030u)));

  const auto halfs = hn::LowerHalf(hn::BitCast(hn::FixedTag<hwy::float16_t, 8>(), head));
  const auto d_dmin = hn::ResizeBitCast(D8(), hn::PromoteTo(df, halfs));
  return {ToFloats(hn::LowerHalf(six), hn::BroadcastLane<0>(d_dmin)),
          ToFloats(hn::UpperHalf(hn::Half<DU8x16>(), six), hn::Neg(hn::BroadcastLane<1>(d_dmin)))};
}

// The distance of nibbles of kPieces even groups and of kPieces odd ones, in bytes.
constexpr size_t kNibbleStep = kPieces == 2 ? 64 : 32;

struct Q4_K : Type32<Q4_K, gguf::BlockQ4_K, 8, 15, true, true> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_K;
  static constexpr size_t kStreams = 2;

  static void Dequantize(const Block& block, float* out) {
    ScaleCodes(
        block, [&](int j) { return FourBits(block.qs, j); }, out);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    VU8 nibbles[2];
    LoadPiecePairs<kNibbleStep>(w + offsetof(Block, qs) + 16 * v, nibbles[0], nibbles[1]);
    for (size_t half = 0; half < 2; ++half) {
      codes[0][half] = LowNibbles(nibbles[half]);
      codes[1][half] = HighNibbles(nibbles[half]);
    }
  }
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) { return LoadScales6(w); }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_Q4_K_INL_H_
