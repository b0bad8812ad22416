// Products with IQ2_XXS, IQ2_XS and IQ2_S: every 8 weights are an entry of a grid of 256, 512 or
// 1024 points, and signs apart. See grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq2.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// The sums of 16 weights of a part.
HWY_INLINE VF DotIq2(VU8 codes, VU8 signs, const FourthsInput& in, size_t p) {
  VI32 sum = in.offset[p];
  sum = Dot(sum, WeightsOf<kIq2Levels, 0, 0, 4>(codes, signs), in.x[p][0]);
  sum = Dot(sum, WeightsOf<kIq2Levels, 1, 2, 2>(codes, signs), in.x[p][1]);
  sum = Dot(sum, WeightsOf<kIq2Levels, 2, 4, 4>(codes, signs), in.x[p][2]);
  sum = Dot(sum, WeightsOf<kIq2Levels, 3, 6, 4>(codes, signs), in.x[p][3]);
  return hn::ConvertTo(DF(), sum);
}

// 64 bytes at `offset` of the blocks of a step.
template <class Block>
HWY_INLINE void LoadParts(const uint8_t* HWY_RESTRICT w, size_t offset, VU8 (&parts)[kParts]) {
  for (size_t p = 0; p < kParts; ++p) {
    const uint8_t* const block = w + p / kBlockParts * sizeof(Block);
    parts[p] = hn::LoadU(DU8(), block + offset + p % kBlockParts * kVectorBytes);
  }
}

// Four indices (bytes), four indices of signs and a small scale (32 bits) make a u64 for each group
// of 32.
struct IQ2_XXS : GridType<gguf::BlockIQ2_XXS, kCenter, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VU8 groups[kParts], codes[kParts];
    LoadParts<Block>(w, offsetof(Block, qs), groups);
    Codes(groups, codes);
    AddBlocks<IQ2_XXS>(w, in, sums, codes, groups);
  }
  static HWY_INLINE VF PartSum(const uint8_t* /*block*/, size_t p, size_t /*q*/, const Input& in,
                               const VU8 (&codes)[kParts], const VU8 (&groups)[kParts]) {
    const VU8 signs = EvenSignsOf<32, 7>(hn::BitCast(DU64(), groups[p]));
    const VI32 s =
        hn::BitCast(DI32(), hn::ShiftRight<28>(hn::DupOdd(hn::BitCast(DU32(), groups[p]))));
    return hn::Mul(DotIq2(codes[p], signs, in, p), OddScale(s, in, p));
  }

  static HWY_INLINE void Codes(const VU8 (&groups)[kParts], VU8 (&codes)[kParts]) {
#if PRONK_WIDE
    static constexpr SplitGrid<256> kGrid(kIq2xxsGrid);
    const DU32 d32;
    const VU8 index = hn::BitCast(
        DU8(), hn::ConcatEven(d32, hn::BitCast(d32, groups[1]), hn::BitCast(d32, groups[0])));
    const MU8 bits[] = {hn::MaskFromVec(index)};
    LookupBlocks(kGrid, index, bits, codes);
#else
    constexpr uint8_t kZero = 128;
    alignas(16) static constexpr uint8_t kToWords[16] = {0, kZero, 1, kZero, 2,  kZero, 3,  kZero,
                                                         8, kZero, 9, kZero, 10, kZero, 11, kZero};
    const VU8 to_words = hn::LoadDup128(DU8(), kToWords);
    for (size_t p = 0; p < kParts; ++p) {
      const VU8 index = hn::TableLookupBytesOr0(groups[p], to_words);
      codes[p] = Gather<kIq2xxsGrid>(hn::BitCast(DU16(), index));
    }
#endif
  }
};

// Nine bits of index and seven of signs make a u16 for every 8 weights; a nibble is the small scale
// of 16.
struct IQ2_XS : GridType<gguf::BlockIQ2_XS, kCenter, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VU8 words[kParts], codes[kParts];
    LoadParts<Block>(w, offsetof(Block, qs), words);
    Codes(words, codes);
    AddBlocks<IQ2_XS>(w, in, sums, codes, words);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in, const VU8 (&codes)[kParts],
                               const VU8 (&words)[kParts]) {
    const VU8 signs = EvenSignsOf<9, 16>(hn::BitCast(DU64(), words[p]));
    const VI32 s = LanesOf(LoadNibbles<8>(block + offsetof(Block, scales)), q);
    return hn::Mul(DotIq2(codes[p], signs, in, p), OddScale(s, in, p));
  }

  static HWY_INLINE void Codes(const VU8 (&words)[kParts], VU8 (&codes)[kParts]) {
#if PRONK_WIDE
    static constexpr SplitGrid<512> kGrid(kIq2xsGrid);
    const DU8 d;
    const VU8 index = hn::ConcatEven(d, words[1], words[0]);
    const VU8 above = hn::ConcatOdd(d, words[1], words[0]);
    const MU8 bits[] = {hn::MaskFromVec(index), hn::TestBit(above, hn::Set(d, uint8_t{1}))};
    LookupBlocks(kGrid, index, bits, codes);
#else
    const DU16 d;
    for (size_t p = 0; p < kParts; ++p) {
      const VU16 index = hn::And(hn::BitCast(d, words[p]), hn::Set(d, uint16_t{511}));
      codes[p] = Gather<kIq2xsGrid>(index);
    }
#endif
  }
};

// Indices (their top two bits apart), signs and small scales of 16 lie in arrays of their own.
struct IQ2_S : GridType<gguf::BlockIQ2_S, kCenter, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VU8 codes[kParts];
    Codes(w, codes);
    AddBlocks<IQ2_S>(w, in, sums, codes);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in, const VU8 (&codes)[kParts]) {
    const VU8 signs = LoadSigns(block + offsetof(Block, signs) + q * kVectorBytes / 2);
    const VI32 s = LanesOf(LoadNibbles<8>(block + offsetof(Block, scales)), q);
    return hn::Mul(DotIq2(codes[p], signs, in, p), OddScale(s, in, p));
  }

  // The top bits of the l-th index of group g are bits 2l and 2l + 1 of qh[g].
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[kParts]) {
#if PRONK_WIDE
    static constexpr SplitGrid<1024> kGrid(kIq2sGrid);
    const DU8 d;
    const hn::FixedTag<uint8_t, 32> d_indices;
    const hn::FixedTag<uint8_t, 8> d_top;
    const uint8_t* const second = w + sizeof(Block);
    const VU8 index = hn::Combine(d, hn::LoadU(d_indices, second + offsetof(Block, qs)),
                                  hn::LoadU(d_indices, w + offsetof(Block, qs)));
    const auto qh = hn::Combine(DU8x16(), hn::LoadU(d_top, second + offsetof(Block, qh)),
                                hn::LoadU(d_top, w + offsetof(Block, qh)));
    alignas(64) static constexpr auto kFourOfEach = [] {
      std::array<uint8_t, 64> from{};
      for (size_t i = 0; i < 64; ++i) from[i] = static_cast<uint8_t>(i / 4);
      return from;
    }();
    const VU8 top = Permute(hn::ResizeBitCast(d, qh), hn::Load(d, kFourOfEach.data()));
    const VU8 bit8 = hn::BitCast(d, hn::Set(DU32(), 0x40100401u));
    const VU8 bit9 = hn::BitCast(d, hn::Set(DU32(), 0x80200802u));
    const MU8 bits[] = {hn::MaskFromVec(index), hn::TestBit(top, bit8), hn::TestBit(top, bit9)};
    LookupBlocks(kGrid, index, bits, codes);
#else
    const DU16 d;
    const hn::Rebind<uint8_t, DU16> d_indices;
    const hn::Rebind<uint8_t, DU64> d_top;
    for (size_t p = 0; p < kParts; ++p) {
      const uint8_t* const indices = w + offsetof(Block, qs) + p * kVectorBytes / 2;
      const uint8_t* const top = w + offsetof(Block, qh) + p * kPartGroups;
      const VU16 low = hn::PromoteTo(d, hn::LoadU(d_indices, indices));
      const VU64 qh = hn::PromoteTo(DU64(), hn::LoadU(d_top, top));
      // Bit 2l of a u64 to bit 8 of its word l.
      const VU64 two = hn::Or(hn::ShiftLeft<8>(qh), hn::ShiftLeft<8 + 14>(qh));
      const VU64 four = hn::Or(two, hn::ShiftLeft<28>(two));
      const VU16 high = hn::And(hn::BitCast(d, four), hn::Set(d, uint16_t{0x300}));
      codes[p] = Gather<kIq2sGrid>(hn::Or(low, high));
    }
#endif
  }
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
