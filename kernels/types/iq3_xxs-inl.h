// IQ3_XXS: 256 weights. Each 4 are one of the 256 points of a grid, with signs; each 32 share a
// scale of four bits. 98 bytes, 3.0625 bits a weight.
//
//   bytes    0 1         d
//            2 ... 65    qs: an index for each 4 weights
//            66 ... 97   signs_scales: a u32 for each 32 weights: 4 x 7 bits of signs (EvenSigns in
//                        tables.h), s on top
//   weight   d * (0.5 + s) / 2 * sign * level, levels 4, 12, 20 ... 62
#if defined(PRONK_KERNELS_TYPES_IQ3_XXS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_IQ3_XXS_INL_H_
#undef PRONK_KERNELS_TYPES_IQ3_XXS_INL_H_
#else
#define PRONK_KERNELS_TYPES_IQ3_XXS_INL_H_
#endif

#include "kernels/types/shared/lookup-inl.h"
#include "kernels/types/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

#if PRONK_VECTOR64
// The weights of a block, in fourths, by look-ups in registers. Byte b of `low` has levels 0 and 2
// of entry b, byte b of `high` levels 1 and 3. `ninth` are the top bits of the indices.
template <const auto& kLevels, const auto& kTable>
HWY_INLINE void LookUpIq3(VU8 index, MU8 ninth, VU16 sign_bytes, VU8 (&weights)[4]) {
  constexpr size_t kSize = sizeof(kTable.low);
  const MU8 bits[] = {hn::MaskFromVec(index), ninth};
  const VU8 low = Lookup<kSize>(kTable.low, index, bits);
  const VU8 high = Lookup<kSize>(kTable.high, index, bits);
  const VU8 signs = SplitSigns(sign_bytes);
  weights[0] = WeightsOf<kLevels, 0, 3, 3>(low, signs);
  weights[1] = WeightsOf<kLevels, 1, 3, 3>(high, signs);
  weights[2] = WeightsOf<kLevels, 2, 0, 3>(low, signs);
  weights[3] = WeightsOf<kLevels, 3, 0, 0>(high, signs);
}
constexpr SplitTable<256> kIq3xxsTable(kIq3xxsGrid);
#endif  // PRONK_VECTOR64

// Common code of IQ3_XXS and IQ3_S.
template <class Type, class Block, int kEighths>
struct Iq3Type : GridType<Type, Block, kEighths, 0, true> {
#if PRONK_VECTOR64
  static HWY_INLINE GridInput LoadInput(const ActivationRow& x, size_t i) {
    return LoadFourths(x, i, static_cast<float>(kEighths) / 8);
  }
  static HWY_INLINE void Multiply(const UnpackedGrid& w, const GridInput& in, RowSums& sums) {
    sums.products = AddFourths(sums.products, w.slices[0].weights, w.slices[0].scale[0], in);
  }
#endif
};

struct IQ3_XXS : Iq3Type<IQ3_XXS, gguf::BlockIQ3_XXS, 2> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ3_XXS;
  using PanelForm = Int8Form<-kIq3xxsLevels.back(), kIq3xxsLevels.back()>;

  static uint32_t Signs(const Block& block, int k) {  // the signs of the k-th 4 weights
    const uint32_t signs_scale = LoadU32(block.signs_scales + 4 * (k / 8));
    return EvenSigns(signs_scale >> (7 * (k % 8 / 2))) >> (4 * (k % 2));
  }
  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 8 * g; k < 8 * g + 8; ++k, integers += 4)
      SetLevels<4>(kIq3xxsGrid[block.qs[k]], kIq3xxsLevels, Signs(block, k), integers);
  }
  static float GroupScale(const Block& block, int g) {
    const uint32_t s = LoadU32(block.signs_scales + 4 * g) >> 28;
    return HalfToFloat(block.d) * (0.5f + static_cast<float>(s)) * 0.5f;
  }

  static HWY_INLINE void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice) {
    const uint8_t* const qs = w.block + offsetof(Block, qs);
    const VU64 groups = LoadGroups<uint32_t>(w.block + offsetof(Block, signs_scales), p);
    const VU16 signs = EvenSignsOf<0, 7>(groups);
#if PRONK_VECTOR64
    LookUpIq3<kIq3xxsLevels, kIq3xxsTable>(hn::LoadU(DU8(), qs), hn::FirstN(DU8(), 0), signs,
                                           slice.weights);
#else
    LookUp<255, 8>(kIq3xxsBytes.data(), qs, p, slice.weights);
    SetSigns(signs, slice);
#endif
    SetScales(hn::ShiftRight<28>(groups), w.d, slice);
  }
  // Unpacks whole groups, which share a word: 4% of prefill.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const block = reinterpret_cast<const Block*>(w);
    const float d = HalfToFloat(block->d);
    for (size_t g = 0; g < 8; ++g) {
      const uint32_t signs_scale = LoadU32(block->signs_scales + 4 * g);
      for (size_t l = 0; l < 4; ++l) {
        const uint8_t* const qs = block->qs + 8 * g + 2 * l;
        const uint64_t second = kIq3xxsBytes[qs[1]];
        const uint64_t octet = Negate8(kIq3xxsBytes[qs[0]] | second << 32,
                                       kSignBytes[EvenSigns(signs_scale >> (7 * l))]);
        hwy::CopyBytes<8>(&octet, out.weights + 32 * g + 8 * l);
      }
      out.scales[g] = d * (0.5f + static_cast<float>(signs_scale >> 28)) * 0.5f;
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_IQ3_XXS_INL_H_
