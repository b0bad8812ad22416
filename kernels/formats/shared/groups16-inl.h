// Scales for the dot products of sixteen groups of 16 weights.
//
// Formats with a scale per 16 have blocks of 256, two halves of 128 with four runs of 32 each: run
// k is bits 2k and 2k + 1 of 32 bytes. So codes come out as vectors of run k: of both halves
// (kPieces 4), of one half (2), or half of a run (1).
//
// The scales are small integers and are applied before anything becomes a float, or nearly so:
// - Vectors of 64 bytes: codes and activations are dealt so that a lane has a group in all vectors,
//   whose dots are one sum; here scales are floats, with d.
// - Shorter vectors have one instruction that adds pairs of products to i16 and one that multiplies
//   those and adds pairs to i32: the scales are factors of the second, and cost nothing. The zero
//   point is then taken off with the activations' sums.
// - Arm adds dots up to a lane for each group, where the scales need not be spread.
// Included once per instruction set.
#if defined(PRONK_KERNELS_FORMATS_SHARED_GROUPS16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_SHARED_GROUPS16_INL_H_
#undef PRONK_KERNELS_FORMATS_SHARED_GROUPS16_INL_H_
#else
#define PRONK_KERNELS_FORMATS_SHARED_GROUPS16_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/formats/shared/scaled_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

constexpr size_t kRunVectors = RunVectors(2);

// Sixteen small integers, a number for each group.
using DI8x16 = hn::FixedTag<int8_t, 16>;
using VI8x16 = hn::Vec<DI8x16>;
using D16 = hn::Repartition<int16_t, D8>;
struct Small16 {
  hn::Vec<D16> part[kParts8];
};

HWY_INLINE Small16 Widen(VI8x16 bytes) {
  const D16 d;
#if PRONK_PIECES == 1
  return {{hn::PromoteLowerTo(d, bytes), hn::PromoteUpperTo(d, bytes)}};
#else
  return {{hn::PromoteTo(d, bytes)}};
#endif
}

// Factors of minimums, and of zero points that are not subtracted from the dots.
struct RunSums {
  Floats8 scales;  // of the activations, in order
  Small16 sums;    // of each 16 q
};
struct NoSums {};

// The activations of 256 weights in the order of the runs. Kept small, because those of many tokens
// do not fit in the first-level cache (NOTEBOOK.md).
template <bool kSums>
struct RunInput : std::conditional_t<kSums, RunSums, NoSums> {
  VI8 x[4][kRunVectors];
#if PRONK_WIDE
  VI32 offset;  // -zero * factor * (sum of the lane)
  VF scale;     // of the activations, in the lanes of their groups, / factor
#elif !HWY_ARCH_X86
  VF scale[2];  // of the activations, for the runs of each half, / factor
#else
  VF scale[4][kRunVectors];  // of the activations, / factor
#endif
};

// A type may leave the codes of run k at their bit position, which makes them Type::kFactors[k]
// times as large, a power of two: scales compensate for that, and nothing is rounded.
template <class Type>
HWY_INLINE typename Type::Input LoadRunInput(const ActivationRow& x, size_t i) {
  typename Type::Input in;
  const float* const scales = x.scales + i / 32;
  for (size_t k = 0; k < 4; ++k) {
    for (size_t v = 0; v < kRunVectors; ++v) {
      in.x[k][v] = LoadRuns<128>(x.q + i + 32 * k, v);
#if HWY_ARCH_X86 && !PRONK_WIDE
      const float inverse = 1.0f / static_cast<float>(Type::kFactors[k]);
      in.scale[k][v] = hn::Set(DF(), scales[v * kPieces / 2 * 4 + k] * inverse);
#endif
    }
  }
#if !HWY_ARCH_X86
  static constexpr auto kInverse = [] {
    std::array<float, 4> inverse{};
    for (size_t k = 0; k < 4; ++k) inverse[k] = 1.0f / static_cast<float>(Type::kFactors[k]);
    return inverse;
  }();
  for (size_t half = 0; half < 2; ++half) {
    in.scale[half] = hn::Mul(hn::LoadU(DF(), scales + 4 * half), hn::LoadU(DF(), kInverse.data()));
  }
#elif PRONK_WIDE
  DealFour(in.x[0][0], in.x[1][0], in.x[2][0], in.x[3][0]);
  static constexpr auto kZeros = [] {
    std::array<uint8_t, 64> zeros{};
    for (size_t i = 0; i < 64; ++i)
      zeros[i] = static_cast<uint8_t>(Type::kZero * Type::kFactors[i / 4 % 4]);
    return zeros;
  }();
  in.offset = hn::Zero(DI32());
  for (size_t k = 0; k < 4; ++k) {
    in.offset = Dot(in.offset, hn::LoadU(DU8(), kZeros.data()), in.x[k][0]);
  }
  in.offset = hn::Neg(in.offset);
  // Piece p has runs 0..3 of half p / 2.
  alignas(64) static constexpr int32_t kIndex[16] = {0, 1, 2, 3, 0, 1, 2, 3,
                                                     4, 5, 6, 7, 4, 5, 6, 7};
  const VF eight = hn::ResizeBitCast(DF(), hn::LoadU(D8(), scales));
  static constexpr auto kInverse = [] {
    std::array<float, 16> inverse{};
    for (size_t k = 0; k < 16; ++k) inverse[k] = 1.0f / static_cast<float>(Type::kFactors[k % 4]);
    return inverse;
  }();
  in.scale = hn::Mul(hn::TableLookupLanes(eight, hn::SetTableIndices(DF(), kIndex)),
                     hn::LoadU(DF(), kInverse.data()));
#endif
  if constexpr (Type::kSums) {
    in.scales = LoadScales(x, i);
    for (size_t k = 0; k < kParts8; ++k) {
      in.sums.part[k] = hn::LoadU(D16(), x.sums + i / 16 + k * hn::MaxLanes(D16()));
    }
  }
  return in;
}

// Sum over the groups of number * (sum of the activations) * (scale of the activations), in any
// lanes, for zero points and minimums.
HWY_INLINE V8 DotSums(const Small16& numbers, const RunSums& in) {
  V8 sum = hn::Zero(D8());
  for (size_t k = 0; k < kParts8; ++k) {
    const auto pairs =
        hn::WidenMulPairwiseAdd(hn::RebindToSigned<D8>(), numbers.part[k], in.sums.part[k]);
    sum = hn::MulAdd(hn::ConvertTo(D8(), pairs), in.scales.part[k], sum);
  }
  return sum;
}

#if PRONK_WIDE
// The scales as floats, in the lanes of their groups.
HWY_INLINE VF SpreadRuns(VI8x16 scales) {
  alignas(16) static constexpr int8_t kGroup[16] = {0, 2,  4,  6,  1, 3,  5,  7,
                                                    8, 10, 12, 14, 9, 11, 13, 15};
  const auto groups = hn::TableLookupBytes(scales, hn::Load(DI8x16(), kGroup));
  return hn::ConvertTo(DF(), hn::PromoteTo(DI32(), groups));
}
#elif !HWY_ARCH_X86
// The dots of each 32 weights of a half, from those of each run and its two vectors, times the
// scales of the groups.
HWY_INLINE VI32 ScaledDots(const VI32 (&dots)[4][2], hn::Vec<D16> scales) {
  const DI32 d;
  VI32 groups[2];
  for (size_t i = 0; i < 2; ++i) {
    groups[i] = AddNeighbours(AddNeighbours(dots[2 * i][0], dots[2 * i][1]),
                              AddNeighbours(dots[2 * i + 1][0], dots[2 * i + 1][1]));
  }
  return AddNeighbours(hn::Mul(groups[0], hn::PromoteLowerTo(d, scales)),
                       hn::Mul(groups[1], hn::PromoteUpperTo(d, scales)));
}
#else
// The four products of each lane times the group's scale. Codes at most 127.
using VScale = VI16;
HWY_INLINE VI32 ScaledDot(VU8 codes, VI8 x, VScale scale) {
  return hn::WidenMulPairwiseAdd(DI32(), hn::SatWidenMulPairwiseAdd(DI16(), codes, x), scale);
}

// The scales of run k, vector v, in the lanes of their groups: numbers 8 * half + 2 * k + (0 or 1).
HWY_INLINE VScale ScalesOf(const Small16& scales, size_t k, size_t v) {
#if PRONK_PIECES == 2
  alignas(32) int8_t index[32];
  for (size_t i = 0; i < 32; ++i) {
    index[i] = static_cast<int8_t>(2 * (2 * k + i / 16) + i % 2);
  }
  const VI16 all = scales.part[0];
  const VI16 half =
      v == 0 ? hn::ConcatLowerLower(DI16(), all, all) : hn::ConcatUpperUpper(DI16(), all, all);
  return hn::TableLookupBytes(half, hn::BitCast(DI16(), hn::Load(DI8(), index)));
#else
  const int16_t scale = hn::ExtractLane(scales.part[v / 2], 2 * k + v % 2);
  return hn::Set(hn::DFromV<VScale>(), scale);
#endif
}

struct RunScales {
  VScale of[kRunVectors][4];
};
HWY_INLINE RunScales SpreadRuns(VI8x16 scales) {
  const Small16 wide = Widen(scales);
  RunScales spread;
  for (size_t v = 0; v < kRunVectors; ++v) {
    for (size_t k = 0; k < 4; ++k) spread.of[v][k] = ScalesOf(wide, k, v);
  }
  return spread;
}
#endif

// The numbers of a block: weight = d * scale * (code - zero) / factor - dmin * min.
struct RunFactors {
  VI8x16 scales, mins;
  VF d;
  V8 dmin;
};
// And the codes of run k, in codes[v][k]. (With vectors of 64 bytes Unpack deals them, and makes d
// that of each lane's group, with its scale.)
struct UnpackedRuns : RunFactors {
  VU8 codes[kRunVectors][4];
};
// The block before its codes are unpacked.
struct PackedRuns : RunFactors {
  const uint8_t* block;
};

// Whether scales and codes become one number in panels.
template <class Type>
constexpr bool kFold = [] {
  if constexpr (requires { Type::kProducts; }) return !PRONK_MADDUBS;
  return false;
}();

// A type adds kZero, kFactors,
//   static void Codes(const uint8_t* w, size_t v, VU8 (&codes)[4])    of vector v of the four runs
//   static RunFactors Factors(const uint8_t* w)
template <class Type, class BlockType, bool kMinimum>
struct RunType {
  using Block = BlockType;
  static constexpr bool kSums = kMinimum || !PRONK_WIDE;
  using Input = RunInput<kSums>;
  using Unpacked = UnpackedRuns;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadRunInput<Type>(x, i);
  }

  static HWY_INLINE Unpacked UnpackInOrder(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    static_cast<RunFactors&>(unpacked) = Type::Factors(w);
    for (size_t v = 0; v < kRunVectors; ++v) Type::Codes(w, v, unpacked.codes[v]);
    return unpacked;
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
#if PRONK_WIDE
    Unpacked unpacked;
    static_cast<RunFactors&>(unpacked) = Type::Factors(w);
    Type::DealtCodes(w, unpacked.codes[0]);
    unpacked.d = hn::Mul(unpacked.d, SpreadRuns(unpacked.scales));
    return unpacked;
#else
    return UnpackInOrder(w);
#endif
  }
#if PRONK_WIDE
  static HWY_INLINE void DealtCodes(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[4]) {
    Type::Codes(w, 0, codes);
    DealFour(codes[0], codes[1], codes[2], codes[3]);  // group 8 * (p / 2) + 2 * k + p % 2
  }
#endif

#if !PRONK_WIDE
  // One token's products take a vector of each run at a time, since a block's codes and scales do
  // not fit in 16 registers. Saves 10 to 16% of the time.
  static HWY_INLINE PackedRuns UnpackForOne(const uint8_t* HWY_RESTRICT w) {
    return {Type::Factors(w), w};
  }
#endif
#if !HWY_ARCH_X86
  static HWY_INLINE void Multiply(const PackedRuns& w, const Input& in, Sums& sums) {
    const auto unpack = [&](size_t v, VU8(&codes)[4]) HWY_ATTR { Type::Codes(w.block, v, codes); };
    MultiplyHalves(w, unpack, in, sums);
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    const auto copy = [&](size_t v, VU8(&codes)[4]) HWY_ATTR {
      for (size_t k = 0; k < 4; ++k) codes[k] = w.codes[v][k];
    };
    MultiplyHalves(w, copy, in, sums);
  }
  template <class GetCodes>
  static HWY_INLINE void MultiplyHalves(const RunFactors& w, GetCodes get_codes, const Input& in,
                                        Sums& sums) {
    const Small16 scales = Widen(w.scales);
    VF sum = hn::Zero(DF());
    for (size_t half = 0; half < 2; ++half) {
      VI32 dots[4][2];
      for (size_t i = 0; i < 2; ++i) {
        VU8 codes[4];
        get_codes(2 * half + i, codes);
        for (size_t k = 0; k < 4; ++k) {
          dots[k][i] = Dot(hn::Zero(DI32()), codes[k], in.x[k][2 * half + i]);
        }
      }
      const VI32 scaled = ScaledDots(dots, scales.part[half]);
      sum = hn::MulAdd(hn::ConvertTo(DF(), scaled), in.scale[half], sum);
    }
    AddRuns(w, sum, in, sums);
  }
#else
#if !PRONK_WIDE
  static HWY_INLINE void Multiply(const PackedRuns& w, const Input& in, Sums& sums) {
    const Small16 scales = Widen(w.scales);
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kRunVectors; ++v) {
      VU8 codes[4];
      Type::Codes(w.block, v, codes);
      for (size_t k = 0; k < 4; ++k) {
        const VI32 dots = ScaledDot(codes[k], in.x[k][v], ScalesOf(scales, k, v));
        sum = hn::MulAdd(hn::ConvertTo(DF(), dots), in.scale[k][v], sum);
      }
    }
    AddRuns(w, sum, in, sums);
  }
#endif

  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    const DF df;
#if PRONK_WIDE
    VI32 dots = in.offset;
    for (size_t k = 0; k < 4; ++k) dots = Dot(dots, w.codes[0][k], in.x[k][0]);
    AddRuns(w, hn::Mul(hn::ConvertTo(df, dots), in.scale), in, sums);
#else
    const RunScales scales = SpreadRuns(w.scales);
    VF sum = hn::Zero(df);
    for (size_t v = 0; v < kRunVectors; ++v) {
      for (size_t k = 0; k < 4; ++k) {
        const VI32 dots = ScaledDot(w.codes[v][k], in.x[k][v], scales.of[v][k]);
        sum = hn::MulAdd(hn::ConvertTo(df, dots), in.scale[k][v], sum);
      }
    }
    AddRuns(w, sum, in, sums);
#endif
  }
#endif

  // Adds the sum times d, and the terms of zero points and minimums.
  static HWY_INLINE void AddRuns(const RunFactors& w, VF sum, const Input& in, Sums& sums) {
    sums.a = hn::MulAdd(sum, w.d, sums.a);
#if !PRONK_WIDE
    if constexpr (Type::kZero != 0) {
      const V8 factor = hn::Mul(hn::ResizeBitCast(D8(), w.d), hn::Set(D8(), -float{Type::kZero}));
      sums.mins = hn::MulAdd(DotSums(Widen(w.scales), in), factor, sums.mins);
    }
#endif
    if constexpr (kMinimum) {
      sums.mins = hn::NegMulAdd(DotSums(Widen(w.mins), in), w.dmin, sums.mins);
    }
  }

  // For panels. Codes of two and three bits times their scales are integers of a byte, by tables of
  // 16 for each scale + kProductZero, Type::kProducts, and one scale is left for all. Small codes
  // are better only where their products are added up as i16.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const Unpacked unpacked = UnpackInOrder(w);
    const float d = hn::GetLane(unpacked.d);
    alignas(16) int8_t scales[16], mins[16];
    hn::Store(unpacked.scales, DI8x16(), scales);
    for (size_t v = 0; v < kRunVectors; ++v) {
      for (size_t k = 0; k < 4; ++k) {
        VU8 codes = unpacked.codes[v][k];
        if constexpr (Type::kFactors[1] == 4) codes = k % 2 == 1 ? ShiftBits<2>(codes) : codes;
        if constexpr (!kFold<Type>) codes = hn::Sub(codes, hn::Set(DU8(), uint8_t{Type::kZero}));
        StorePieces(hn::BitCast(DI8(), codes), [&](size_t p) HWY_ATTR {
          const size_t piece = v * kPieces + p;  // of the run's four
          return out.weights + 128 * (piece / 2) + 32 * k + 16 * (piece % 2);
        });
      }
    }
    if constexpr (kFold<Type>) {
      for (size_t g = 0; g < 16; ++g) {
        const auto& table = Type::kProducts[static_cast<size_t>(scales[g] + Type::kProductZero)];
        const auto codes = hn::LoadU(DI8x16(), out.weights + 16 * g);
        const auto products = hn::TableLookupBytes(hn::LoadU(DI8x16(), table.data()), codes);
        hn::StoreU(products, DI8x16(), out.weights + 16 * g);
      }
      std::fill_n(out.scales, 8, Type::kProductSign * d);
    } else {
      StoreScaled(scales, 16, d, out.scales);
    }
    if constexpr (kMinimum) {
      hn::Store(unpacked.mins, DI8x16(), mins);
      StoreScaled(mins, 16, -hn::GetLane(unpacked.dmin), out.mins);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_SHARED_GROUPS16_INL_H_
