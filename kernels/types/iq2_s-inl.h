// IQ2_S: 256 weights. Each 8 are one of the 1024 points of a grid, with signs; each 16 share a
// scale of four bits. 82 bytes, 2.5625 bits a weight.
//
//   bytes    0 1         d
//            2 ... 33    qs: the low eight bits of each index
//            34 ... 65   signs: a bit for each weight
//            66 ... 73   qh: the top two bits of each index
//            74 ... 81   scales: a nibble s for each 16 weights
//   weight   d * (0.5 + s) / 4 * sign * level, levels as in IQ2_XXS

#include "kernels/types/iq2_xxs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct IQ2_S : Iq2Type<IQ2_S, gguf::BlockIQ2_S, 4> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ2_S;
  using PanelForm = Int8Form<-kIq2Levels.back(), kIq2Levels.back(), 2>;

  static uint32_t Index(const Block& block, size_t k) {  // the index of the k-th 8 weights
    return block.qs[k] | (block.qh[k / 4] >> (2 * (k % 4)) & 3u) << 8;
  }
  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 2 * g; k < 2 * g + 2; ++k, integers += 8) {
      SetLevels<8>(kIq2sGrid[Index(block, k)], kIq2Levels, block.signs[k], integers);
    }
  }
  static float GroupScale(const Block& block, int g) {
    return Iq2Scale(HalfToFloat(block.d), ScaleNibble(block.scales, g));
  }
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadOctets(block + offsetof(Block, signs), p);
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint8_t>(block + offsetof(Block, scales), p);
  }
#if PRONK_VECTOR64
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[2]) {
    static constexpr SplitTable<1024> kTable(kIq2sGrid);
    const DU8 d;
    const hn::FixedTag<uint8_t, 32> d_indices;
    const uint8_t* const second = w + sizeof(Block);
    const VU8 index = hn::Combine(d, hn::LoadU(d_indices, second + offsetof(Block, qs)),
                                  hn::LoadU(d_indices, w + offsetof(Block, qs)));
    alignas(64) static constexpr auto kFourOfEach = [] {
      std::array<uint8_t, 64> from{};
      for (size_t i = 0; i < 64; ++i) from[i] = static_cast<uint8_t>(i / 4);
      return from;
    }();
    const hn::FixedTag<uint8_t, 8> d_top;
    const auto qh = hn::Combine(DU8x16(), hn::LoadU(d_top, second + offsetof(Block, qh)),
                                hn::LoadU(d_top, w + offsetof(Block, qh)));
    const VU8 top = Permute(hn::ResizeBitCast(d, qh), hn::Load(d, kFourOfEach.data()));
    const VU8 bit8 = hn::BitCast(d, hn::Set(DU32(), 0x40100401u));
    const VU8 bit9 = hn::BitCast(d, hn::Set(DU32(), 0x80200802u));
    const MU8 bits[] = {hn::MaskFromVec(index), hn::TestBit(top, bit8), hn::TestBit(top, bit9)};
    LookUpBlocks(kTable, index, bits, codes);
  }
#else
  static constexpr size_t kIndices = 32;
  static HWY_INLINE void ComputeIndices(const uint8_t* HWY_RESTRICT w,
                                        uint16_t* HWY_RESTRICT index) {
    const DU8 d;
    const hn::Rebind<uint8_t, DU32> d_bytes;
    for (size_t i = 0; i < kIndices; i += kVectorBytes) {
      auto high = hn::PromoteTo(DU32(), hn::LoadU(d_bytes, w + offsetof(Block, qh) + i / 4));
      high = hn::Or(high, hn::ShiftLeft<12>(high));  // two bits to each byte
      high = hn::Or(high, hn::ShiftLeft<6>(high));
      const VU8 top = Mask(hn::BitCast(d, high), 3),
                low = hn::LoadU(d, w + offsetof(Block, qs) + i);
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeLower(d, low, top)), DU16(), index + i);
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeUpper(d, low, top)), DU16(),
                index + i + kVectorBytes / 2);
    }
  }
  static HWY_INLINE void Weights(const uint8_t* /*block*/, const uint16_t* HWY_RESTRICT index,
                                 size_t p, VU8 (&weights)[4]) {
    LookUp<0xFFFF, 4>(kIq2sBytes.data(), index, p, weights);
  }
#endif
  static HWY_INLINE uint64_t Octet(const Block& block, size_t k) {
    return Negate8(kIq2sBytes[Index(block, k)], kSignBytes[block.signs[k]]);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
