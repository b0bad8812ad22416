// IQ2_XXS: 256 weights. Each 8 are one of the 256 points of a grid, with signs; each 32 share a
// scale of four bits. 66 bytes, 2.0625 bits a weight.
//
//   bytes    0 1         d
//            2 ... 65    qs: eight bytes for each 32 weights: 4 indices, then a u32 with 4 x 7 bits
//                        of signs (the eighth makes them even, EvenSigns in tables.h) and s on top
//   weight   d * (0.5 + s) / 4 * sign * level, levels 8, 25, 43
#if defined(PRONK_KERNELS_TYPES_IQ2_XXS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_IQ2_XXS_INL_H_
#undef PRONK_KERNELS_TYPES_IQ2_XXS_INL_H_
#else
#define PRONK_KERNELS_TYPES_IQ2_XXS_INL_H_
#endif

#include "kernels/types/shared/lookup-inl.h"
#include "kernels/types/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The scale of IQ2 types: s is an odd multiple of an eighth of d.
inline float Iq2Scale(float d, uint32_t s) { return d * (0.5f + static_cast<float>(s)) * 0.25f; }

#if PRONK_VECTOR64
// Look-ups in registers, for the 64 indices of two blocks at once. A type adds Codes(w, codes), a
// vector of codes for each block, and Signs and Scales of a block.
template <class Type, class BlockType, int kBits>
struct Iq2Type : GridDefinition<Type, BlockType, kBits == 0 ? 32 : 16> {
  using Block = BlockType;
  struct Input {
    GridInput block[2];
  };
  struct Unpacked {
    VU8 weights[2][4];
    VF scale[2];
  };
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 2 * Block::kWeights;
  static constexpr size_t kStepBytes = 2 * sizeof(Block);

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    return {{LoadFourths(x, i, 0.125f), LoadFourths(x, i + Block::kWeights, 0.125f)}};
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    VU8 codes[2];
    Type::Codes(w, codes);
    Unpacked unpacked;
    for (size_t b = 0; b < 2; ++b) {
      const uint8_t* const block = w + b * sizeof(Block);
      const VU8 signs = SplitSigns(Type::Signs(block, 0));
      unpacked.weights[b][0] = WeightsOf<kIq2Levels, 0, 0, 4>(codes[b], signs);
      unpacked.weights[b][1] = WeightsOf<kIq2Levels, 1, 2, 2>(codes[b], signs);
      unpacked.weights[b][2] = WeightsOf<kIq2Levels, 2, 4, 4>(codes[b], signs);
      unpacked.weights[b][3] = WeightsOf<kIq2Levels, 3, 6, 4>(codes[b], signs);
      const VF d = SetHalf(DF(), block + offsetof(Block, d));
      unpacked.scale[b] = ScaleOf(LaneScales(block), d);
    }
    return unpacked;
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t /*n*/) {  // the first of two blocks
    w.scale[1] = hn::Zero(DF());
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    for (size_t b = 0; b < 2; ++b) {
      sums.products = AddFourths(sums.products, w.weights[b], w.scale[b], in.block[b]);
    }
  }

  // Small scales: of 32 weights in two lanes, or nibbles, one for each 16.
  static HWY_INLINE VI32 LaneScales(const uint8_t* HWY_RESTRICT block) {
    if constexpr (kBits == 0) {
      return InBothLanes(Type::Scales(block, 0));
    } else {
      const DU8x16 d;
      const auto bytes = hn::LoadU(hn::FixedTag<uint8_t, 8>(), block + offsetof(Block, scales));
      const auto low = hn::ResizeBitCast(d, bytes);
      const auto high = hn::BitCast(d, hn::ShiftRight<4>(hn::BitCast(DU16x8(), low)));
      const auto both = hn::InterleaveLower(d, low, high);
      return hn::PromoteTo(DI32(), hn::And(both, hn::Set(d, uint8_t{15})));
    }
  }

  // Looks up codes by the low seven bits of the indices and masks of the higher bits.
  template <size_t kSize>
  static HWY_INLINE void LookUpBlocks(const SplitTable<kSize>& grid, VU8 index,
                                      const MU8* HWY_RESTRICT bits, VU8 (&codes)[2]) {
    const VU8 low = Lookup<kSize>(grid.low, index, bits);
    const VU8 high = Lookup<kSize>(grid.high, index, bits);
    codes[0] = hn::InterleaveWholeLower(DU8(), low, high);
    codes[1] = hn::InterleaveWholeUpper(DU8(), low, high);
  }
};
#else
// Look-ups in memory: Type::Weights(block, index, p, weights).
template <class Type, class BlockType, int kBits>
struct Iq2Type : GridType<Type, BlockType, 1, kBits, true> {
  using Base = GridType<Type, BlockType, 1, kBits, true>;
  static HWY_INLINE void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice) {
    Type::Weights(w.block, w.index, p, slice.weights);
    Base::SetSigns(Type::Signs(w.block, p), slice);
    Base::SetScales(Type::Scales(w.block, p), w.d, slice);
  }
};
#endif  // PRONK_VECTOR64

struct IQ2_XXS : Iq2Type<IQ2_XXS, gguf::BlockIQ2_XXS, 0> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ2_XXS;
  using PanelForm = Int8Form<-kIq2Levels.back(), kIq2Levels.back()>;

  static void Integers(const Block& block, int g, int* integers) {
    const uint32_t indices = LoadU32(block.qs + 4 * g), signs = LoadU32(block.qs + 4 * g + 2);
    for (int l = 0; l < 4; ++l) {
      SetLevels<8>(kIq2xxsGrid[indices >> (8 * l) & 255], kIq2Levels, EvenSigns(signs >> (7 * l)),
                   integers + 8 * l);
    }
  }
  static float GroupScale(const Block& block, int g) {
    return Iq2Scale(HalfToFloat(block.d), LoadU32(block.qs + 4 * g + 2) >> 28);
  }
  static HWY_INLINE VU64 Groups(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint64_t>(block + offsetof(Block, qs), p);
  }
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return EvenSignsOf<32, 7>(Groups(block, p));
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return hn::ShiftRight<60>(Groups(block, p));
  }
#if PRONK_VECTOR64
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[2]) {
    static constexpr SplitTable<256> kTable(kIq2xxsGrid);
    const DU32 d;
    const auto first = hn::BitCast(d, Groups(w, 0));
    const auto second = hn::BitCast(d, Groups(w + sizeof(Block), 0));
    const VU8 index = hn::BitCast(DU8(), hn::ConcatEven(d, second, first));
    const MU8 bits[] = {hn::MaskFromVec(index)};
    LookUpBlocks(kTable, index, bits, codes);
  }
#else
  static HWY_INLINE void Weights(const uint8_t* HWY_RESTRICT block, const uint16_t* /*index*/,
                                 size_t p, VU8 (&weights)[4]) {
    LookUp<255, 8>(kIq2xxsBytes.data(), block + offsetof(Block, qs), p, weights);
  }
#endif
  // Unpacks whole groups, which share two words: 5% of prefill.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const block = reinterpret_cast<const Block*>(w);
    const float d = HalfToFloat(block->d);
    for (size_t g = 0; g < 8; ++g) {
      const uint32_t indices = LoadU32(block->qs + 4 * g);
      const uint32_t signs_scale = LoadU32(block->qs + 4 * g + 2);
      for (size_t l = 0; l < 4; ++l) {
        const uint64_t signs = kSignBytes[EvenSigns(signs_scale >> (7 * l))];
        const uint64_t octet = Negate8(kIq2xxsBytes[indices >> (8 * l) & 255], signs);
        hwy::CopyBytes<8>(&octet, out.weights + 32 * g + 8 * l);
      }
      out.scales[g] = Iq2Scale(d, signs_scale >> 28);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_IQ2_XXS_INL_H_
