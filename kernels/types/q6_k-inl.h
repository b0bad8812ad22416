// Q6_K: 256 weights of six bits, with a scale of a byte for every 16. 210 bytes, 6.5625 bits a
// weight.
//
//   bytes    0 ... 127     ql: the low four bits
//            128 ... 191   qh: the top two bits
//            192 ... 207   scales, signed
//            208 209       d
//   ql       64 bytes for each half of 128 weights: the low nibbles have weights 0 to 63, the
//            high nibbles weights 64 to 127
//   qh       32 bytes for each half: bits 2k and 2k + 1 have stripe k of 32 weights
//   weight   d * scale * (q - 32)

#include "kernels/types/shared/striped16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q6_K : StripedType16<Q6_K, gguf::BlockQ6_K, false> {
  static constexpr gguf::DType kDType = gguf::DType::kQ6_K;
  static constexpr size_t kRowsAtOnceForOne = 2;
  using PanelForm = Int8Form<-32, 31, 2>;
  static constexpr int kZeroPoint = 32;
  static constexpr int kFactors[4] = {1, 1, 1, 1};

  static int Weight(const Block& block, int j) {
    const int half = j / 128, stripe = j % 128 / 32, l = j % 32;
    const uint8_t byte = block.ql[64 * half + 32 * (stripe % 2) + l];
    const int high = (block.qh[32 * half + l] >> (2 * stripe)) & 3;
    return ((stripe < 2 ? byte & 15 : byte >> 4) | high << 4) - 32;
  }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(block.scales[g]);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    const VU8 ql0 = LoadStripe<64>(w + offsetof(Block, ql), v);
    const VU8 ql1 = LoadStripe<64>(w + offsetof(Block, ql) + 32, v);
    const VU8 qh = LoadStripe<32>(w + offsetof(Block, qh), v);
#if HWY_ARCH_ARM_A64  // shifted into the vector of the other bits
    const VU8 upper = hn::ShiftRight<2>(qh);
    codes[0] = Mask(VU8{vsliq_n_u8(ql0.raw, qh.raw, 4)}, 63);
    codes[1] = Mask(VU8{vsliq_n_u8(ql1.raw, upper.raw, 4)}, 63);
    codes[2] = Mask(VU8{vsriq_n_u8(qh.raw, ql0.raw, 4)}, 63);
    codes[3] = VU8{vsriq_n_u8(upper.raw, ql1.raw, 4)};
#else
    codes[0] = AddBits(LowNibbles(ql0), ShiftBits<-4>(qh), 0x30);
    codes[1] = AddBits(LowNibbles(ql1), ShiftBits<-2>(qh), 0x30);
    codes[2] = AddBits(HighNibbles(ql0), qh, 0x30);
    codes[3] = AddBits(HighNibbles(ql1), ShiftBits<2>(qh), 0x30);
#endif
  }
  static HWY_INLINE StripedFactors Factors(const uint8_t* HWY_RESTRICT w) {
    StripedFactors factors;
    factors.scales = hn::BitCast(DI8x16(), hn::LoadU(DU8x16(), w + offsetof(Block, scales)));
    factors.d = SetHalf(DF(), w + offsetof(Block, d));
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
