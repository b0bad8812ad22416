// Products with IQ3_XXS and IQ3_S: every 4 weights are an entry of a grid of 256 or 512 points, and
// signs apart. See grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq3.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"
#include "kernels/lookup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

#if PRONK_WIDE
// The sums of 16 weights. Byte b of `low` has the levels of weights 0 and 2 of entry b, byte b of
// `high` those of 1 and 3. `ninth` are the top bits of the indices.
template <const auto& kLevels, const auto& kTable>
HWY_INLINE VI32 DotIq3(VU8 index, MU8 ninth, VU16 sign_bytes, const GridInput& in) {
  constexpr size_t kSize = sizeof(kTable.low);
  const MU8 bits[] = {hn::MaskFromVec(index), ninth};
  const VU8 low = Lookup<kSize>(kTable.low, index, bits);
  const VU8 high = Lookup<kSize>(kTable.high, index, bits);
  const VU8 signs = SplitSigns(sign_bytes);
  const VI8* const x = in.x[0];
  VI32 sum = in.offset[0][0];
  sum = Dot(sum, WeightsOf<kLevels, 0, 3, 3>(low, signs), x[0]);
  sum = Dot(sum, WeightsOf<kLevels, 1, 3, 3>(high, signs), x[1]);
  sum = Dot(sum, WeightsOf<kLevels, 2, 0, 3>(low, signs), x[2]);
  return Dot(sum, WeightsOf<kLevels, 3, 0, 0>(high, signs), x[3]);
}
constexpr SplitTable<256> kIq3xxsTable(kIq3xxsGrid);
constexpr SplitTable<512> kIq3sTable(kIq3sGrid);
#endif  // PRONK_WIDE

template <class Type, class Block, int kEighths>
struct Iq3Type : GridType<Type, Block, kEighths> {
#if PRONK_WIDE
  static HWY_INLINE GridInput Load(const ActivationRow& x, size_t i) {
    return LoadFourths(x, i, static_cast<float>(kEighths) / 8);
  }
#endif
};

// Four indices of signs and a small scale make a u32 for each group of 32.
struct IQ3_XXS : Iq3Type<IQ3_XXS, gguf::BlockIQ3_XXS, 2> {
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, const uint16_t* /*index*/,
                               size_t p, const Input& in) {
    const VU64 groups = LoadGroups<uint32_t>(block + offsetof(Block, signs_scales), p);
    const VU16 signs = EvenSignsOf<0, 7>(groups);
    const uint8_t* const qs = block + offsetof(Block, qs);
#if PRONK_WIDE
    const VI32 dots =
        DotIq3<kIq3xxsLevels, kIq3xxsTable>(hn::LoadU(DU8(), qs), hn::FirstN(DU8(), 0), signs, in);
#else
    VU8 weights[4];
    LookUp<255, 8>(kIq3xxsBytes.data(), qs, p, weights);
    const Sixteens dots = DotSigned(weights, signs, in.x[p]);
#endif
    return Scaled32(dots, hn::ShiftRight<28>(groups), in, p);
  }
};

struct IQ3_S : Iq3Type<IQ3_S, gguf::BlockIQ3_S, 8> {
#if !PRONK_WIDE
  static constexpr size_t kIndices = 64;
  static HWY_INLINE void Look(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    const DU8 d;
    for (size_t p = 0; p < kBlockParts; ++p) {
      const VU8 low = hn::LoadU(d, w + offsetof(Block, qs) + p * kVectorBytes);
      const VU8 high = hn::IfThenElseZero(Ninth(w, p), hn::Set(d, uint8_t{1}));
      uint16_t* const to = index + p * kVectorBytes;
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeLower(d, low, high)), DU16(), to);
      hn::Store(hn::BitCast(DU16(), hn::InterleaveWholeUpper(d, low, high)), DU16(),
                to + kVectorBytes / 2);
    }
  }
#endif
  // A bit for each index, in order. (Reads up to 8 bytes; more of the block follows.)
  static HWY_INLINE hn::Mask<DU8> Ninth(const uint8_t* HWY_RESTRICT block, size_t p) {
    return hn::LoadMaskBits(DU8(), block + offsetof(Block, qh) + p * kPartGroups);
  }

  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, const uint16_t* index, size_t p,
                               const Input& in) {
    const VU16 signs = LoadEighths(block + offsetof(Block, signs), p);
#if PRONK_WIDE
    (void)index;
    const VU8 low = hn::LoadU(DU8(), block + offsetof(Block, qs));
    const VI32 dots = DotIq3<kIq3sLevels, kIq3sTable>(low, Ninth(block, p), signs, in);
#else
    VU8 weights[4];
    LookUp<0xFFFF, 8>(kIq3sBytes.data(), index, p, weights);
    const Sixteens dots = DotSigned(weights, signs, in.x[p]);
#endif
    // A nibble for each group.
    uint32_t nibbles;
    hwy::CopyBytes<4>(block + offsetof(Block, scales), &nibbles);
    const DU64 d;
    const VU64 shifts = hn::ShiftLeft<2>(hn::Iota(d, p * kPartGroups));
    const VU64 s = hn::And(hn::Shr(hn::Set(d, nibbles), shifts), hn::Set(d, uint64_t{15}));
    return Scaled32(dots, s, in, p);
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
