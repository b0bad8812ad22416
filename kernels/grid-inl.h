// What the types with grids (IQ1, IQ2, IQ3) share: the way from an index to the weights of a grid
// entry and to the sum of their products. Included once per instruction set by the gemv_iq*.cc
// files; gemv-inl.h has the loop around it.
//
// The tables in grid_bytes.h have a byte per weight, so that a load brings what dot products take.
// Every 8 weights are an entry (or two of 4); four such EIGHTHS make a group of 32 weights, which
// share a scale. Vectors are put together from equal eighths of neighbouring groups, and the
// activations are taken in the same order:
//
//   vector 0   | eighth 0 of group 0 | eighth 0 of group 1 | ...
//   vector 1   | eighth 1 of group 0 | eighth 1 of group 1 | ...        to vector 3
//   lanes      |    0          1     |    2          3     |
//
// So two lanes of all four dot products belong to a group, and their sums need no sorting: a scale
// in both lanes is all that is left to do. Types with scales of 16 add up two vectors for each.
//
// The indices are what takes time: an instruction or two for each of them, besides the load of the
// entry. Where they are not bytes of the file they are computed as vectors, some steps ahead
// (gemv-inl.h), since a load from what a vector has just stored has to wait for it.
#if defined(PRONK_KERNELS_GRID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_GRID_INL_H_
#undef PRONK_KERNELS_GRID_INL_H_
#else
#define PRONK_KERNELS_GRID_INL_H_
#endif

#include <array>

#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"
#include "kernels/grid_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A PART is what a vector has an eighth of: as many groups as it has u64s, all 8 of a block or
// fewer.
constexpr size_t kPartGroups = kVectorBytes / 8;
constexpr size_t kBlockParts = 8 / kPartGroups;

using DU32 = hn::Repartition<uint32_t, DU8>;
using DU64 = hn::Repartition<uint64_t, DU8>;
using VU16 = hn::Vec<DU16>;
using VU64 = hn::Vec<DU64>;

// --------------------------------------------------------------------------------------------------
// Activations.

struct GridInput {
  VI8 x[kBlockParts][4];
  VF scale[kBlockParts], twice[kBlockParts];  // of the activations, times a unit; and double that
  VI32 offset[kBlockParts][2];                // what zero points contribute: the types' own
};

// Each of kFloats / 2 floats in two neighbouring lanes.
HWY_INLINE VF SpreadPairs(const float* HWY_RESTRICT p) {
  const hn::FixedTag<float, kFloats / 2> d;
  alignas(64) int32_t index[kFloats];
  for (size_t i = 0; i < kFloats; ++i) index[i] = static_cast<int32_t>(i / 2);
  return hn::TableLookupLanes(hn::ResizeBitCast(DF(), hn::LoadU(d, p)),
                              hn::SetTableIndices(DF(), index));
}

// `unit` is what is common to all scales.
HWY_INLINE GridInput LoadInput(const ActivationRow& x, size_t i, float unit) {
  GridInput in;
  for (size_t p = 0; p < kBlockParts; ++p) {
    const size_t first = i + p * kPartGroups * 32;
    for (size_t v = 0; v < 4; ++v) {
      alignas(64) int8_t eighths[kVectorBytes];
      for (size_t g = 0; g < kPartGroups; ++g) {
        hwy::CopyBytes<8>(x.q + first + 32 * g + 8 * v, eighths + 8 * g);
      }
      in.x[p][v] = hn::Load(DI8(), eighths);
    }
    in.scale[p] = hn::Mul(SpreadPairs(x.scales + first / 32), hn::Set(DF(), unit));
    in.twice[p] = hn::Add(in.scale[p], in.scale[p]);
  }
  return in;
}

// The sums of both vectors in each lane.
HWY_INLINE VI32 LaneSums(VI8 x0, VI8 x1) {
  const VU8 ones = hn::Set(DU8(), uint8_t{1});
  return Dot2(hn::Zero(DI32()), ones, x0, ones, x1);
}

// --------------------------------------------------------------------------------------------------
// Fields of a block.

// A number of type T for each group of part p, in a u64.
template <typename T>
HWY_INLINE VU64 LoadGroups(const uint8_t* HWY_RESTRICT from, size_t p) {
  from += p * kPartGroups * sizeof(T);
  if constexpr (sizeof(T) == 8) {
    return hn::BitCast(DU64(), hn::LoadU(DU8(), from));
  } else {
    const hn::Rebind<T, DU64> d;
    const hn::Repartition<uint8_t, decltype(d)> d_bytes;
    return hn::PromoteTo(DU64(), hn::BitCast(d, hn::LoadU(d_bytes, from)));
  }
}

// A byte for each eighth of part p, in a u16.
HWY_INLINE VU16 LoadEighths(const uint8_t* HWY_RESTRICT from, size_t p) {
  const hn::Rebind<uint8_t, DU16> d_bytes;
  return hn::PromoteTo(DU16(), hn::LoadU(d_bytes, from + p * kPartGroups * 4));
}

#if !PRONK_WIDE
// kBits bits from bit kFrom on of each u64 to bit kTo.
template <int kFrom, int kBits, int kTo>
HWY_INLINE VU64 MoveBits(VU64 v) {
  if constexpr (kFrom > kTo) v = hn::ShiftRight<kFrom - kTo>(v);
  if constexpr (kFrom < kTo) v = hn::ShiftLeft<kTo - kFrom>(v);
  return hn::And(v, hn::Set(DU64(), ((uint64_t{1} << kBits) - 1) << kTo));
}
#endif

// A field for each eighth, from those of its group: kBits bits from bit kFirst on and every kStep
// go to bit kTo (0 or 8) of each u16.
template <int kFirst, int kStep, int kBits, int kTo>
HWY_INLINE VU16 SplitGroups(VU64 v) {
#if PRONK_WIDE
  // Any eight bits of a u64 to any byte; to the others, zeros.
  constexpr auto kShift = [](int t) { return uint64_t{kFirst + kStep * t} << (16 * t + kTo); };
  const VU64 shifts = hn::Set(DU64(), kShift(0) | kShift(1) | kShift(2) | kShift(3));
  constexpr uint64_t kBytes = uint64_t{0x5555555555555555} << (kTo / 8);
  const VU16 fields{_mm512_maskz_multishift_epi64_epi8(kBytes, shifts.raw, v.raw)};
  if constexpr (kBits == 8) return fields;
  return hn::And(fields, hn::Set(DU16(), uint16_t{((1 << kBits) - 1) << kTo}));
#else
  const VU64 low =
      hn::Or(MoveBits<kFirst, kBits, kTo>(v), MoveBits<kFirst + kStep, kBits, kTo + 16>(v));
  const VU64 high = hn::Or(MoveBits<kFirst + 2 * kStep, kBits, kTo + 32>(v),
                           MoveBits<kFirst + 3 * kStep, kBits, kTo + 48>(v));
  return hn::BitCast(DU16(), hn::Or(low, high));
#endif
}

// --------------------------------------------------------------------------------------------------
// Weights from indices.

// A vector from its pieces. (Highway's Combine clears the upper half before it is replaced.)
HWY_INLINE VU8 Join(const hn::Vec<DU8x16> (&pieces)[kPieces]) {
#if PRONK_PIECES == 1
  return pieces[0];
#else
  const auto join = [&](size_t i) HWY_ATTR {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(pieces[i].raw), pieces[i + 1].raw, 1);
  };
#if PRONK_PIECES == 2
  return VU8{join(0)};
#else
  return VU8{_mm512_inserti64x4(_mm512_castsi256_si512(join(0)), join(2), 1)};
#endif
#endif
}

// Vectors 0 to 3 of part p of the entries whose indices, kMask bits each, are at `index` (those of
// the block), the first of each group kStride after the one before. An eighth is a u64 of the grid
// or two u32. Indices are loaded in words of 32 bits, as loads are as scarce as instructions, and
// used word by word, as registers are.
template <uint32_t kMask, size_t kStride, typename Entry, typename Index>
HWY_INLINE void LookUp(const Entry* HWY_RESTRICT grid, const Index* HWY_RESTRICT index, size_t p,
                       VU8 (&weights)[4]) {
  constexpr size_t kEntries = 8 / sizeof(Entry);             // in an eighth
  constexpr size_t kEighths = 4 / sizeof(Index) / kEntries;  // in a word
  const hn::FixedTag<Entry, 16 / sizeof(Entry)> d;
  hn::Vec<DU8x16> pieces[4][kPieces];
  for (size_t k = 0; k < kPieces; ++k) {
    const Index* const first = index + (p * kPartGroups + 2 * k) * kStride;
    for (size_t v = 0; v < 4; ++v) {
      uint32_t a, b;
      hwy::CopyBytes<4>(first + v / kEighths * kEighths * kEntries, &a);
      hwy::CopyBytes<4>(first + kStride + v / kEighths * kEighths * kEntries, &b);
      const auto entry = [&](uint32_t word, size_t i) HWY_ATTR {
        return grid[word >> (8 * sizeof(Index) * (v % kEighths * kEntries + i)) & kMask];
      };
      if constexpr (kEntries == 1) {
        pieces[v][k] = hn::BitCast(DU8x16(), hn::Dup128VecFromValues(d, entry(a, 0), entry(b, 0)));
      } else {
        pieces[v][k] = hn::BitCast(DU8x16(), hn::Dup128VecFromValues(d, entry(a, 0), entry(a, 1),
                                                                     entry(b, 0), entry(b, 1)));
      }
    }
  }
  for (size_t v = 0; v < 4; ++v) weights[v] = Join(pieces[v]);
}

// --------------------------------------------------------------------------------------------------
// Signs: a byte for each eighth, in the low half of a u16. Bit i negates weight i.

// From 7-bit indices (EvenSigns in tables.h): four of them in each u64, at bits kFirst + kStep * t.
template <int kFirst, int kStep>
HWY_INLINE VU16 EvenSignsOf(VU64 v) {
#if PRONK_WIDE
  // A product of bit matrices: bits 0 to 6 stay, bit 7 becomes the parity of those.
  const VU16 index = SplitGroups<kFirst, kStep, 8, 0>(v);
  const VU64 matrix = hn::Set(DU64(), 0x010204081020407F);
  return VU16{_mm512_gf2p8affine_epi64_epi8(index.raw, matrix.raw, 0)};
#else
  const VU16 index = SplitGroups<kFirst, kStep, 7, 0>(v);
  // The parity of seven bits is that of four, by a table.
  const DU16 d;
  const VU16 four = hn::And(hn::Xor(index, hn::ShiftRight<4>(index)), hn::Set(d, uint16_t{15}));
  alignas(16) static constexpr uint8_t kParity[16] = {0,   128, 128, 0,   128, 0,   0,   128,
                                                      128, 0,   0,   128, 0,   128, 128, 0};
  const VU8 parity = hn::TableLookupBytes(hn::LoadDup128(DU8(), kParity), hn::BitCast(DU8(), four));
  return hn::Or(index, hn::BitCast(d, parity));
#endif
}

// The activations of vector v with the signs of its weights.
template <size_t v>
HWY_INLINE VI8 Negate(VI8 x, VU16 signs) {
  const DU8 d;
  alignas(16) static constexpr auto kFrom = [] {
    std::array<uint8_t, 16> from{};
    for (size_t i = 0; i < 16; ++i) from[i] = static_cast<uint8_t>(i / 8 * 8 + 2 * v);
    return from;
  }();
  const VU8 eight = hn::TableLookupBytes(hn::BitCast(d, signs), hn::LoadDup128(d, kFrom.data()));
  const auto minus = hn::TestBit(eight, hn::BitCast(d, hn::Set(DU64(), 0x8040201008040201)));
#if PRONK_WIDE
  return VI8{_mm512_mask_sub_epi8(x.raw, minus.raw, _mm512_setzero_si512(), x.raw)};
#else
  const VI8 ones = hn::BitCast(DI8(), hn::VecFromMask(d, minus));
  return hn::Sub(hn::Xor(x, ones), ones);
#endif
}

// The products of vectors 0 and 1, and those of vectors 2 and 3: of 16 weights each, in two lanes.
// Weights at most 64.
struct Sixteens {
  VI32 first, second;
};
HWY_INLINE Sixteens DotSigned(const VU8 (&weights)[4], VU16 signs, const VI8 (&x)[4]) {
  const VI32 none = hn::Zero(DI32());
  return {Dot2(none, weights[0], Negate<0>(x[0], signs), weights[1], Negate<1>(x[1], signs)),
          Dot2(none, weights[2], Negate<2>(x[2], signs), weights[3], Negate<3>(x[3], signs))};
}

// --------------------------------------------------------------------------------------------------
// Scales.

// (2s + 1) * the scale of the activations.
HWY_INLINE VF OddScale(VI32 s, const GridInput& in, size_t p) {
  return hn::MulAdd(hn::ConvertTo(DF(), s), in.twice[p], in.scale[p]);
}

// The low half of each u64 in both.
HWY_INLINE VI32 InBothLanes(VU64 v) { return hn::DupEven(hn::BitCast(DI32(), v)); }

// The sums of part p where s belongs to groups of 32 ...
HWY_INLINE VF Scaled32(VI32 dots, VU64 s, const GridInput& in, size_t p) {
  return hn::Mul(hn::ConvertTo(DF(), dots), OddScale(InBothLanes(s), in, p));
}
HWY_INLINE VF Scaled32(const Sixteens& dots, VU64 s, const GridInput& in, size_t p) {
  return Scaled32(hn::Add(dots.first, dots.second), s, in, p);
}
// ... and where kBits bits belong to 16 weights, and those above them to the next 16.
template <int kBits>
HWY_INLINE VF Scaled16(const Sixteens& dots, VU64 s, const GridInput& in, size_t p) {
  const VI32 both = InBothLanes(s);
  const VI32 mask = hn::Set(DI32(), (1 << kBits) - 1);
  const VF first = OddScale(hn::And(both, mask), in, p);
  const VF second = OddScale(hn::And(hn::ShiftRight<kBits>(both), mask), in, p);
  return hn::MulAdd(hn::ConvertTo(DF(), dots.first), first,
                    hn::Mul(hn::ConvertTo(DF(), dots.second), second));
}

// --------------------------------------------------------------------------------------------------

// What gemv-inl.h asks of a type, where Type::PartSum(block, index, p, in) gives the scaled sums of
// a part, times d. Scales are f16 d times (2s + 1) / 8 * kEighths.
template <class Type, class BlockType, int kEighths>
struct GridType {
  using Block = BlockType;
  using Input = GridInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadInput(x, i, static_cast<float>(kEighths) / 8);
  }
  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT block) {
    return SetHalf(DF(), block + offsetof(Block, d));
  }
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const uint16_t* HWY_RESTRICT index,
                              const Input& in, Sums& sums) {
    VF sum = Type::PartSum(w, index, 0, in);
    for (size_t p = 1; p < kBlockParts; ++p) sum = hn::Add(sum, Type::PartSum(w, index, p, in));
    sums.a = hn::MulAdd(sum, Type::BlockScale(w), sums.a);
  }
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    Step(w, nullptr, in, sums);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GRID_INL_H_
