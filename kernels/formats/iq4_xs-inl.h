// IQ4_XS: 256 weights of a non-uniform codebook of 16, with a scale of six bits for every 32. 136
// bytes, 4.25 bits a weight.
//
//   bytes    0 1         d
//            2 3         scales_h: two bits of each scale
//            4 ... 7     scales_l: four bits of each
//            8 ... 135   qs: of each 32 weights 16 bytes of nibbles, as in Q4_0
//   weight   d * (scale - 32) * values[q], values as in IQ4_NL

#include "kernels/formats/shared/groups32-inl.h"
#include "kernels/formats/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ4_XS : Signed32<IQ4_XS, gguf::BlockIQ4_XS, true>,
                Nibbles32<gguf::BlockIQ4_XS, TableCodes<kIq4nlValues, kSignedZero>, 16> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ4_XS;
  using Form = Int8Form<kIq4nlValues.front(), kIq4nlValues.back()>;

  static void Dequantize(const Block& block, float* out) {
    const float d = F16ToF32(block.d);
    for (int j = 0; j < 256; ++j) {
      const int group = j / 32;
      const int low = block.scales_l[group / 2] >> (4 * (group % 2)) & 15;
      const int s = low | (block.scales_h >> (2 * group) & 3) << 4;
      const uint8_t byte = block.qs[16 * group + j % 16];
      const int nibble = j % 32 < 16 ? byte & 15 : byte >> 4;
      out[j] = d * static_cast<float>(s - 32) * static_cast<float>(kIq4nlValues[nibble]);
    }
  }

  // d times six bits less 32: group g's low four are at bit 4g of scales_l, its top two at bit 2g
  // of scales_h, which is 16 + 2g of the first four bytes.
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    static_assert(offsetof(Block, d) == 0 && offsetof(Block, scales_h) == 2);
    uint32_t low_bits, high_bits;
    hwy::CopyBytes<4>(w + offsetof(Block, scales_l), &low_bits);
    hwy::CopyBytes<4>(w, &high_bits);
    const hn::RebindToUnsigned<D8> du;
    const hn::RebindToSigned<D8> di;
    const V8 d = SetHalf(D8(), w + offsetof(Block, d));
    Factors32 factors;
    for (size_t k = 0; k < kParts8; ++k) {
      uint32_t at[2][hn::MaxLanes(du)];
      for (uint32_t i = 0; i < hn::MaxLanes(du); ++i) {
        const auto group = static_cast<uint32_t>(k * hn::MaxLanes(du) + i);
        at[0][i] = 4 * group, at[1][i] = 12 + 2 * group;
      }
      const auto low = hn::Shr(hn::Set(du, low_bits), hn::LoadU(du, at[0]));
      const auto high = hn::Shr(hn::Set(du, high_bits), hn::LoadU(du, at[1]));
      const auto six = hn::OrAnd(hn::And(low, hn::Set(du, 15u)), high, hn::Set(du, 0x30u));
      const auto scale = hn::Sub(hn::BitCast(di, six), hn::Set(di, 32));
      factors.scales.part[k] = hn::Mul(hn::ConvertTo(D8(), scale), d);
    }
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
