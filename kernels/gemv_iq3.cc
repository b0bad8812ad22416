// Products with IQ3_XXS and IQ3_S: every 4 weights are an entry of a grid of 256 or 512 points, and
// signs apart. See grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq3.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// The codes of a part. Byte b of `low` has the levels of weights 0 and 2 of entry b, byte b of
// `high` those of 1 and 3.
struct Iq3Codes {
  VU8 low, high;
};

// From the low eight bits of the indices, and the ninth.
template <const auto& kEntries>
HWY_INLINE Iq3Codes CodesOf(VU8 index, MU8 ninth) {
#if PRONK_WIDE
  constexpr size_t kSize = kEntries.size();
  static constexpr SplitGrid<kSize> kGrid(kEntries);
  const MU8 bits[] = {hn::MaskFromVec(index), ninth};
  return {Lookup<kSize>(kGrid.low, index, bits), Lookup<kSize>(kGrid.high, index, bits)};
#else
  const DU8 d;
  const DU16 d16;
  const VU8 top = hn::IfThenElseZero(ninth, hn::Set(d, uint8_t{1}));
  const VU8 first = Gather<kEntries>(hn::BitCast(d16, hn::InterleaveWholeLower(d, index, top)));
  const VU8 second = Gather<kEntries>(hn::BitCast(d16, hn::InterleaveWholeUpper(d, index, top)));
  return {hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first)};
#endif
}

// The sums of 16 weights of a part.
template <const auto& kLevels>
HWY_INLINE VF DotIq3(const Iq3Codes& codes, VU8 signs, const FourthsInput& in, size_t p) {
  VI32 sum = in.offset[p];
  sum = Dot(sum, WeightsOf<kLevels, 0, 3, 3>(codes.low, signs), in.x[p][0]);
  sum = Dot(sum, WeightsOf<kLevels, 1, 3, 3>(codes.high, signs), in.x[p][1]);
  sum = Dot(sum, WeightsOf<kLevels, 2, 0, 3>(codes.low, signs), in.x[p][2]);
  sum = Dot(sum, WeightsOf<kLevels, 3, 0, 0>(codes.high, signs), in.x[p][3]);
  return hn::ConvertTo(DF(), sum);
}

// Four indices of signs and a small scale make a u32 for each group of 32.
struct IQ3_XXS : GridType<gguf::BlockIQ3_XXS, kCenter, 2> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocks<IQ3_XXS>(w, in, sums);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in) {
    const DU8 d;
    const VU8 index = hn::LoadU(d, block + offsetof(Block, qs) + q * kVectorBytes);
    const Iq3Codes codes = CodesOf<kIq3xxsGrid>(index, hn::FirstN(d, 0));
    const VU64 groups = LoadGroups<uint32_t>(block + offsetof(Block, signs_scales), q);
    const VI32 s = hn::DupEven(hn::BitCast(DI32(), hn::ShiftRight<28>(groups)));
    const VU8 signs = EvenSignsOf<0, 7>(groups);
    return hn::Mul(DotIq3<kIq3xxsLevels>(codes, signs, in, p), OddScale(s, in, p));
  }
};

struct IQ3_S : GridType<gguf::BlockIQ3_S, kCenter, 8> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocks<IQ3_S>(w, in, sums);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in) {
    const DU8 d;
    const DU8x16 d16;
    const VU8 index = hn::LoadU(d, block + offsetof(Block, qs) + q * kVectorBytes);
    // A bit for each index, in order. (Reads up to 8 bytes; more of the block follows.)
    const MU8 ninth = hn::LoadMaskBits(d, block + offsetof(Block, qh) + q * kPartGroups);
    const Iq3Codes codes = CodesOf<kIq3sGrid>(index, ninth);
    const VU8 signs = LoadSigns(block + offsetof(Block, signs) + q * kVectorBytes / 2);
    const auto of_32 = LoadNibbles<4>(block + offsetof(Block, scales));
    const VI32 s = LanesOf(hn::InterleaveLower(d16, of_32, of_32), q);
    return hn::Mul(DotIq3<kIq3sLevels>(codes, signs, in, p), OddScale(s, in, p));
  }
};

void RowsIQ3_XXS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ3_XXS>(w, begin, end, x, out);
}
void RowsIQ3_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ3_S>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsIQ3_XXS);
PRONK_EXPORT(RowsIQ3_S);

void GemvIQ3_XXS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ3_XXS)(w, begin, end, x, out);
}
void GemvIQ3_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ3_S)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
