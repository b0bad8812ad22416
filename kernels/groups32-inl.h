// Scales for the dot products of eight groups of 32 weights.
//
// The i32 dots of 256 weights are kDotVectors vectors, with a group in each piece. Of four lanes
// per group only the sum counts, so before they become floats they are added up until one vector is
// left (two with one piece): pairs of vectors are packed to i16 and neighbours added. That is half
// of the work of converting and scaling each vector by itself. Which group lies in which piece is
// chosen so that the groups come out in order, or nearly:
//
//   kPieces 1: vector v has group v                     out: 0 1 2 3, 4 5 6 7
//   kPieces 2: vector v has groups v, v + 4             out: 0 1 2 3 4 5 6 7
//   kPieces 4: vector v has groups 4v, 4v+1, ... 4v+3   out: 0 0 4 4 1 1 5 5 2 2 6 6 3 3 7 7
//   or (kEvenOdd)   groups v, v + 2, v + 4, v + 6       out: 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7
// (kEvenOdd is for types whose bytes hold nibbles of neighbouring groups.) Included once per
// instruction set.
#if defined(PRONK_KERNELS_GROUPS32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_GROUPS32_INL_H_
#undef PRONK_KERNELS_GROUPS32_INL_H_
#else
#define PRONK_KERNELS_GROUPS32_INL_H_
#endif

#include "kernels/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kDotVectors = 8 / kPieces;

// Of groups in blocks of their own: the first group of vector v, and the step from piece to piece.
constexpr size_t FirstGroup(size_t v) { return PRONK_WIDE ? 4 * v : v; }
constexpr size_t kGroupStep = PRONK_WIDE ? 1 : 4;

// Adds neighbouring lanes: those of a, then those of b, piece by piece. |lanes| < 32768.
HWY_INLINE VI32 AddNeighbours(VI32 a, VI32 b) {
#if HWY_ARCH_X86
  const DI16 d;
  return hn::WidenMulPairwiseAdd(DI32(), hn::ReorderDemote2To(d, a, b), hn::Set(d, 1));
#else
  const DI32 d;
  return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
#endif
}

// Eight floats, one for each group, in the lanes in which AddDots leaves the groups.
struct GroupScales {
#if PRONK_PIECES == 4
  VF spread;
#else
  Floats8 spread;
#endif
};
template <bool kEvenOdd>
HWY_INLINE GroupScales SpreadScales(const Floats8& scales) {
#if PRONK_PIECES == 4
  const DF df;
  alignas(64) static constexpr int32_t kIndex[2][16] = {
      {0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7},
      {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}};
  return {hn::TableLookupLanes(hn::ResizeBitCast(df, scales.part[0]),
                               hn::SetTableIndices(df, kIndex[kEvenOdd]))};
#else
  return {scales};
#endif
}

// sum + dots * w * x. |dots| at most kMostDot in each lane.
constexpr int kMostDot = PRONK_WIDE ? 32767 : 16383;
HWY_INLINE VF AddScaledDots(VF sum, const VI32 (&dots)[kDotVectors], const GroupScales& w,
                            const GroupScales& x) {
  const DF df;
#if PRONK_PIECES == 4
  const VF dot = hn::ConvertTo(df, AddNeighbours(dots[0], dots[1]));
  return hn::MulAdd(dot, hn::Mul(w.spread, x.spread), sum);
#else
  for (size_t k = 0; k < kParts8; ++k) {
    const VI32* const four = dots + 4 * k;
    const VI32 added =
        AddNeighbours(AddNeighbours(four[0], four[1]), AddNeighbours(four[2], four[3]));
    const VF scale = hn::Mul(w.spread.part[k], x.spread.part[k]);
    sum = hn::MulAdd(hn::ConvertTo(df, added), scale, sum);
  }
  return sum;
#endif
}

// A vector of floats by their numbers among eight; all of one part where there are two.
HWY_INLINE VF PickFloats(const Floats8& eight, const int32_t (&number)[kFloats]) {
  constexpr auto kLanes = static_cast<int32_t>(hn::MaxLanes(D8()));
  alignas(64) int32_t lane[kFloats];
  for (size_t i = 0; i < kFloats; ++i) lane[i] = number[i] % kLanes;
  const VF part = hn::ResizeBitCast(DF(), eight.part[number[0] / kLanes]);
  return hn::TableLookupLanes(part, hn::SetTableIndices(DF(), lane));
}

HWY_INLINE Floats8 Mul(const Floats8& a, const Floats8& b) {
  Floats8 product;
  for (size_t k = 0; k < kParts8; ++k) product.part[k] = hn::Mul(a.part[k], b.part[k]);
  return product;
}

// sum + a * b, in any lanes.
HWY_INLINE V8 MulAdd(const Floats8& a, const Floats8& b, V8 sum) {
  for (size_t k = 0; k < kParts8; ++k) sum = hn::MulAdd(a.part[k], b.part[k], sum);
  return sum;
}

// Eight half floats (f16), kStride bytes apart.
template <size_t kStride>
HWY_INLINE Floats8 LoadEightHalfs(const uint8_t* HWY_RESTRICT p) {
  Floats8 floats;
  const uint64_t low = CollectHalfs<4, kStride>(p);
  const uint64_t high = CollectHalfs<4, kStride>(p + 4 * kStride);
  const hn::Rebind<hwy::float16_t, D8> d_half;
#if PRONK_PIECES == 1
  const hn::FixedTag<uint64_t, 1> d_bits;
  floats.part[0] = hn::PromoteTo(D8(), hn::BitCast(d_half, hn::Set(d_bits, low)));
  floats.part[1] = hn::PromoteTo(D8(), hn::BitCast(d_half, hn::Set(d_bits, high)));
#else
  const hn::FixedTag<uint64_t, 2> d_bits;
  const auto bits = hn::Dup128VecFromValues(d_bits, low, high);
  floats.part[0] = hn::PromoteTo(D8(), hn::BitCast(d_half, bits));
#endif
  return floats;
}

// The scales of the 256 activations at i.
HWY_INLINE Floats8 LoadScales(const ActivationRow& x, size_t i) {
  Floats8 scales;
  for (size_t k = 0; k < kParts8; ++k) {
    scales.part[k] = hn::LoadU(D8(), x.scales + i / 32 + k * hn::MaxLanes(D8()));
  }
  return scales;
}

// scale * (sum of q) for each 32 of the 256 activations at i: what a minimum is multiplied with.
HWY_INLINE Floats8 LoadScaledSums(const ActivationRow& x, size_t i) {
  const D8 d;
  const hn::Repartition<int16_t, D8> d16;
  Floats8 sums = LoadScales(x, i);
  for (size_t k = 0; k < kParts8; ++k) {
    // Neighbouring sums of 16 make a sum of 32.
    const auto of_16 = hn::LoadU(d16, x.sums + i / 16 + k * hn::MaxLanes(d16));
    const auto of_32 = hn::WidenMulPairwiseAdd(hn::RebindToSigned<D8>(), of_16, hn::Set(d16, 1));
    sums.part[k] = hn::Mul(sums.part[k], hn::ConvertTo(d, of_32));
  }
  return sums;
}

// --------------------------------------------------------------------------------------------------
// Types with scales (and minimums) for groups of 32.

// The group of piece p of vector v.
template <bool kEvenOdd>
constexpr size_t GroupOf(size_t v, size_t p) {
  return kEvenOdd && PRONK_WIDE ? v + 2 * p : FirstGroup(v) + p * kGroupStep;
}

// Codes less `zero` in the order of the weights.
template <bool kEvenOdd>
HWY_INLINE void StoreBytes32(const VU8 (&codes)[kDotVectors][2], int zero,
                             int8_t* HWY_RESTRICT weights) {
  for (size_t v = 0; v < kDotVectors; ++v) {
    for (size_t half = 0; half < 2; ++half) {
      const VU8 bytes = hn::Sub(codes[v][half], hn::Set(DU8(), static_cast<uint8_t>(zero)));
      StorePieces(hn::BitCast(DI8(), bytes), [&](size_t p) HWY_ATTR {
        return weights + 32 * GroupOf<kEvenOdd>(v, p) + 16 * half;
      });
    }
  }
}
HWY_INLINE void StoreFloats(const Floats8& floats, float* HWY_RESTRICT out) {
  for (size_t k = 0; k < kParts8; ++k) {
    hn::StoreU(floats.part[k], D8(), out + k * hn::MaxLanes(D8()));
  }
}

// What the dots of a step start with: -kCenter * (sum of the lane), for codes that are kCenter more
// than the weights.
template <int kCenter>
struct Offsets {
  VI32 offset[kDotVectors];

  HWY_INLINE void SetStart(size_t v, const VI8 (&x)[2]) {
    const VU8 center = hn::Set(DU8(), uint8_t{kCenter});
    offset[v] = hn::Neg(Dot(Dot(hn::Zero(DI32()), center, x[0]), center, x[1]));
  }
  HWY_INLINE VI32 Start(size_t v) const { return offset[v]; }
};
template <>
struct Offsets<0> {
  HWY_INLINE void SetStart(size_t, const VI8 (&)[2]) {}
  HWY_INLINE VI32 Start(size_t) const { return hn::Zero(DI32()); }
};

// The activations of a step.
template <bool kEvenOdd, int kCenter>
struct Input32 : Offsets<kCenter> {
  VI8 x[kDotVectors][2];  // the first 16 of each group and the other 16
  GroupScales scales;     // of the activations
  Floats8 sums;           // scale * (sum of the 32)
};

template <bool kEvenOdd, int kCenter>
HWY_INLINE Input32<kEvenOdd, kCenter> LoadInput32(const ActivationRow& x, size_t i) {
  constexpr size_t kStride = 32 * (GroupOf<kEvenOdd>(0, 1) - GroupOf<kEvenOdd>(0, 0));
  Input32<kEvenOdd, kCenter> in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    LoadPiecePairs<kStride>(x.q + i + 32 * GroupOf<kEvenOdd>(v, 0), in.x[v][0], in.x[v][1]);
    in.SetStart(v, in.x[v]);
  }
  in.scales = SpreadScales<kEvenOdd>(LoadScales(x, i));
  in.sums = LoadScaledSums(x, i);
  return in;
}

// Numbers for each group.
struct Factors32 {
  Floats8 scales, mins;
};
// With the codes of the first 16 weights of each group and of the other 16:
struct Unpacked32 : Factors32 {
  VU8 codes[kDotVectors][2];
};
// Before they are unpacked:
struct Packed32 {
  const uint8_t* step;
};

// What the types share: a type adds
//   static void Codes(const uint8_t* w, size_t v, VU8 (*codes)[2])    of vectors v and v + 1
//   static Factors32 Factors(const uint8_t* w)
// Its steps are 256 weights.
template <class Type, class BlockType>
struct Steps32 {
  using Block = BlockType;
  using Unpacked = Unpacked32;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);

  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) Type::Codes(w, v, unpacked.codes + v);
    static_cast<Factors32&>(unpacked) = Type::Factors(w);
    return unpacked;
  }
#if !PRONK_WIDE
  // One token's products take two vectors at a time: all codes do not fit in 16 registers.
  static HWY_INLINE Packed32 UnpackForOne(const uint8_t* HWY_RESTRICT w) { return {w}; }
#endif
};

// a * factor (+ b)
HWY_INLINE Floats8 Mul(const Floats8& a, float factor) {
  Floats8 product;
  for (size_t k = 0; k < kParts8; ++k) {
    product.part[k] = hn::Mul(a.part[k], hn::Set(D8(), factor));
  }
  return product;
}
HWY_INLINE Floats8 MulAdd(const Floats8& a, float factor, const Floats8& b) {
  Floats8 sum;
  for (size_t k = 0; k < kParts8; ++k) {
    sum.part[k] = hn::MulAdd(a.part[k], hn::Set(D8(), factor), b.part[k]);
  }
  return sum;
}

// The first n of eight floats, then zeros: whatever stood there, be it no number.
HWY_INLINE Floats8 KeepFirst(const Floats8& a, size_t n) {
  Floats8 kept;
  for (size_t k = 0; k < kParts8; ++k) {
    const size_t before = k * hn::MaxLanes(D8());
    const auto mask = hn::FirstN(D8(), n > before ? n - before : 0);
    kept.part[k] = hn::IfThenElseZero(mask, a.part[k]);
  }
  return kept;
}

// Codes of 0 to kMostCode.
//   kMinimum false   weight = scale * (code - kZero)
//   kMinimum true    weight = scale * code + min;  kZero is about the middle of the codes
template <class Type, class BlockType, int kZero, int kMostCode, bool kMinimum = false,
          bool kEvenOdd = false>
struct Type32 : Steps32<Type, BlockType> {
  // Where codes are too large for sums of 16 bits they are taken less kZero; with VNNI, whose dots
  // need a start anyhow, also where there is nothing else to add (3 to 7% of Q4_0 in the cache).
  static constexpr bool kLarge = 8 * 127 * kMostCode > kMostDot;
  static constexpr int kCenter = kLarge || (PRONK_VNNI && !kMinimum) ? kZero : 0;
  using Input = Input32<kEvenOdd, kCenter>;
  using Unpacked = Unpacked32;

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadInput32<kEvenOdd, kCenter>(x, i);
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    if constexpr (kMinimum) w.mins = KeepFirst(w.mins, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) dots[v] = DotVector(w.codes[v], in, v);
    AddDots(dots, w, in, sums);
  }
  static HWY_INLINE void Multiply(const Packed32& w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 codes[2][2];
      Type::Codes(w.step, v, codes);
      for (size_t k = 0; k < 2; ++k) dots[v + k] = DotVector(codes[k], in, v + k);
    }
    AddDots(dots, Type::Factors(w.step), in, sums);
  }
  static HWY_INLINE VI32 DotVector(const VU8 (&codes)[2], const Input& in, size_t v) {
    return Dot2(in.Start(v), codes[0], in.x[v][0], codes[1], in.x[v][1]);
  }
  static HWY_INLINE void AddDots(const VI32 (&dots)[kDotVectors], const Factors32& w,
                                 const Input& in, Sums& sums) {
    sums.a = AddScaledDots(sums.a, dots, SpreadScales<kEvenOdd>(w.scales), in.scales);
    if constexpr (kMinimum && kCenter == 0) {
      sums.mins = MulAdd(w.mins, in.sums, sums.mins);
    } else if constexpr (kMinimum) {
      sums.mins = MulAdd(MulAdd(w.scales, kCenter, w.mins), in.sums, sums.mins);
    } else if constexpr (kCenter != kZero) {
      sums.mins = MulAdd(Mul(w.scales, kCenter - kZero), in.sums, sums.mins);
    }
  }

  // For panels (panel-inl.h).
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const Unpacked unpacked = Type::Unpack(w);
    StoreBytes32<kEvenOdd>(unpacked.codes, kZero, out.weights);
    StoreFloats(unpacked.scales, out.scales);
    if constexpr (kMinimum) StoreFloats(MulAdd(unpacked.scales, kZero, unpacked.mins), out.mins);
  }
};

// The same for signed bytes: weight = scale * w, code = w + kSignedZero. Dot products want them
// unsigned, as w + 128, or they take signs and magnitudes apart. The dots are too large for sums of
// 16 bits.
constexpr uint8_t kSignedZero = PRONK_VNNI ? 128 : 0;

struct InputSigned32 : Offsets<kSignedZero> {
  VI8 x[kDotVectors][2];
  Floats8 scales;  // of the activations
};

// Each of eight floats in the lanes of its group in vector v.
HWY_INLINE VF SpreadGroups(const Floats8& floats, size_t v) {
  int32_t group[kFloats];
  for (size_t i = 0; i < kFloats; ++i) {
    group[i] = static_cast<int32_t>(FirstGroup(v) + i / 4 * kGroupStep);
  }
  return PickFloats(floats, group);
}

template <class Type, class BlockType>
struct Signed32 : Steps32<Type, BlockType> {
  using Input = InputSigned32;
  using Unpacked = Unpacked32;

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in;
    for (size_t v = 0; v < kDotVectors; ++v) {
      LoadPiecePairs<32 * kGroupStep>(x.q + i + 32 * FirstGroup(v), in.x[v][0], in.x[v][1]);
      in.SetStart(v, in.x[v]);
    }
    in.scales = LoadScales(x, i);
    return in;
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(w.scales, in.scales);
    for (size_t v = 0; v < kDotVectors; ++v) AddVector(w.codes[v], scales, in, v, sums);
  }
  static HWY_INLINE void Multiply(const Packed32& w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(Type::Factors(w.step).scales, in.scales);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 codes[2][2];
      Type::Codes(w.step, v, codes);
      for (size_t k = 0; k < 2; ++k) AddVector(codes[k], scales, in, v + k, sums);
    }
  }
  static HWY_INLINE void AddVector(const VU8 (&codes)[2], const Floats8& scales, const Input& in,
                                   size_t v, Sums& sums) {
    VI32 dot = in.Start(v);
    for (size_t half = 0; half < 2; ++half) {
#if PRONK_VNNI
      dot = Dot(dot, codes[half], in.x[v][half]);
#else
      dot = DotSigned(dot, hn::BitCast(DI8(), codes[half]), in.x[v][half]);
#endif
    }
    sums.a = hn::MulAdd(hn::ConvertTo(DF(), dot), SpreadGroups(scales, v), sums.a);
  }
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const Unpacked unpacked = Type::Unpack(w);
    StoreBytes32<false>(unpacked.codes, kSignedZero, out.weights);
    StoreFloats(unpacked.scales, out.scales);
  }
};

// Two vectors of codes from nibbles: values + kZero.
template <int kZero>
HWY_INLINE void LookUpCodes(const std::array<int8_t, 16>& values, VU8 (*codes)[2]) {
  const DU8 d;
  const VU8 zero = hn::Set(d, static_cast<uint8_t>(kZero));
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  const VU8 table = hn::Add(hn::LoadDup128(d, bytes), zero);
  for (size_t v = 0; v < 2; ++v) {
    for (size_t half = 0; half < 2; ++half)
      codes[v][half] = hn::TableLookupBytes(table, codes[v][half]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_GROUPS32_INL_H_
