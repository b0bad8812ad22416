// IQ2_XS: 256 weights. Each 8 are one of the 512 points of a grid, with signs; each 16 share a
// scale of four bits. 74 bytes, 2.3125 bits a weight.
//
//   bytes    0 1         d
//            2 ... 65    qs: a u16 for each 8 weights: nine bits of index, seven of signs
//                        (EvenSigns in tables.h)
//            66 ... 73   scales: a nibble s for each 16 weights
//   weight   d * (0.5 + s) / 4 * sign * level, levels as in IQ2_XXS

#include "kernels/types/iq2_xxs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ2_XS : Iq2Type<IQ2_XS, gguf::BlockIQ2_XS, 4> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ2_XS;
  using PanelForm = Int8Form<-kIq2Levels.back(), kIq2Levels.back(), 2>;

  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 2 * g; k < 2 * g + 2; ++k, integers += 8) {
      const uint32_t q = block.qs[k];
      SetLevels<8>(kIq2xsGrid[q & 511], kIq2Levels, EvenSigns(q >> 9), integers);
    }
  }
  static float GroupScale(const Block& block, int g) {
    return Iq2Scale(HalfToFloat(block.d), ScaleNibble(block.scales, g));
  }
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return EvenSignsOf<9, 16>(LoadGroups<uint64_t>(block + offsetof(Block, qs), p));
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint8_t>(block + offsetof(Block, scales), p);
  }
#if PRONK_VECTOR64
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[2]) {
    static constexpr SplitTable<512> kTable(kIq2xsGrid);
    const DU8 d;
    const VU8 first = hn::LoadU(d, w + offsetof(Block, qs));
    const VU8 second = hn::LoadU(d, w + sizeof(Block) + offsetof(Block, qs));
    const VU8 index = hn::ConcatEven(d, second, first);
    const VU8 above = hn::ConcatOdd(d, second, first);
    const MU8 bits[] = {hn::MaskFromVec(index), hn::TestBit(above, hn::Set(d, uint8_t{1}))};
    LookUpBlocks(kTable, index, bits, codes);
  }
#else
  static HWY_INLINE void Weights(const uint8_t* HWY_RESTRICT block, const uint16_t* /*index*/,
                                 size_t p, VU8 (&weights)[4]) {
    const auto* const words = reinterpret_cast<const uint16_t*>(block + offsetof(Block, qs));
    LookUp<511, 4>(kIq2xsBytes.data(), words, p, weights);
  }
#endif
  static HWY_INLINE uint64_t Octet(const Block& block, size_t k) {
    const uint32_t q = block.qs[k];
    return Negate8(kIq2xsBytes[q & 511], kSignBytes[EvenSigns(q >> 9)]);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
