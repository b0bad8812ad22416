// Q2_K: 256 weights of two bits, with a scale and a minimum for every 16, each of four bits times a
// common factor. 84 bytes, 2.625 bits a weight.
//
//   bytes    0 ... 15    scales: sc in the low nibble, min in the high nibble
//            16 ... 79   qs: 32 bytes for each half of 128; bits 2k and 2k + 1 have stripe k of 32
//            80 81       d
//            82 83       dmin
//   weight   d * sc * q - dmin * min
#if defined(PRONK_KERNELS_TYPES_Q2_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q2_K_INL_H_
#undef PRONK_KERNELS_TYPES_Q2_K_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q2_K_INL_H_
#endif

#include "kernels/types/shared/striped16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The two bits of weight j of Q2_K and Q3_K.
inline int TwoBits(const uint8_t (&qs)[64], int j) {
  const int half = j / 128, stripe = j % 128 / 32;
  return (qs[32 * half + j % 32] >> (2 * stripe)) & 3;
}

struct Q2_K : StripedType16<Q2_K, gguf::BlockQ2_K, true> {
  static constexpr gguf::DType kDType = gguf::DType::kQ2_K;
  static constexpr size_t kRowsAtOnceForOne = PRONK_VECTOR64 ? 4 : 2;
  using PanelForm =
      std::conditional_t<PRONK_MADDUBS, Int8Form<0, 3, 2, 2>, Int8Form<0, 15 * 3, 1, 2>>;
  static constexpr int kZeroPoint = 0;
  // These factors save two shifts; for transposed codes, whose dots need no sums of 16 bits, all
  // shifts.
  static constexpr int kFactors[4] = {1, 4, PRONK_VECTOR64 ? 16 : 1, PRONK_VECTOR64 ? 64 : 4};
  static constexpr int kProductZero = 0;
  static constexpr float kProductSign = 1;
  static constexpr auto kProducts = [] {  // [scale][code]
    std::array<std::array<int8_t, 16>, 16> tables{};
    for (int s = 0; s < 16; ++s) {
      for (int q = 0; q < 4; ++q) tables[s][q] = static_cast<int8_t>(s * q);
    }
    return tables;
  }();

  static int Weight(const Block& block, int j) { return TwoBits(block.qs, j); }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(block.scales[g] & 15);
  }
  static float GroupMin(const Block& block, int g) {
    return -F16ToF32(block.dmin) * static_cast<float>(block.scales[g] >> 4);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    const VU8 low = LoadStripe<32>(w + offsetof(Block, qs), v);
    const VU8 high = ShiftBits<4>(low);
    codes[0] = Mask(low, 3);
    codes[1] = Mask(low, 3 << 2);
    codes[2] = Mask(high, 3);
    codes[3] = Mask(high, 3 << 2);
  }
#if PRONK_VECTOR64
  // Lane 4p + k needs stripe k of four bytes that have all stripes.
  static HWY_INLINE void TransposedCodes(const uint8_t* HWY_RESTRICT w, size_t, VU8 (&codes)[4]) {
    const hn::Repartition<uint32_t, DU8> d;
    const auto qs = hn::BitCast(d, hn::LoadU(DU8(), w + offsetof(Block, qs)));
    const auto masks = hn::Dup128VecFromValues(d, 0x03030303, 0x0C0C0C0C, 0x30303030, 0xC0C0C0C0);
    codes[0] = hn::BitCast(DU8(), hn::And(hn::Broadcast<0>(qs), masks));
    codes[1] = hn::BitCast(DU8(), hn::And(hn::Broadcast<1>(qs), masks));
    codes[2] = hn::BitCast(DU8(), hn::And(hn::Broadcast<2>(qs), masks));
    codes[3] = hn::BitCast(DU8(), hn::And(hn::Broadcast<3>(qs), masks));
  }
#elif HWY_ARCH_X86
  static HWY_INLINE void TransposedCodes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    const VU8 low = LoadStripe<32>(w + offsetof(Block, qs), v);
    TransposePairs<0x03, 0x0C>(low, ShiftBits<4>(low), codes);
  }
#endif
  static HWY_INLINE StripedFactors Factors(const uint8_t* HWY_RESTRICT w) {
    const auto packed = hn::LoadU(DU8x16(), w + offsetof(Block, scales));
    StripedFactors factors;
    factors.scales = hn::BitCast(DI8x16(), hn::And(packed, hn::Set(DU8x16(), uint8_t{15})));
    factors.mins = hn::BitCast(DI8x16(), hn::ShiftRight<4>(packed));
    factors.d = SetHalf(DF(), w + offsetof(Block, d));
    factors.dmin = SetHalf(DF8(), w + offsetof(Block, dmin));
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q2_K_INL_H_
