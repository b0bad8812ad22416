// Products with IQ1_S and IQ1_M: every 8 weights are an entry of a grid of 2048 points. See
// grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq1.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Weights are -1, 0 or 1, plus or minus 1/8. In eighths, with levels 0, 1, 2: 8 * level + (0 or 2)
// - 9.
constexpr int kIq1Zero = 9;

// Vector c of the weights, plus kIq1Zero. `delta` has the 0 or 2 for each byte of codes.
template <int c>
HWY_INLINE VU8 EighthsOf(VU8 codes, VU8 delta) {
  return AddBits(delta, ShiftBits<2 * c - 3>(codes), 3 << 3);
}

// The sums of 16 weights of a part, by the indices of its entries.
HWY_INLINE VF DotIq1(VU16 indices, VU8 delta, const FourthsInput& in, size_t p) {
  const VU8 codes = Gather<kIq1Grid>(indices);
  const VI8* const x = in.x[p];
  VI32 sum = in.offset[p];
  sum = Dot2(sum, EighthsOf<0>(codes, delta), x[0], EighthsOf<1>(codes, delta), x[1]);
  sum = Dot2(sum, EighthsOf<2>(codes, delta), x[2], EighthsOf<3>(codes, delta), x[3]);
  return hn::ConvertTo(DF(), sum);
}

// The low eight bits of the indices of part q of a block.
HWY_INLINE VU16 LowIndices(const uint8_t* HWY_RESTRICT qs, size_t q) {
  const hn::Rebind<uint8_t, DU16> d_bytes;
  return hn::PromoteTo(DU16(), hn::LoadU(d_bytes, qs + q * kVectorBytes / 2));
}

struct IQ1_S : GridType<gguf::BlockIQ1_S, kIq1Zero, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocks<IQ1_S>(w, in, sums);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in) {
    const DU64 d;
    const VU64 qh = LoadGroups<uint16_t>(block + offsetof(Block, qh), q);
    // Bits 3l to 3l + 2 go to bits 8 to 10 of word l.
    const VU64 spread = hn::Or(hn::Or(hn::ShiftLeft<8>(qh), hn::ShiftLeft<8 + 13>(qh)),
                               hn::Or(hn::ShiftLeft<8 + 26>(qh), hn::ShiftLeft<8 + 39>(qh)));
    const VU64 high = hn::And(spread, hn::Set(d, uint64_t{0x0700070007000700}));
    const VU16 indices =
        hn::Or(LowIndices(block + offsetof(Block, qs), q), hn::BitCast(DU16(), high));
    const auto minus = hn::TestBit(qh, hn::Set(d, uint64_t{1} << 15));
    const VU64 delta = hn::IfThenZeroElse(minus, hn::Set(d, uint64_t{0x0202020202020202}));
    const VU64 s = hn::And(hn::ShiftRight<12>(qh), hn::Set(d, uint64_t{7}));
    return hn::Mul(DotIq1(indices, hn::BitCast(DU8(), delta), in, p),
                   OddScale(hn::DupEven(hn::BitCast(DI32(), s)), in, p));
  }
};

struct IQ1_M : GridType<gguf::BlockIQ1_M, kIq1Zero, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocks<IQ1_M>(w, in, sums);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in) {
    const DU16 d;
    const DU32 d32;
    const hn::Rebind<uint8_t, DU32> d_bytes;
    const uint8_t* const at = block + offsetof(Block, qh) + q * kVectorBytes / 4;
    const auto qh = hn::PromoteTo(d32, hn::LoadU(d_bytes, at));
    // A nibble to each word: three bits of index, the sign of delta.
    const VU16 nibbles = hn::BitCast(d, hn::Or(qh, hn::ShiftLeft<12>(qh)));
    const VU16 high = hn::ShiftLeft<8>(hn::And(nibbles, hn::Set(d, uint16_t{7})));
    const VU16 minus = hn::ShiftRight<2>(hn::And(nibbles, hn::Set(d, uint16_t{8})));
    const VU16 both = hn::Or(minus, hn::ShiftLeft<8>(minus));
    const VU8 delta = hn::BitCast(DU8(), hn::Xor(both, hn::Set(d, uint16_t{0x0202})));
    const VU16 indices = hn::Or(high, LowIndices(block + offsetof(Block, qs), q));
    return hn::Mul(DotIq1(indices, delta, in, p), OddScale(LanesOf(SmallScales(block), q), in, p));
  }

  // The low 12 bits of each of four words are four small scales.
  static HWY_INLINE hn::Vec<DU8x16> SmallScales(const uint8_t* HWY_RESTRICT block) {
    const hn::FixedTag<uint32_t, 4> d;
    const hn::Rebind<uint16_t, decltype(d)> d_words;
    const auto bytes = hn::LoadU(hn::FixedTag<uint8_t, 8>(), block + offsetof(Block, scales));
    const auto v = hn::PromoteTo(d, hn::BitCast(d_words, bytes));
    const auto s01 =
        hn::Or(hn::And(v, hn::Set(d, 7u)), hn::And(hn::ShiftLeft<5>(v), hn::Set(d, 7u << 8)));
    const auto s23 = hn::Or(hn::And(hn::ShiftLeft<10>(v), hn::Set(d, 7u << 16)),
                            hn::And(hn::ShiftLeft<15>(v), hn::Set(d, 7u << 24)));
    return hn::BitCast(DU8x16(), hn::Or(s01, s23));
  }

  // d is in the top nibbles of the words.
  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT block) {
    uint64_t words;
    hwy::CopyBytes<8>(block + offsetof(Block, scales), &words);
    const uint64_t d =
        (words >> 12 & 0xF) | (words >> 24 & 0xF0) | (words >> 36 & 0xF00) | (words >> 48 & 0xF000);
    return SetHalf(DF(), reinterpret_cast<const uint8_t*>(&d));
  }
};

void RowsIQ1_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ1_S>(w, begin, end, x, out);
}
void RowsIQ1_M(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ1_M>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RowsIQ1_S);
HWY_EXPORT(RowsIQ1_M);

void GemvIQ1_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsIQ1_S)(w, begin, end, x, out);
}
void GemvIQ1_M(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsIQ1_M)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
