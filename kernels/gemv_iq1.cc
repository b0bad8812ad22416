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

// The sums of 16 weights of a part.
HWY_INLINE VF DotIq1(VU8 codes, VU8 delta, const FourthsInput& in, size_t p) {
  const VI8* const x = in.x[p];
  VI32 sum = in.offset[p];
  sum = Dot2(sum, EighthsOf<0>(codes, delta), x[0], EighthsOf<1>(codes, delta), x[1]);
  sum = Dot2(sum, EighthsOf<2>(codes, delta), x[2], EighthsOf<3>(codes, delta), x[3]);
  return hn::ConvertTo(DF(), sum);
}

#if PRONK_WIDE
// The grid for lookups in registers. 2048 bytes take 16 permutations, and two such tables twice as
// many; but the entries are sorted, so that their high bytes rise slowly: in every 16 entries there
// are at most two, and three tables of 128 give them.
struct Iq1Tables {
  constexpr explicit Iq1Tables(const std::array<uint16_t, 2048>& grid) {
    for (size_t i = 0; i < 2048; ++i) low[i] = static_cast<uint8_t>(grid[i]);
    for (size_t k = 0; k < 128; ++k) {
      const auto high = [&grid, k](size_t i) {
        return static_cast<uint8_t>(grid[16 * k + i] >> 8);
      };
      first[k] = high(0);
      second[k] = high(15);
      while (second_from[k] < 16 && high(second_from[k]) == first[k]) ++second_from[k];
      for (size_t i = second_from[k]; i < 16; ++i) sorted = sorted && high(i) == second[k];
    }
  }
  bool sorted = true;
  alignas(64) uint8_t low[2048] = {};
  alignas(64) uint8_t first[128] = {};   // the high byte of entries 16k ...
  alignas(64) uint8_t second[128] = {};  // ... and from this one on:
  alignas(64) uint8_t second_from[128] = {};
};

HWY_INLINE void CodesIq1(const VU16 (&indices)[kParts], VU8 (&codes)[kParts]) {
  static constexpr Iq1Tables kTables(kIq1Grid);
  static_assert(kTables.sorted);
  const DU8 d;
  const VU8 parts[] = {hn::BitCast(d, indices[0]), hn::BitCast(d, indices[1])};
  const VU8 index = hn::ConcatEven(d, parts[1], parts[0]);  // the low eight bits
  const VU8 top = hn::ConcatOdd(d, parts[1], parts[0]);     // three bits
  const MU8 bits[] = {hn::MaskFromVec(index), hn::TestBit(top, hn::Set(d, uint8_t{1})),
                      hn::TestBit(top, hn::Set(d, uint8_t{2})),
                      hn::TestBit(top, hn::Set(d, uint8_t{4}))};
  const VU8 low = Lookup<2048>(kTables.low, index, bits);
  const VU8 sixteen = hn::Or(ShiftBits<-4>(top), hn::ShiftRight<4>(index));
  const MU8 is_second = hn::Ge(Mask(index, 15), Lookup<128>(kTables.second_from, sixteen, nullptr));
  const VU8 high = hn::IfThenElse(is_second, Lookup<128>(kTables.second, sixteen, nullptr),
                                  Lookup<128>(kTables.first, sixteen, nullptr));
  codes[0] = hn::InterleaveWholeLower(d, low, high);
  codes[1] = hn::InterleaveWholeUpper(d, low, high);
}
#else
HWY_INLINE void CodesIq1(const VU16 (&indices)[kParts], VU8 (&codes)[kParts]) {
  for (size_t p = 0; p < kParts; ++p) codes[p] = Gather<kIq1Grid>(indices[p]);
}
#endif

// The low eight bits of the indices of part q of a block.
HWY_INLINE VU16 LowIndices(const uint8_t* HWY_RESTRICT qs, size_t q) {
  const hn::Rebind<uint8_t, DU16> d_bytes;
  return hn::PromoteTo(DU16(), hn::LoadU(d_bytes, qs + q * kVectorBytes / 2));
}

// Adds the products of a step, where Type::Indices(block, q) are the indices of part q.
template <class Type>
HWY_INLINE void AddBlocksIq1(const uint8_t* HWY_RESTRICT w, const FourthsInput& in, Sums& sums) {
  VU16 indices[kParts];
  for (size_t p = 0; p < kParts; ++p) {
    const uint8_t* const block = w + p / kBlockParts * sizeof(typename Type::Block);
    indices[p] = Type::Indices(block, p % kBlockParts);
  }
  VU8 codes[kParts];
  CodesIq1(indices, codes);
  AddBlocks<Type>(w, in, sums, codes);
}

struct IQ1_S : GridType<gguf::BlockIQ1_S, kIq1Zero, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocksIq1<IQ1_S>(w, in, sums);
  }

  static HWY_INLINE VU16 Indices(const uint8_t* HWY_RESTRICT block, size_t q) {
    const VU64 qh = LoadGroups<uint16_t>(block + offsetof(Block, qh), q);
    // Bits 3l to 3l + 2 go to bits 8 to 10 of word l.
    const VU64 spread = hn::Or(hn::Or(hn::ShiftLeft<8>(qh), hn::ShiftLeft<8 + 13>(qh)),
                               hn::Or(hn::ShiftLeft<8 + 26>(qh), hn::ShiftLeft<8 + 39>(qh)));
    const VU64 high = hn::And(spread, hn::Set(DU64(), uint64_t{0x0700070007000700}));
    return hn::Or(LowIndices(block + offsetof(Block, qs), q), hn::BitCast(DU16(), high));
  }

  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in, const VU8 (&codes)[kParts]) {
    const DU64 d;
    const VU64 qh = LoadGroups<uint16_t>(block + offsetof(Block, qh), q);
    const auto minus = hn::TestBit(qh, hn::Set(d, uint64_t{1} << 15));
    const VU64 delta = hn::IfThenZeroElse(minus, hn::Set(d, uint64_t{0x0202020202020202}));
    const VU64 s = hn::And(hn::ShiftRight<12>(qh), hn::Set(d, uint64_t{7}));
    return hn::Mul(DotIq1(codes[p], hn::BitCast(DU8(), delta), in, p),
                   OddScale(hn::DupEven(hn::BitCast(DI32(), s)), in, p));
  }
};

struct IQ1_M : GridType<gguf::BlockIQ1_M, kIq1Zero, 1> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    AddBlocksIq1<IQ1_M>(w, in, sums);
  }

  // For each index, a word with a nibble: its three top bits, the sign of delta.
  static HWY_INLINE VU16 TopNibbles(const uint8_t* HWY_RESTRICT block, size_t q) {
    const DU32 d;
    const hn::Rebind<uint8_t, DU32> d_bytes;
    const uint8_t* const at = block + offsetof(Block, qh) + q * kVectorBytes / 4;
    const auto qh = hn::PromoteTo(d, hn::LoadU(d_bytes, at));
    return hn::BitCast(DU16(), hn::Or(qh, hn::ShiftLeft<12>(qh)));
  }

  static HWY_INLINE VU16 Indices(const uint8_t* HWY_RESTRICT block, size_t q) {
    const VU16 high = hn::And(TopNibbles(block, q), hn::Set(DU16(), uint16_t{7}));
    return hn::Or(LowIndices(block + offsetof(Block, qs), q), hn::ShiftLeft<8>(high));
  }

  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block, size_t p, size_t q,
                               const Input& in, const VU8 (&codes)[kParts]) {
    const DU16 d;
    const VU16 sign = hn::And(TopNibbles(block, q), hn::Set(d, uint16_t{8}));
    const VU16 minus = hn::Or(hn::ShiftRight<2>(sign), hn::ShiftLeft<6>(sign));  // 2 in both bytes
    const VU8 delta = hn::BitCast(DU8(), hn::Xor(minus, hn::Set(d, uint16_t{0x0202})));
    return hn::Mul(DotIq1(codes[p], delta, in, p), OddScale(LanesOf(SmallScales(block), q), in, p));
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

PRONK_EXPORT(RowsIQ1_S);
PRONK_EXPORT(RowsIQ1_M);

void GemvIQ1_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ1_S)(w, begin, end, x, out);
}
void GemvIQ1_M(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ1_M)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
