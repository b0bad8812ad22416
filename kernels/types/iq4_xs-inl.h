// IQ4_XS: 256 weights of a non-uniform codebook of 16, with a scale of six bits for every 32. 136
// bytes, 4.25 bits a weight.
//
//   bytes    0 1         d
//            2 3         scales_h: two bits of each scale
//            4 ... 7     scales_l: four bits of each scale
//            8 ... 135   qs: 16 bytes of nibbles for each 32 weights, as in Q4_0
//   weight   d * (scale - 32) * values[q], values as in IQ4_NL

#include "kernels/types/shared/tables.h"
#include "kernels/types/shared/types32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ4_XS : SignedType32<IQ4_XS, gguf::BlockIQ4_XS, true>,
                Nibbles32<gguf::BlockIQ4_XS, TableCodes<kIq4nlValues, kSignedOffset>, 16> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ4_XS;
  using PanelForm = Int8Form<kIq4nlValues.front(), kIq4nlValues.back()>;

  static int Scale(const Block& block, int group) {
    const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
    return (low | (block.scales_h >> (2 * group) & 3) << 4) - 32;
  }
  static int Weight(const Block& block, int j) {
    const uint8_t byte = block.qs[16 * (j / 32) + j % 16];
    return kIq4nlValues[j % 32 < 16 ? byte & 15 : byte >> 4];
  }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(Scale(block, g));
  }

  // d * (six bits - 32): group g's low four bits are at bit 4g of scales_l, its top two at bit 2g
  // of scales_h, which is bit 16 + 2g of the first four bytes.
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    static_assert(offsetof(Block, d) == 0 && offsetof(Block, scales_h) == 2);
    uint32_t low_bits, high_bits;
    hwy::CopyBytes<4>(w + offsetof(Block, scales_l), &low_bits);
    hwy::CopyBytes<4>(w, &high_bits);
    const VF8 d = SetHalf(DF8(), w + offsetof(Block, d));
    Factors32 factors;
#if HWY_ARCH_ARM_A64  // in integer registers, while vector units are busy: a byte for each group
    uint64_t low = low_bits, high = high_bits >> 16;
    low = (low | low << 16) & 0x0000FFFF0000FFFF, high = (high | high << 24) & 0x000000FF000000FF;
    low = (low | low << 8) & 0x00FF00FF00FF00FF, high = (high | high << 12) & 0x000F000F000F000F;
    low = (low | low << 4) & 0x0F0F0F0F0F0F0F0F, high = (high | high << 6) & 0x0303030303030303;
    const hn::FixedTag<int8_t, 8> d8;
    const auto six = hn::BitCast(d8, hn::Set(hn::FixedTag<uint64_t, 1>(), low | high << 4));
    const auto words = hn::PromoteTo(hn::FixedTag<int16_t, 8>(), hn::Sub(six, hn::Set(d8, 32)));
    factors.scales.vectors[0] = hn::Mul(hn::ConvertTo(DF(), hn::PromoteLowerTo(DI32(), words)), d);
    factors.scales.vectors[1] = hn::Mul(hn::ConvertTo(DF(), hn::PromoteUpperTo(DI32(), words)), d);
#else
    const hn::RebindToUnsigned<DF8> du;
    const hn::RebindToSigned<DF8> di;
    for (size_t k = 0; k < kVectors8; ++k) {
      uint32_t at[2][hn::MaxLanes(du)];
      for (uint32_t i = 0; i < hn::MaxLanes(du); ++i) {
        const auto group = static_cast<uint32_t>(k * hn::MaxLanes(du) + i);
        at[0][i] = 4 * group, at[1][i] = 12 + 2 * group;
      }
      const auto low = hn::Shr(hn::Set(du, low_bits), hn::LoadU(du, at[0]));
      const auto high = hn::Shr(hn::Set(du, high_bits), hn::LoadU(du, at[1]));
      const auto six = hn::OrAnd(hn::And(low, hn::Set(du, 15u)), high, hn::Set(du, 0x30u));
      const auto scale = hn::Sub(hn::BitCast(di, six), hn::Set(di, 32));
      factors.scales.vectors[k] = hn::Mul(hn::ConvertTo(DF8(), scale), d);
    }
#endif
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
