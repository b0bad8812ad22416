// Common code of types with grids (IQ1, IQ2, IQ3): from an index to the weights of a grid entry,
// and to the sum of their products. Included once per instruction set.
//
// The tables in grid_bytes.h have a byte per weight, as dot products need them. Every 8 weights, an
// OCTET, are an entry (or two of 4); four octets make a group of 32 weights, which share a scale. A
// vector has the same octet of neighbouring groups, and the activations have the same order:
//
//   vector 0   | octet 0 of group 0 | octet 0 of group 1 | ...
//   vector 1   | octet 1 of group 0 | octet 1 of group 1 | ...        to vector 3
//   lanes      |    0          1     |    2          3     |
//
// So two lanes of all four dot products belong to a group and take its scale. Types with scales for
// 16 weights add up two vectors for each scale.
//
// The indices take most of the time: an instruction or two for each besides the load of the entry.
// Indices that are not bytes of the file are computed as vectors, some steps ahead (rows-inl.h).
#if defined(PRONK_KERNELS_TYPES_SHARED_GRID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_GRID_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_GRID_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_GRID_INL_H_
#endif

#include <array>

#include "kernels/types/shared/grid_bytes.h"
#include "kernels/types/shared/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A SLICE is the groups that have one octet each in a vector: all 8 groups of a block, or fewer.
constexpr size_t kSliceGroups = kVectorBytes / 8;
constexpr size_t kBlockSlices = 8 / kSliceGroups;

using DU32 = hn::Repartition<uint32_t, DU8>;
using DU64 = hn::Repartition<uint64_t, DU8>;
using VU16 = hn::Vec<DU16>;
using VU64 = hn::Vec<DU64>;

struct GridInput {
  VI8 x[kBlockSlices][4];
  VF scale[kBlockSlices];  // the activations' scales, times a unit
  // The contribution of zero points to vectors 0 and 1, and to 2 and 3 (IQ1_S stores other start
  // values here).
  VI32 start[kBlockSlices][2];
};

// Repeats each of kFloatLanes / 2 floats in two neighbouring lanes.
HWY_INLINE VF BroadcastToLanePairs(const float* HWY_RESTRICT p) {
  const hn::FixedTag<float, kFloatLanes / 2> d;
  alignas(64) int32_t index[kFloatLanes];
  for (size_t i = 0; i < kFloatLanes; ++i) index[i] = static_cast<int32_t>(i / 2);
  return hn::TableLookupLanes(hn::ResizeBitCast(DF(), hn::LoadU(d, p)),
                              hn::SetTableIndices(DF(), index));
}

// `unit` is the common factor of all scales.
HWY_INLINE GridInput LoadGridInput(const ActivationRow& x, size_t i, float unit) {
  GridInput in;
  for (size_t p = 0; p < kBlockSlices; ++p) {
    const size_t first = i + p * kSliceGroups * 32;
    for (size_t v = 0; v < 4; ++v) {
      alignas(64) int8_t octets[kVectorBytes];
      for (size_t g = 0; g < kSliceGroups; ++g) {
        hwy::CopyBytes<8>(x.q + first + 32 * g + 8 * v, octets + 8 * g);
      }
      in.x[p][v] = hn::Load(DI8(), octets);
    }
    in.scale[p] = hn::Mul(BroadcastToLanePairs(x.scales + first / 32), hn::Set(DF(), unit));
  }
  return in;
}

// The sums of both vectors in each lane.
HWY_INLINE VI32 LaneSums(VI8 x0, VI8 x1) {
  const VU8 ones = hn::Set(DU8(), uint8_t{1});
  return Dot2(hn::Zero(DI32()), ones, x0, ones, x1);
}

// Fields of a block.

// A number of type T for each group of slice p, in a u64.
template <typename T>
HWY_INLINE VU64 LoadGroups(const uint8_t* HWY_RESTRICT from, size_t p) {
  from += p * kSliceGroups * sizeof(T);
  if constexpr (sizeof(T) == 8) {
    return hn::BitCast(DU64(), hn::LoadU(DU8(), from));
  } else {
    const hn::Rebind<T, DU64> d;
    const hn::Repartition<uint8_t, decltype(d)> d_bytes;
    return hn::PromoteTo(DU64(), hn::BitCast(d, hn::LoadU(d_bytes, from)));
  }
}

// A byte for each octet of slice p, in a u16.
HWY_INLINE VU16 LoadOctets(const uint8_t* HWY_RESTRICT from, size_t p) {
  const hn::Rebind<uint8_t, DU16> d_bytes;
  return hn::PromoteTo(DU16(), hn::LoadU(d_bytes, from + p * kSliceGroups * 4));
}

#if !PRONK_VECTOR64
// Moves kBits bits of each u64 from bit kFrom to bit kTo.
template <int kFrom, int kBits, int kTo>
HWY_INLINE VU64 MoveBits(VU64 v) {
  if constexpr (kFrom > kTo) v = hn::ShiftRight<kFrom - kTo>(v);
  if constexpr (kFrom < kTo) v = hn::ShiftLeft<kTo - kFrom>(v);
  return hn::And(v, hn::Set(DU64(), ((uint64_t{1} << kBits) - 1) << kTo));
}
#endif

// Splits a group's u64 into a field for each octet: kBits bits, every kStep bits from bit kFirst
// on, go to bit kTo (0 or 8) of each u16.
template <int kFirst, int kStep, int kBits, int kTo>
HWY_INLINE VU16 SplitGroups(VU64 v) {
#if PRONK_VECTOR64
  // The instruction moves any eight bits of a u64 to each byte in kBytes; other bytes get zeros.
  constexpr auto kShift = [](int t) {
    return static_cast<uint64_t>(kFirst + kStep * t) << (16 * t + kTo);
  };
  const VU64 shifts = hn::Set(DU64(), kShift(0) | kShift(1) | kShift(2) | kShift(3));
  constexpr uint64_t kBytes = uint64_t{0x5555555555555555} << (kTo / 8);
  const VU16 fields{_mm512_maskz_multishift_epi64_epi8(kBytes, shifts.raw, v.raw)};
  if constexpr (kBits == 8) return fields;
  return hn::And(fields, hn::Set(DU16(), uint16_t{((1 << kBits) - 1) << kTo}));
#else
  if constexpr (kStep == 16 && kFirst + kBits == 16 && kTo == 0) {
    return hn::ShiftRight<kFirst>(hn::BitCast(DU16(), v));
  }
  const VU64 low =
      hn::Or(MoveBits<kFirst, kBits, kTo>(v), MoveBits<kFirst + kStep, kBits, kTo + 16>(v));
  const VU64 high = hn::Or(MoveBits<kFirst + 2 * kStep, kBits, kTo + 32>(v),
                           MoveBits<kFirst + 3 * kStep, kBits, kTo + 48>(v));
  return hn::BitCast(DU16(), hn::Or(low, high));
#endif
}

// A vector from its 128-bit lanes. (Highway's Combine clears the upper half before it is replaced.)
HWY_INLINE VU8 Join(const hn::Vec<DU8x16> (&lanes128)[kLanes128]) {
#if PRONK_LANES128 == 1
  return lanes128[0];
#else
  const auto join = [&](size_t i) HWY_ATTR {
    return _mm256_inserti128_si256(_mm256_castsi128_si256(lanes128[i].raw), lanes128[i + 1].raw, 1);
  };
#if PRONK_LANES128 == 2
  return VU8{join(0)};
#else
  return VU8{_mm512_inserti64x4(_mm512_castsi256_si512(join(0)), join(2), 1)};
#endif
#endif
}

// Vectors 0 to 3 of slice p of the entries whose indices, kMask bits each, are at `index` (for the
// whole block), kStride from group to group. An octet is a u64 of the grid or two u32. Indices are
// loaded and used in words of 32 bits, as loads and registers are scarce.
template <uint32_t kMask, size_t kStride, typename Entry, typename Index>
HWY_INLINE void LookUp(const Entry* HWY_RESTRICT grid, const Index* HWY_RESTRICT index, size_t p,
                       VU8 (&weights)[4]) {
  constexpr size_t kEntries = 8 / sizeof(Entry);            // entries of an octet
  constexpr size_t kOctets = 4 / sizeof(Index) / kEntries;  // octets of a word
  const hn::FixedTag<Entry, 16 / sizeof(Entry)> d;
  hn::Vec<DU8x16> lanes128[4][kLanes128];
  for (size_t k = 0; k < kLanes128; ++k) {
    const Index* const first = index + (p * kSliceGroups + 2 * k) * kStride;
    for (size_t v = 0; v < 4; ++v) {
      uint32_t a, b;
      hwy::CopyBytes<4>(first + v / kOctets * kOctets * kEntries, &a);
      hwy::CopyBytes<4>(first + kStride + v / kOctets * kOctets * kEntries, &b);
      const auto entry = [&](uint32_t word, size_t i) HWY_ATTR {
        return grid[word >> (8 * sizeof(Index) * (v % kOctets * kEntries + i)) & kMask];
      };
      if constexpr (kEntries == 1) {
        lanes128[v][k] =
            hn::BitCast(DU8x16(), hn::Dup128VecFromValues(d, entry(a, 0), entry(b, 0)));
      } else {
        lanes128[v][k] = hn::BitCast(DU8x16(), hn::Dup128VecFromValues(d, entry(a, 0), entry(a, 1),
                                                                       entry(b, 0), entry(b, 1)));
      }
    }
  }
  for (size_t v = 0; v < 4; ++v) weights[v] = Join(lanes128[v]);
}

// Signs: a byte for each octet, in the low half of a u16. Bit i negates weight i.

// Makes signs from 7-bit indices (EvenSigns in tables.h): each u64 has four indices, at bits kFirst
// + kStep * t.
template <int kFirst, int kStep>
HWY_INLINE VU16 EvenSignsOf(VU64 v) {
#if PRONK_VECTOR64
  // A product of bit matrices: bits 0 to 6 are kept, bit 7 becomes their parity.
  const VU16 index = SplitGroups<kFirst, kStep, 8, 0>(v);
  const VU64 matrix = hn::Set(DU64(), 0x010204081020407F);
  return VU16{_mm512_gf2p8affine_epi64_epi8(index.raw, matrix.raw, 0)};
#else
  const VU16 index = SplitGroups<kFirst, kStep, 7, 0>(v);
  // XOR reduces seven bits to four of the same parity, which a table gives.
  const DU16 d;
  const VU16 four = hn::And(hn::Xor(index, hn::ShiftRight<4>(index)), hn::Set(d, uint16_t{15}));
  alignas(16) static constexpr uint8_t kParity[16] = {0,   128, 128, 0,   128, 0,   0,   128,
                                                      128, 0,   0,   128, 0,   128, 128, 0};
  const VU8 parity = hn::TableLookupBytes(hn::LoadDup128(DU8(), kParity), hn::BitCast(DU8(), four));
  return hn::Or(index, hn::BitCast(d, parity));
#endif
}

// The signs of vector v: a negative or a positive number in each byte.
template <size_t v>
HWY_INLINE VI8 SignBytes(VU16 signs) {
  const DU8 d;
  alignas(16) static constexpr auto kFrom = [] {
    std::array<uint8_t, 16> from{};
    for (size_t i = 0; i < 16; ++i) from[i] = static_cast<uint8_t>(i / 8 * 8 + 2 * v);
    return from;
  }();
  const VU8 eight = hn::TableLookupBytes(hn::BitCast(d, signs), hn::LoadDup128(d, kFrom.data()));
  // A set bit makes its byte 128 or 129.
  const VU8 bits = hn::And(eight, hn::BitCast(d, hn::Set(DU64(), 0x8040201008040201)));
  return hn::BitCast(DI8(), hn::Add(bits, hn::BitCast(d, hn::Set(DU64(), 0x01406070787C7E7F))));
}

// Scales: numbers s that mean 2s + 1.

// d * (2s + 1), which is exact: d has 11 bits.
HWY_INLINE VF ScaleOf(VI32 s, VF d) { return hn::MulAdd(hn::ConvertTo(DF(), s), hn::Add(d, d), d); }

// Copies the low half of each u64 to its high half.
HWY_INLINE VI32 InBothLanes(VU64 v) { return hn::DupEven(hn::BitCast(DI32(), v)); }

// A slice of a block. Types with scales of 32 weights have only the first scale.
struct GridSlice {
  VU8 weights[4];  // magnitudes, or weights plus a zero point that the dots' start value subtracts
  VI8 signs[4];    // of magnitudes
  VF scale[2];     // d * (2s + 1)
};
// A block: unpacked, and before it is unpacked.
struct UnpackedGrid {
  GridSlice slices[kBlockSlices];
};
struct PackedGrid {
  const uint8_t* block;
  const uint16_t* index;  // stored by ComputeIndices, for types that have it
  VF d;
};

// Panels need weights in order: entries are loaded as in memory, eight weights per number, and
// arithmetic applies signs. Reordering the vectors above would take longer.

// Eight magnitudes, each at least 1, negated where `mask` has a byte of ones. A byte's ~m + 1 never
// carries into the next.
HWY_INLINE uint64_t Negate8(uint64_t magnitudes, uint64_t mask) {
  return (magnitudes ^ mask) + (mask & 0x0101010101010101u);
}

inline uint32_t LoadU32(const void* bytes) {
  uint32_t value;
  hwy::CopyBytes<4>(bytes, &value);
  return value;
}
// Nibble i of packed scales, low nibbles first.
inline int ScaleNibble(const uint8_t* scales, size_t i) {
  return scales[i / 2] >> (4 * (i % 2)) & 15;
}

// The definition of a type with kGroup weights to a scale, and its panels. A type adds
//   static uint64_t Octet(const Block& block, size_t k)    the k-th 8 weights, a signed byte each
// or a ToBytes of its own.
template <class Type, class Block, int kGroup>
struct GridDefinition : Definition<Type, Block, kGroup> {
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const block = reinterpret_cast<const Block*>(w);
    for (size_t g = 0; g < 8; ++g) {
      HWY_UNROLL(4)
      for (size_t l = 0; l < 4; ++l) {  // unrolled: shifts of IQ1_S and IQ2_S depend on constant l
        const uint64_t octet = Type::Octet(*block, 4 * g + l);
        hwy::CopyBytes<8>(&octet, out.weights + 32 * g + 8 * l);
      }
    }
    for (int g = 0; g < 256 / kGroup; ++g) out.scales[g] = Type::GroupScale(*block, g);
  }
};

// Members that rows-inl.h needs. A type adds
//   static void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice)
// Scales are f16 d times (2s + 1) / 8 * kEighths, kBits bits for each 16 weights, or for each 32
// (kBits 0). kSigns: signs are stored separately.
template <class Type, class BlockType, int kEighths, int kBits, bool kSigns>
struct GridType : GridDefinition<Type, BlockType, kBits == 0 ? 32 : 16> {
  using Block = BlockType;
  using Input = GridInput;
  using Unpacked = UnpackedGrid;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    return LoadGridInput(x, i, static_cast<float>(kEighths) / 8);
  }
  // Sets the scales from s of each group.
  static HWY_INLINE void SetScales(VU64 s, VF d, GridSlice& out) {
    const VI32 both = InBothLanes(s);
    if constexpr (kBits == 0) {
      out.scale[0] = ScaleOf(both, d);
    } else {
      const VI32 mask = hn::Set(DI32(), (1 << kBits) - 1);
      out.scale[0] = ScaleOf(hn::And(both, mask), d);
      out.scale[1] = ScaleOf(hn::And(hn::ShiftRight<kBits>(both), mask), d);
    }
  }
  static HWY_INLINE void SetSigns(VU16 signs, GridSlice& out) {
    out.signs[0] = SignBytes<0>(signs);
    out.signs[1] = SignBytes<1>(signs);
    out.signs[2] = SignBytes<2>(signs);
    out.signs[3] = SignBytes<3>(signs);
  }

  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT w) {
    return SetHalf(DF(), w + offsetof(Block, d));
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w,
                                    const uint16_t* HWY_RESTRICT index = nullptr) {
    const PackedGrid packed = {w, index, Type::BlockScale(w)};
    Unpacked unpacked;
    for (size_t p = 0; p < kBlockSlices; ++p) Type::UnpackSlice(packed, p, unpacked.slices[p]);
    return unpacked;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    for (size_t p = 0; p < kBlockSlices; ++p) MultiplySlice(w.slices[p], in, p, sums);
  }

#if !PRONK_VECTOR64
  // One token's products take a slice at a time, since a block does not fit in 16 registers. Saves
  // up to a quarter of the time.
  static HWY_INLINE PackedGrid DeferUnpack(const uint8_t* HWY_RESTRICT w,
                                           const uint16_t* HWY_RESTRICT index = nullptr) {
    return {w, index, Type::BlockScale(w)};
  }
  static HWY_INLINE void Multiply(const PackedGrid& w, const Input& in, RowSums& sums) {
    const auto multiply = [&](size_t p) HWY_ATTR {
      GridSlice slice;
      Type::UnpackSlice(w, p, slice);
      MultiplySlice(slice, in, p, sums);
    };
    // Without a loop IQ3_S is 13% faster; types that read indices from the file are 10% slower.
    if constexpr (kBlockSlices == 2 && requires { Type::kIndices; }) {
      multiply(0), multiply(1);
    } else {
      for (size_t p = 0; p < kBlockSlices; ++p) multiply(p);
    }
  }
#endif

  static HWY_INLINE void MultiplySlice(const GridSlice& w, const Input& in, size_t p,
                                       RowSums& sums) {
    const VI32 none = hn::Zero(DI32());
    AddDots(kSigns ? none : in.start[p][0], kSigns || kBits == 0 ? none : in.start[p][1], w, in, p,
            sums);
  }
  // The dots of vectors 0 and 1 start with `first`, the dots of vectors 2 and 3 with `second`.
  // Weights are at most 64.
  static HWY_INLINE void AddDots(VI32 first, VI32 second, const GridSlice& w, const Input& in,
                                 size_t p, RowSums& sums) {
    const DF d;
    VI8 x[4];
    for (size_t v = 0; v < 4; ++v) {
      x[v] = in.x[p][v];
      if constexpr (kSigns) x[v] = hn::IfNegativeThenNegOrUndefIfZero(w.signs[v], x[v]);
    }
    // The sums of 16 weights each, in two lanes.
    first = Dot2(first, w.weights[0], x[0], w.weights[1], x[1]);
    second = Dot2(second, w.weights[2], x[2], w.weights[3], x[3]);
    if constexpr (kBits == 0) {
      const VF dots = hn::ConvertTo(d, hn::Add(first, second));
      sums.products = hn::MulAdd(hn::Mul(dots, in.scale[p]), w.scale[0], sums.products);
    } else {
      const VF scaled = hn::MulAdd(hn::ConvertTo(d, first), w.scale[0],
                                   hn::Mul(hn::ConvertTo(d, second), w.scale[1]));
      sums.products = hn::MulAdd(scaled, in.scale[p], sums.products);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_GRID_INL_H_
