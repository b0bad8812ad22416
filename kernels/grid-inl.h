// What the types with grids (IQ1, IQ2, IQ3) share: the way from an index to the weights of a grid
// entry and to the sum of their products. Included once per instruction set by the gemv_iq*.cc
// files; gemv-inl.h has the loop around it.
//
// The 256 weights of a block become 64 bytes of CODES, byte b standing for weights 4b to 4b + 3, as
// the grids in tables.h are written. Vector c of the weights is what field c of every byte stands
// for, and the activations are taken in the same order:
//
//   codes      | byte 0: weights 0 1 2 3 | byte 1: weights 4 5 6 7 | ...
//   vector c   |         weight c        |         weight 4 + c    | ...      c = 0..3
//
// A lane of a dot product covers 4 bytes, so the dot products of the four vectors, added up, are
// the sums of 16 neighbouring weights: each lane has one small scale, be it for 16 weights or
// for 32.
//
// How codes come from indices decides the speed of these types. With byte permutations across a
// vector of 64 bytes, a grid of up to 1024 entries is looked up in registers for 64 indices at once
// (those of two blocks, hence kStepBlocks): 3 instructions for a grid of 256 that replace 64 loads.
// Elsewhere, and for the 2048 entries of IQ1, each entry is loaded. Gather instructions were no
// faster than loads.
#if defined(PRONK_KERNELS_GRID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_GRID_INL_H_
#undef PRONK_KERNELS_GRID_INL_H_
#else
#define PRONK_KERNELS_GRID_INL_H_
#endif

#include <array>
#include <bit>

#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kGridBlock = 256;
constexpr size_t kStepBlocks = PRONK_WIDE ? 2 : 1;
// A PART is a vector of codes: a block, half of it or a quarter.
constexpr size_t kBlockParts = 4 / kPieces;
constexpr size_t kParts = kStepBlocks * kBlockParts;
// In a part, each u64 holds the codes of a group of 32 weights.
constexpr size_t kPartGroups = kVectorBytes / 8;

using DU32 = hn::Repartition<uint32_t, DU8>;
using DU64 = hn::Repartition<uint64_t, DU8>;
using VU16 = hn::Vec<DU16>;
using VU64 = hn::Vec<DU64>;
using MU8 = hn::Mask<DU8>;

// --------------------------------------------------------------------------------------------------
// Activations.

struct FourthsInput {
  VI8 x[kParts][4];
  VF scale[kParts], twice[kParts];  // of the activations, times a unit; and double that
  VI32 offset[kParts];              // what the codes' zero point contributes to each lane
};

// Each of kFloats / 2 floats in two neighbouring lanes.
HWY_INLINE VF SpreadPairs(const float* HWY_RESTRICT p) {
  const hn::FixedTag<float, kFloats / 2> d;
  alignas(64) int32_t index[kFloats];
  for (size_t i = 0; i < kFloats; ++i) index[i] = static_cast<int32_t>(i / 2);
  return hn::TableLookupLanes(hn::ResizeBitCast(DF(), hn::LoadU(d, p)),
                              hn::SetTableIndices(DF(), index));
}

// Vector c of 4 * kVectorBytes activations: numbers c, 4 + c, 8 + c ...
HWY_INLINE void LoadFourths(const int8_t* HWY_RESTRICT q, VI8 (&x)[4]) {
#if PRONK_WIDE
  // In each vector, the fourths together; then the fourths of all four vectors. 12 permutations
  // where LoadInterleaved4 takes 24.
  const DI8 d;
  alignas(64) static constexpr auto kFourths = [] {
    std::array<int8_t, 64> index{};
    for (size_t i = 0; i < 64; ++i) index[i] = static_cast<int8_t>(i % 16 * 4 + i / 16);
    return index;
  }();
  const auto fourths = [d, q](size_t v) HWY_ATTR {
    return hn::TableLookupLanes(hn::LoadU(d, q + 64 * v), hn::SetTableIndices(d, kFourths.data()))
        .raw;
  };
  const __m512i v0 = fourths(0), v1 = fourths(1), v2 = fourths(2), v3 = fourths(3);
  const __m512i low01 = _mm512_shuffle_i64x2(v0, v1, 0x44);
  const __m512i low23 = _mm512_shuffle_i64x2(v2, v3, 0x44);
  const __m512i high01 = _mm512_shuffle_i64x2(v0, v1, 0xEE);
  const __m512i high23 = _mm512_shuffle_i64x2(v2, v3, 0xEE);
  x[0] = VI8{_mm512_shuffle_i64x2(low01, low23, 0x88)};
  x[1] = VI8{_mm512_shuffle_i64x2(low01, low23, 0xDD)};
  x[2] = VI8{_mm512_shuffle_i64x2(high01, high23, 0x88)};
  x[3] = VI8{_mm512_shuffle_i64x2(high01, high23, 0xDD)};
#else
  hn::LoadInterleaved4(DI8(), q, x[0], x[1], x[2], x[3]);
#endif
}

// `zero` is the code of weight 0, `unit` what is common to all scales.
HWY_INLINE FourthsInput LoadInput(const ActivationRow& x, size_t i, int zero, float unit) {
  FourthsInput in;
  for (size_t p = 0; p < kParts; ++p) {
    const size_t first = i + p * kVectorBytes * 4;
    LoadFourths(x.q + first, in.x[p]);
    in.scale[p] = hn::Mul(SpreadPairs(x.scales + first / 32), hn::Set(DF(), unit));
    in.twice[p] = hn::Add(in.scale[p], in.scale[p]);
    const auto sums = hn::LoadU(hn::Rebind<int16_t, DI32>(), x.sums + first / 16);
    in.offset[p] = hn::Mul(hn::PromoteTo(DI32(), sums), hn::Set(DI32(), -zero));
  }
  return in;
}

// --------------------------------------------------------------------------------------------------
// Codes from indices.

#if PRONK_WIDE
// table[index]; only the low six bits of each index count.
HWY_INLINE VU8 Permute(VU8 table, VU8 index) {
  return VU8{_mm512_permutexvar_epi8(index.raw, table.raw)};
}

// A grid as two tables of bytes.
template <size_t kSize>
struct SplitGrid {
  constexpr explicit SplitGrid(const std::array<uint16_t, kSize>& grid) {
    for (size_t i = 0; i < kSize; ++i) {
      low[i] = static_cast<uint8_t>(grid[i]);
      high[i] = static_cast<uint8_t>(grid[i] >> 8);
    }
  }
  alignas(64) uint8_t low[kSize] = {};
  alignas(64) uint8_t high[kSize] = {};
};

// table[index]. An index's low seven bits are in `index`, those above are masks, lowest first.
template <size_t kSize>
HWY_INLINE VU8 Lookup(const uint8_t* HWY_RESTRICT table, VU8 index, const MU8* HWY_RESTRICT bits) {
  const DU8 d;
  if constexpr (kSize == 128) {
    return VU8{
        _mm512_permutex2var_epi8(hn::Load(d, table).raw, index.raw, hn::Load(d, table + 64).raw)};
  } else {
    constexpr size_t kHalf = kSize / 2;
    return hn::IfThenElse(bits[std::bit_width(kSize / 512)],
                          Lookup<kHalf>(table + kHalf, index, bits),
                          Lookup<kHalf>(table, index, bits));
  }
}

// The codes of two blocks by 32 indices each, for a grid with two bytes of codes an entry.
template <size_t kSize>
HWY_INLINE void LookupBlocks(const SplitGrid<kSize>& grid, VU8 index, const MU8* HWY_RESTRICT bits,
                             VU8 (&codes)[kParts]) {
  const VU8 low = Lookup<kSize>(grid.low, index, bits);
  const VU8 high = Lookup<kSize>(grid.high, index, bits);
  codes[0] = hn::InterleaveWholeLower(DU8(), low, high);
  codes[1] = hn::InterleaveWholeUpper(DU8(), low, high);
}
#endif  // PRONK_WIDE

// A grid from which four entries are put together by loads alone: an entry is the low two of 8
// bytes, zeros above it and, in the entry before, below. Loaded 2t bytes early, it has its codes at
// bit 16t. A quarter faster than loading and shifting 16 bits; with gather instructions it was a
// tenth slower (Zen 4).
template <size_t kSize>
struct LooseGrid {
  constexpr explicit LooseGrid(const std::array<uint16_t, kSize>& grid) {
    for (size_t i = 0; i < kSize; ++i) entries[i + 1] = grid[i];
  }
  uint64_t entries[kSize + 1] = {};
};

// Four entries as one number, and eight.
HWY_INLINE uint64_t GatherFour(const uint64_t* HWY_RESTRICT first_entry, const uint16_t* index) {
  uint64_t four = 0;
  for (size_t t = 0; t < 4; ++t) {
    uint64_t entry;
    const void* const at = first_entry + index[t];
    hwy::CopyBytes<8>(static_cast<const uint8_t*>(at) - 2 * t, &entry);
    four |= entry;
  }
  return four;
}
using DU64x2 = hn::FixedTag<uint64_t, 2>;
HWY_INLINE hn::Vec<DU64x2> GatherEight(const uint64_t* HWY_RESTRICT first_entry,
                                       const uint16_t* index) {
  return hn::Dup128VecFromValues(DU64x2(), GatherFour(first_entry, index),
                                 GatherFour(first_entry, index + 4));
}

// The codes of indices into kGrid, entry by entry.
template <const auto& kGrid>
HWY_INLINE VU8 Gather(VU16 indices) {
  static constexpr LooseGrid<kGrid.size()> kLoose(kGrid);
  const uint64_t* const first = kLoose.entries + 1;
  alignas(64) uint16_t index[kVectorBytes / 2];
  hn::Store(indices, DU16(), index);
#if PRONK_PIECES == 1
  const VU64 codes = GatherEight(first, index);
#else
  const hn::FixedTag<uint64_t, 4> d4;
  const auto low = hn::Combine(d4, GatherEight(first, index + 8), GatherEight(first, index));
#if PRONK_PIECES == 2
  const VU64 codes = low;
#else
  const auto high = hn::Combine(d4, GatherEight(first, index + 24), GatherEight(first, index + 16));
  const VU64 codes = hn::Combine(DU64(), high, low);
#endif
#endif
  return hn::BitCast(DU8(), codes);
}

// --------------------------------------------------------------------------------------------------
// Signs: the low four bits of byte b negate weights 4b to 4b + 3. What is above them is not used.

// From words that hold a byte of eight signs each.
HWY_INLINE VU8 SplitSigns(VU16 words) {
  return hn::BitCast(DU8(), hn::Or(words, hn::ShiftLeft<4>(words)));
}

// From bytes of eight signs.
HWY_INLINE VU8 LoadSigns(const uint8_t* HWY_RESTRICT signs) {
  return SplitSigns(hn::PromoteTo(DU16(), hn::LoadU(hn::Rebind<uint8_t, DU16>(), signs)));
}

#if !PRONK_WIDE
// Bits kFrom .. kFrom + 6 of each u64 to the low bits of word t.
template <int kFrom, int t>
HWY_INLINE VU64 SevenBitsToWord(VU64 v) {
  constexpr int kRight = kFrom - 16 * t;
  if constexpr (kRight > 0) v = hn::ShiftRight<kRight>(v);
  if constexpr (kRight < 0) v = hn::ShiftLeft<-kRight>(v);
  return hn::And(v, hn::Set(DU64(), uint64_t{127} << (16 * t)));
}
#endif

// From 7-bit indices (EvenSigns in tables.h): four of them in each u64, at bits kFirst + kStep * t.
template <int kFirst, int kStep>
HWY_INLINE VU8 EvenSignsOf(VU64 v) {
#if PRONK_WIDE
  constexpr auto kShift = [](int t) { return uint64_t{kFirst + kStep * t} << (16 * t); };
  const VU64 shifts = hn::Set(DU64(), kShift(0) | kShift(1) | kShift(2) | kShift(3));
  constexpr uint64_t kEvenBytes = 0x5555555555555555;
  const __m512i indices = _mm512_maskz_multishift_epi64_epi8(kEvenBytes, shifts.raw, v.raw);
  // A product of bit matrices: bits 0 to 6 stay, bit 7 becomes the parity of those.
  const VU64 matrix = hn::Set(DU64(), 0x010204081020407F);
  return SplitSigns(VU16{_mm512_gf2p8affine_epi64_epi8(indices, matrix.raw, 0)});
#else
  const DU16 d;
  const VU64 words = hn::Or(
      hn::Or(SevenBitsToWord<kFirst, 0>(v), SevenBitsToWord<kFirst + kStep, 1>(v)),
      hn::Or(SevenBitsToWord<kFirst + 2 * kStep, 2>(v), SevenBitsToWord<kFirst + 3 * kStep, 3>(v)));
  const VU16 index = hn::BitCast(d, words);
  // The parity of seven bits is that of four, by a table.
  const VU16 four = hn::And(hn::Xor(index, hn::ShiftRight<4>(index)), hn::Set(d, uint16_t{15}));
  alignas(16) static constexpr uint8_t kParity[16] = {0,   128, 128, 0,   128, 0,   0,   128,
                                                      128, 0,   0,   128, 0,   128, 128, 0};
  const VU8 parity = hn::TableLookupBytes(hn::LoadDup128(DU8(), kParity), hn::BitCast(DU8(), four));
  return SplitSigns(hn::Or(index, hn::BitCast(d, parity)));
#endif
}

// --------------------------------------------------------------------------------------------------
// Weights from codes, and sums.

// The dot product wants unsigned bytes: weights are kCenter more than they are. At most 127, see
// Dot.
constexpr uint8_t kCenter = 64;

// kCenter + or - a level, by the level at bit `at` of the index and the sign at bit `sign`.
template <size_t kLevels>
constexpr std::array<uint8_t, 64> WeightTable(const std::array<int8_t, kLevels>& levels, int at,
                                              int sign) {
  std::array<uint8_t, 64> table{};
  for (unsigned i = 0; i < 64; ++i) {
    const size_t level = (i >> at) % std::bit_ceil(kLevels);
    const int magnitude = level < kLevels ? levels[level] : 0;
    table[i] = static_cast<uint8_t>(kCenter + ((i >> sign & 1) != 0 ? -magnitude : magnitude));
  }
  return table;
}

// Vector c of the weights, plus kCenter, where its levels are at bit kAt of the codes. kTo is where
// they should go to be beside bit c, the sign, among the low six bits.
template <const auto& kLevels, int c, int kAt, int kTo>
HWY_INLINE VU8 WeightsOf(VU8 codes, VU8 signs) {
  const DU8 d;
  constexpr auto kMask = static_cast<uint8_t>(std::bit_ceil(kLevels.size()) - 1);
#if PRONK_WIDE
  alignas(64) static constexpr auto kTable = WeightTable(kLevels, kTo, c);
  const VU8 index =
      hn::BitwiseIfThenElse(hn::Set(d, uint8_t{kMask << kTo}), ShiftBits<kAt - kTo>(codes), signs);
  return Permute(hn::Load(d, kTable.data()), index);
#else
  alignas(64) static constexpr auto kTable = WeightTable(kLevels, 0, 3);
  const VU8 level = hn::And(ShiftBits<kAt>(codes), hn::Set(d, kMask));
  const VU8 sign = hn::And(ShiftBits<c - 3>(signs), hn::Set(d, uint8_t{8}));
  return hn::TableLookupBytes(hn::LoadDup128(d, kTable.data()), hn::Or(level, sign));
#endif
}

// (2s + 1) * the scale of the activations, where s is in `small`.
HWY_INLINE VF OddScale(VI32 small, const FourthsInput& in, size_t p) {
  return hn::MulAdd(hn::ConvertTo(DF(), small), in.twice[p], in.scale[p]);
}

// The lanes of part p (of a block) of 16 small numbers, one for each 16 weights.
HWY_INLINE VI32 LanesOf(hn::Vec<DU8x16> sixteen, size_t p) {
  const DU8x16 d;
  if constexpr (kBlockParts > 1) {
    sixteen = hn::TableLookupBytes(sixteen, hn::Iota(d, p * kFloats));
  }
  return hn::PromoteTo(DI32(), hn::ResizeBitCast(hn::Rebind<uint8_t, DI32>(), sixteen));
}

// A number of type T for each group of 32 weights of part q of a block.
template <typename T>
HWY_INLINE VU64 LoadGroups(const uint8_t* HWY_RESTRICT p, size_t q) {
  const hn::Rebind<T, DU64> d;
  const hn::Repartition<uint8_t, decltype(d)> d_bytes;
  const auto bytes = hn::LoadU(d_bytes, p + q * kPartGroups * sizeof(T));
  return hn::PromoteTo(DU64(), hn::BitCast(d, bytes));
}

// The nibbles of kBytes (at most 8) bytes, low ones first.
template <size_t kBytes>
HWY_INLINE hn::Vec<DU8x16> LoadNibbles(const uint8_t* HWY_RESTRICT p) {
  const DU8x16 d;
  const auto low = hn::ResizeBitCast(d, hn::LoadU(hn::FixedTag<uint8_t, kBytes>(), p));
  const auto high = hn::ShiftRight<4>(hn::BitCast(DU16x8(), low));
  return hn::And(hn::InterleaveLower(d, low, hn::BitCast(d, high)), hn::Set(d, uint8_t{15}));
}

// What gemv-inl.h asks of a type, but for Step. kZero is the code of weight 0; scales are f16 d
// times (2s + 1) / 8 * kEighths.
template <class BlockType, int kZero, int kEighths>
struct GridType {
  using Block = BlockType;
  using Input = FourthsInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kStepBlocks * kGridBlock;
  static constexpr size_t kStepBytes = kStepBlocks * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadInput(x, i, kZero, static_cast<float>(kEighths) / 8);
  }
  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT block) {
    return SetHalf(DF(), block + offsetof(Block, d));
  }
};

// Adds the products of a step. Type::PartSum(block, p, q, in, unpacked...) gives the scaled sums of
// part p of the step, which is part q of its block. (A function, since lambdas are not inlined
// reliably.)
template <class Type, class... Unpacked>
HWY_INLINE void AddBlocks(const uint8_t* HWY_RESTRICT w, const FourthsInput& in, Sums& sums,
                          const Unpacked&... unpacked) {
  for (size_t b = 0; b < kStepBlocks; ++b) {
    const uint8_t* const block = w + b * sizeof(typename Type::Block);
    VF sum = Type::PartSum(block, b * kBlockParts, 0, in, unpacked...);
    for (size_t q = 1; q < kBlockParts; ++q) {
      sum = hn::Add(sum, Type::PartSum(block, b * kBlockParts + q, q, in, unpacked...));
    }
    sums.a = hn::MulAdd(sum, Type::BlockScale(block), sums.a);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GRID_INL_H_
