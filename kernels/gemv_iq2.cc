// Products with IQ2_XXS, IQ2_XS and IQ2_S: every 8 weights are an entry of a grid of 256, 512 or
// 1024 points, and signs apart. See grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq2.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"
#include "kernels/lookup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

#if PRONK_WIDE
// By look-ups in registers, for the 64 indices of two blocks at once. Type::Codes(w, codes) gives
// the codes of both, in two vectors.
template <class Type, class BlockType, size_t kScaleWeights>
struct Iq2Type {
  using Block = BlockType;
  struct Input {
    GridInput block[2];
  };
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 2 * Block::kWeights;
  static constexpr size_t kStepBytes = 2 * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return {{LoadFourths(x, i, 0.125f), LoadFourths(x, i + Block::kWeights, 0.125f)}};
  }
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VU8 codes[2];
    Type::Codes(w, codes);
    for (size_t b = 0; b < 2; ++b) {
      const uint8_t* const block = w + b * sizeof(Block);
      const VU8 signs = SplitSigns(Type::Signs(block, 0));
      const GridInput& x = in.block[b];
      VI32 sum = x.offset[0][0];
      sum = Dot(sum, WeightsOf<kIq2Levels, 0, 0, 4>(codes[b], signs), x.x[0][0]);
      sum = Dot(sum, WeightsOf<kIq2Levels, 1, 2, 2>(codes[b], signs), x.x[0][1]);
      sum = Dot(sum, WeightsOf<kIq2Levels, 2, 4, 4>(codes[b], signs), x.x[0][2]);
      sum = Dot(sum, WeightsOf<kIq2Levels, 3, 6, 4>(codes[b], signs), x.x[0][3]);
      const VF scaled = hn::Mul(hn::ConvertTo(DF(), sum), OddScale(LaneScales(block), x, 0));
      sums.a = hn::MulAdd(scaled, SetHalf(DF(), block + offsetof(Block, d)), sums.a);
    }
  }
  // Small scales: of 32 weights in two lanes, or nibbles, one for each 16.
  static HWY_INLINE VI32 LaneScales(const uint8_t* HWY_RESTRICT block) {
    if constexpr (kScaleWeights == 32) {
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

  // From the low seven bits of the indices and masks of those above.
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
// By look-ups in memory: Type::Weights(block, index, p, weights).
template <class Type, class BlockType, size_t kScaleWeights>
struct Iq2Type : GridType<Type, BlockType, 1> {
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block,
                               const uint16_t* HWY_RESTRICT index, size_t p, const GridInput& in) {
    VU8 weights[4];
    Type::Weights(block, index, p, weights);
    const Sixteens dots = DotSigned(weights, Type::Signs(block, p), in.x[p]);
    const VU64 s = Type::Scales(block, p);
    if constexpr (kScaleWeights == 32) return Scaled32(dots, s, in, p);
    return Scaled16<4>(dots, s, in, p);
  }
};
#endif  // PRONK_WIDE

// Four indices (bytes), four indices of signs and a small scale (32 bits) make a u64 for each group
// of 32.
struct IQ2_XXS : Iq2Type<IQ2_XXS, gguf::BlockIQ2_XXS, 32> {
  static HWY_INLINE VU64 Groups(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint64_t>(block + offsetof(Block, qs), p);
  }
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return EvenSignsOf<32, 7>(Groups(block, p));
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return hn::ShiftRight<60>(Groups(block, p));
  }
#if PRONK_WIDE
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
};

// Nine bits of index and seven of signs make a u16 for every 8 weights; a nibble is the small scale
// of 16.
struct IQ2_XS : Iq2Type<IQ2_XS, gguf::BlockIQ2_XS, 16> {
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return EvenSignsOf<9, 16>(LoadGroups<uint64_t>(block + offsetof(Block, qs), p));
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint8_t>(block + offsetof(Block, scales), p);
  }
#if PRONK_WIDE
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
};

// Indices (their top two bits apart), signs and small scales of 16 lie in arrays of their own. The
// top bits of the l-th index of group g are bits 2l and 2l + 1 of qh[g].
struct IQ2_S : Iq2Type<IQ2_S, gguf::BlockIQ2_S, 16> {
  static HWY_INLINE VU16 Signs(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadEighths(block + offsetof(Block, signs), p);
  }
  static HWY_INLINE VU64 Scales(const uint8_t* HWY_RESTRICT block, size_t p) {
    return LoadGroups<uint8_t>(block + offsetof(Block, scales), p);
  }
#if PRONK_WIDE
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
  static HWY_INLINE void Look(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    for (size_t p = 0; p < kBlockParts; ++p) {
      const VU16 low = LoadEighths(w + offsetof(Block, qs), p);
      const VU16 high = SplitGroups<0, 2, 2, 8>(LoadGroups<uint8_t>(w + offsetof(Block, qh), p));
      hn::Store(hn::Or(low, high), DU16(), index + p * kPartGroups * 4);
    }
  }
  static HWY_INLINE void Weights(const uint8_t* /*block*/, const uint16_t* HWY_RESTRICT index,
                                 size_t p, VU8 (&weights)[4]) {
    LookUp<0xFFFF, 4>(kIq2sBytes.data(), index, p, weights);
  }
#endif
};

void RowsIQ2_XXS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ2_XXS>(w, begin, end, x, out);
}
void RowsIQ2_XS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ2_XS>(w, begin, end, x, out);
}
void RowsIQ2_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ2_S>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsIQ2_XXS);
PRONK_EXPORT(RowsIQ2_XS);
PRONK_EXPORT(RowsIQ2_S);

void GemvIQ2_XXS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ2_XXS)(w, begin, end, x, out);
}
void GemvIQ2_XS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ2_XS)(w, begin, end, x, out);
}
void GemvIQ2_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ2_S)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
