// IQ3_S: 256 weights. Each 4 are one of the 512 points of a grid, with signs; each 32 share a scale
// of four bits. 110 bytes, 3.4375 bits a weight.
//
//   bytes    0 1           d
//            2 ... 65      qs: the low eight bits of each index
//            66 ... 73     qh: the ninth bit of each index
//            74 ... 105    signs: a bit for each weight
//            106 ... 109   scales: a nibble s for each 32 weights
//   weight   d * (2s + 1) * sign * level, levels 1, 3, 5 ... 15

#include "kernels/types/iq3_xxs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

#if PRONK_VECTOR64
constexpr SplitTable<512> kIq3sTable(kIq3sGrid);
#endif

struct IQ3_S : Iq3Type<IQ3_S, gguf::BlockIQ3_S, 8> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ3_S;
  using PanelForm = Int8Form<-kIq3sLevels.back(), kIq3sLevels.back()>;

  static uint32_t Index(const Block& block, int k) {  // the index of the k-th 4 weights
    return block.qs[k] | (block.qh[k / 8] >> (k % 8) & 1u) << 8;
  }
  static uint32_t SignBits(const Block& block, int k) {
    return static_cast<uint32_t>(block.signs[k / 2]) >> (4 * (k % 2));
  }
  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 8 * g; k < 8 * g + 8; ++k, integers += 4)
      SetLevels<4>(kIq3sGrid[Index(block, k)], kIq3sLevels, SignBits(block, k), integers);
  }
  static float GroupScale(const Block& block, int g) {
    return HalfToFloat(block.d) * static_cast<float>(1 + 2 * ScaleNibble(block.scales, g));
  }
#if !PRONK_VECTOR64
  static constexpr size_t kIndices = 64;
  static HWY_INLINE void ComputeIndices(const uint8_t* HWY_RESTRICT w,
                                        uint16_t* HWY_RESTRICT index) {
    const DU8 d;
    for (size_t p = 0; p < kBlockSlices; ++p) {
      const VU8 low = hn::LoadU(d, w + offsetof(Block, qs) + p * kVectorBytes);
      const VU8 high = hn::IfThenElseZero(Ninth(w, p), hn::Set(d, uint8_t{1}));
      uint16_t* const to = index + p * kVectorBytes;
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeLower(d, low, high)), DU16(), to);
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeUpper(d, low, high)), DU16(),
                to + kVectorBytes / 2);
    }
  }
#endif
  // The ninth bit of each index, in order. (Reads up to 8 bytes, which the block always has.)
  static HWY_INLINE hn::Mask<DU8> Ninth(const uint8_t* HWY_RESTRICT block, size_t p) {
    return hn::LoadMaskBits(DU8(), block + offsetof(Block, qh) + p * kSliceGroups);
  }

  static HWY_INLINE void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice) {
    const VU16 signs = LoadOctets(w.block + offsetof(Block, signs), p);
#if PRONK_VECTOR64
    const VU8 low = hn::LoadU(DU8(), w.block + offsetof(Block, qs));
    LookUpIq3<kIq3sLevels, kIq3sTable>(low, Ninth(w.block, p), signs, slice.weights);
#else
    LookUp<0xFFFF, 8>(kIq3sBytes.data(), w.index, p, slice.weights);
    SetSigns(signs, slice);
#endif
    // A nibble for each group.
    uint32_t nibbles;
    hwy::CopyBytes<4>(w.block + offsetof(Block, scales), &nibbles);
    const DU64 d;
    const VU64 shifts = hn::ShiftLeft<2>(hn::Iota(d, p * kSliceGroups));
    const VU64 s = hn::And(hn::Shr(hn::Set(d, nibbles), shifts), hn::Set(d, uint64_t{15}));
    SetScales(s, w.d, slice);
  }
  static HWY_INLINE uint64_t Octet(const Block& block, size_t k) {
    const uint32_t high = block.qh[k / 4] >> (2 * (k % 4));
    const uint64_t second = kIq3sBytes[block.qs[2 * k + 1] | (high & 2) << 7];
    return Negate8(kIq3sBytes[block.qs[2 * k] | (high & 1) << 8] | second << 32,
                   kSignBytes[block.signs[k]]);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
