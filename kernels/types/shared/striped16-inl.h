// Scales for the dot products of sixteen groups of 16 weights.
//
// Types with a scale per 16 have blocks of 256, two halves of 128 with four STRIPES of 32 weights
// each: stripe k is bits 2k and 2k + 1 of 32 bytes. So codes come out as vectors of stripe k: of
// both halves (kLanes128 4), of its first or its other 16 bytes in both halves (2), or in one (1).
//
// x86 transposes codes and activations so that a lane has a group in four vectors, one of each
// stripe, whose dots are one sum. The scales are small integers:
// - Vectors of 64 bytes: here they are floats, with d.
// - Shorter vectors: factors of the integer sums; one sum for each 32 weights becomes a float.
//   Without VNNI the dots add up pairs of products in i16, and pairs of sums times scales in i32.
// - Arm adds dots up to a lane for each group, where the scales need not be copied to other lanes.
// Included once per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_STRIPED16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_STRIPED16_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_STRIPED16_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_STRIPED16_INL_H_
#endif

#include <algorithm>
#include <type_traits>

#include "kernels/types/shared/scaled_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

constexpr size_t kStripeVectors = StripeVectors(2);

// Vector v of a stripe; kStride is the distance of the block's halves in bytes.
template <size_t kStride, typename T>
HWY_INLINE hn::Vec<hn::Rebind<T, DU8>> LoadStripe(const T* HWY_RESTRICT p, size_t v) {
#if PRONK_LANES128 == 2
  return LoadLanes128<kStride>(p + 16 * v);
#else
  return LoadStripes<kStride>(p, v);
#endif
}

// Sixteen small integers, a number for each group.
using DI8x16 = hn::FixedTag<int8_t, 16>;
using VI8x16 = hn::Vec<DI8x16>;
using D16 = hn::Repartition<int16_t, DF8>;
struct Small16 {
  hn::Vec<D16> vectors[kVectors8];
};

HWY_INLINE Small16 Widen(VI8x16 bytes) {
  const D16 d;
#if PRONK_LANES128 == 1
  return {{hn::PromoteLowerTo(d, bytes), hn::PromoteUpperTo(d, bytes)}};
#else
  return {{hn::PromoteTo(d, bytes)}};
#endif
}

// Factors of the weights' minimums.
struct StripedSums {
  Floats8 scales;  // the activations' scales, in order
  Small16 sums;    // the sums of each 16 q
};
struct NoSums {};

// The sums of dots before they are multiplied with scales.
using VLane = std::conditional_t<PRONK_MADDUBS, VI16, VI32>;
#if HWY_ARCH_X86
template <size_t n>
HWY_INLINE VLane AddDots(VLane sum, const VU8 (&codes)[4], const VI8 (&x)[4][n], size_t v) {
  for (size_t k = 0; k < 4; ++k) {
#if PRONK_MADDUBS
    // May wrap around; the sum with -zero * (sum of the lane) fits: 8 * 32 * 127.
    sum = hn::Add(sum, hn::SatWidenMulPairwiseAdd(DI16(), codes[k], x[k][v]));
#else
    sum = DotBytes(sum, codes[k], x[k][v]);
#endif
  }
  return sum;
}
#endif

// The activations of 256 weights in the order of the stripes. The struct is small, so that the
// activations of many tokens fit in the first-level cache (NOTEBOOK.md).
template <bool kHasSums>
struct StripedInput : std::conditional_t<kHasSums, StripedSums, NoSums> {
  VI8 x[4][kStripeVectors];
#if HWY_ARCH_X86
  VLane start[kStripeVectors];  // -zero * factor * (sum of the lane)
#else
  VI32 start[4][kStripeVectors];
#endif
  VF scale[kVectors8];  // the activations' scales / factor, in the lanes of their groups
};

// A type may leave the codes of stripe k at their bit position, which multiplies them by
// Type::kFactors[k], a power of two. The scales are divided by it, so nothing is rounded.
template <class Type>
HWY_INLINE typename Type::Input LoadStripedInput(const ActivationRow& x, size_t i) {
  typename Type::Input in;
  const float* const scales = x.scales + i / 32;
  for (size_t k = 0; k < 4; ++k) {
    for (size_t v = 0; v < kStripeVectors; ++v) in.x[k][v] = LoadStripe<128>(x.q + i + 32 * k, v);
  }
  static constexpr auto kInverse = [] {
    std::array<float, kFloatLanes> inverse{};
    for (size_t k = 0; k < kFloatLanes; ++k) {
      inverse[k] = 1.0f / static_cast<float>(Type::kFactors[k % 4]);
    }
    return inverse;
  }();
  const VF inverse = hn::LoadU(DF(), kInverse.data());
#if HWY_ARCH_X86
  static constexpr auto kZeros = [] {
    std::array<uint8_t, kVectorBytes> zeros{};
    for (size_t k = 0; k < kVectorBytes; ++k)
      zeros[k] = static_cast<uint8_t>(Type::kZeroPoint * Type::kFactors[k / 4 % 4]);
    return zeros;
  }();
  const VU8 zero = hn::LoadU(DU8(), kZeros.data()), zeros[4] = {zero, zero, zero, zero};
  for (size_t v = 0; v < kStripeVectors; ++v) {
    Transpose4x4(in.x[0][v], in.x[1][v], in.x[2][v], in.x[3][v]);
    in.start[v] = hn::Neg(AddDots(hn::Zero(hn::DFromV<VLane>()), zeros, in.x, v));
  }
#else
  for (size_t k = 0; k < 4; ++k) {
    const VU8 zero = hn::Set(DU8(), static_cast<uint8_t>(Type::kZeroPoint * Type::kFactors[k]));
    for (size_t v = 0; v < kStripeVectors; ++v) {
      in.start[k][v] = hn::Neg(Dot(hn::Zero(DI32()), zero, in.x[k][v]));
    }
  }
#endif
#if PRONK_VECTOR64
  // 128-bit lane p has stripes 0..3 of half p / 2.
  alignas(64) static constexpr int32_t kIndex[16] = {0, 1, 2, 3, 0, 1, 2, 3,
                                                     4, 5, 6, 7, 4, 5, 6, 7};
  const VF eight = hn::ResizeBitCast(DF(), hn::LoadU(DF8(), scales));
  in.scale[0] = hn::Mul(hn::TableLookupLanes(eight, hn::SetTableIndices(DF(), kIndex)), inverse);
#else
  for (size_t part = 0; part < kVectors8; ++part) {
    in.scale[part] = hn::Mul(hn::LoadU(DF(), scales + part * kFloatLanes), inverse);
  }
#endif
  if constexpr (Type::kAddsOffsets) {
    in.scales = LoadScales(x, i);
    for (size_t k = 0; k < kVectors8; ++k) {
      in.sums.vectors[k] = hn::LoadU(D16(), x.sums + i / 16 + k * hn::MaxLanes(D16()));
    }
  }
  return in;
}

// Sum over the groups of number * (sum of the activations) * (scale of the activations), in any
// lanes, for minimums.
HWY_INLINE VF8 DotSums(const Small16& numbers, const StripedSums& in) {
  VF8 sum = hn::Zero(DF8());
  for (size_t k = 0; k < kVectors8; ++k) {
    const auto pairs =
        hn::WidenMulPairwiseAdd(hn::RebindToSigned<DF8>(), numbers.vectors[k], in.sums.vectors[k]);
    sum = hn::MulAdd(hn::ConvertTo(DF8(), pairs), in.scales.vectors[k], sum);
  }
  return sum;
}

#if PRONK_VECTOR64
// The scales as floats, in the lanes of their groups.
HWY_INLINE VF ScalesInLanes(VI8x16 scales) {
  alignas(16) static constexpr int8_t kGroup[16] = {0, 2,  4,  6,  1, 3,  5,  7,
                                                    8, 10, 12, 14, 9, 11, 13, 15};
  const auto groups = hn::TableLookupBytes(scales, hn::Load(DI8x16(), kGroup));
  return hn::ConvertTo(DF(), hn::PromoteTo(DI32(), groups));
}
#elif !HWY_ARCH_X86
// The dots of each 32 weights of a half, from the dots of each stripe and its two vectors, times
// the scales of the groups.
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
// Transposed codes from bytes with the codes of stripes 0 and 1, and of 2 and 3, at the bits of two
// masks.
template <uint8_t kEven, uint8_t kOdd>
HWY_INLINE void TransposePairs(VU8 low, VU8 high, VU8 (&codes)[4]) {
  const hn::Repartition<uint32_t, DU8> d;
  constexpr uint32_t kEvens = kEven * 0x01010101u, kOdds = kOdd * 0x01010101u;
  const VU8 masks = hn::BitCast(DU8(), hn::Dup128VecFromValues(d, kEvens, kOdds, kEvens, kOdds));
  const VF a = hn::BitCast(DF(), low), b = hn::BitCast(DF(), high);
  // Lanes i, i of a and i, i of b.
#if PRONK_LANES128 == 2
#define PRONK_PICK(i) \
  hn::And(hn::BitCast(DU8(), VF{_mm256_shuffle_ps(a.raw, b.raw, 85 * i)}), masks)
#else
#define PRONK_PICK(i) hn::And(hn::BitCast(DU8(), VF{_mm_shuffle_ps(a.raw, b.raw, 85 * i)}), masks)
#endif
  codes[0] = PRONK_PICK(0);
  codes[1] = PRONK_PICK(1);
  codes[2] = PRONK_PICK(2);
  codes[3] = PRONK_PICK(3);
#undef PRONK_PICK
}

// `pairs` has the scales of the first and the other 16 weights of each 32. Returns the first or the
// second of each pair, as lanes of i32 or pairs of lanes of i16.
HWY_INLINE VLane ScalesOf(hn::Vec<D16> pairs, size_t second) {
#if PRONK_MADDUBS
  alignas(32) int8_t index[kVectorBytes];
  for (size_t i = 0; i < kVectorBytes; ++i) {
    index[i] = static_cast<int8_t>(i % 16 / 4 * 4 + 2 * second + i % 2);
  }
  return hn::TableLookupBytes(pairs, hn::BitCast(D16(), hn::Load(DI8(), index)));
#else
  const VI32 both = hn::BitCast(DI32(), pairs);
  return hn::ShiftRight<16>(second != 0 ? both : hn::ShiftLeft<16>(both));
#endif
}
#endif

// The factors of a block: weight = d * scale * (code - zero) / factor - dmin * min.
struct StripedFactors {
  VI8x16 scales, mins;
  VF d;
  VF8 dmin;
};
// StripedFactors, with the codes of stripe k in codes[v][k], or transposed. (With vectors of 64
// bytes, d is already multiplied by the scale of each lane's group.)
struct UnpackedStripes : StripedFactors {
  VU8 codes[kStripeVectors][4];
};
// The block before its codes are unpacked.
struct DeferredStripes : StripedFactors {
  const uint8_t* block;
};

// True if scales and codes become one number in panels.
template <class Type>
constexpr bool kScalesInCodes = [] {
  if constexpr (requires { Type::kProducts; }) return !PRONK_MADDUBS;
  return false;
}();

// A type adds kZeroPoint, kFactors,
//   static void Codes(const uint8_t* w, size_t v, VU8 (&codes)[4])    of vector v of the four
//   stripes static StripedFactors Factors(const uint8_t* w)
template <class Type, class BlockType, bool kMinimum>
struct StripedType16 : Definition<Type, BlockType, 16> {
  using Block = BlockType;
  static constexpr bool kAddsOffsets = kMinimum;
  using Input = StripedInput<kAddsOffsets>;
  using Unpacked = UnpackedStripes;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    return LoadStripedInput<Type>(x, i);
  }

  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    static_cast<StripedFactors&>(unpacked) = Type::Factors(w);
    for (size_t v = 0; v < kStripeVectors; ++v) Type::TransposedCodes(w, v, unpacked.codes[v]);
#if PRONK_VECTOR64
    unpacked.d = hn::Mul(unpacked.d, ScalesInLanes(unpacked.scales));
#endif
    return unpacked;
  }
  // Where codes are transposed, group 8 * half + 2 * k + (0 or 1) is in lane k of a 128-bit
  // lane.
  static HWY_INLINE void TransposedCodes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    Type::Codes(w, v, codes);
#if HWY_ARCH_X86
    Transpose4x4(codes[0], codes[1], codes[2], codes[3]);
#endif
  }

#if PRONK_VECTOR64
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    const VI32 dots = AddDots(in.start[0], w.codes[0], in.x, 0);
    AddStripes(w, hn::Mul(hn::ConvertTo(DF(), dots), in.scale[0]), in, sums);
  }
#else
  // One token's products take a vector of each stripe at a time, since a block's codes and scales
  // do not fit in 16 registers. That saves 10 to 16% of the time.
  static HWY_INLINE DeferredStripes DeferUnpack(const uint8_t* HWY_RESTRICT w) {
    return {Type::Factors(w), w};
  }
  static HWY_INLINE void Multiply(const DeferredStripes& w, const Input& in, RowSums& sums) {
    const auto unpack = [&](size_t v, VU8(&codes)[4])
                            HWY_ATTR { Type::TransposedCodes(w.block, v, codes); };
    MultiplyParts(w, unpack, in, sums);
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    const auto copy = [&](size_t v, VU8(&codes)[4]) HWY_ATTR {
      for (size_t k = 0; k < 4; ++k) codes[k] = w.codes[v][k];
    };
    MultiplyParts(w, copy, in, sums);
  }
  // The block's halves, or both at once.
  template <class GetCodes>
  static HWY_INLINE void MultiplyParts(const StripedFactors& w, GetCodes get_codes, const Input& in,
                                       RowSums& sums) {
    const Small16 scales = Widen(w.scales);
    VF sum = hn::Zero(DF());
    for (size_t part = 0; part < kVectors8; ++part) {
#if HWY_ARCH_X86
      VI32 dots[2];
      for (size_t i = 0; i < 2; ++i) {
        const size_t v = 2 * part + i;
        VU8 codes[4];
        get_codes(v, codes);
        const VLane zero = hn::Zero(hn::DFromV<VLane>());
        const VLane of_lane = AddDots(Type::kZeroPoint == 0 ? zero : in.start[v], codes, in.x, v);
        const VLane scale = ScalesOf(scales.vectors[part], i);
#if PRONK_MADDUBS
        dots[i] = hn::WidenMulPairwiseAdd(DI32(), of_lane, scale);
#else
        dots[i] = hn::Mul(of_lane, scale);
#endif
      }
      const VI32 scaled = hn::Add(dots[0], dots[1]);
#else
      VI32 dots[4][2];
      for (size_t i = 0; i < 2; ++i) {
        VU8 codes[4];
        get_codes(2 * part + i, codes);
        for (size_t k = 0; k < 4; ++k) {
          const size_t v = 2 * part + i;
          dots[k][i] = Dot(LoadStart(in.start[k][v]), codes[k], in.x[k][v]);
        }
      }
      const VI32 scaled = ScaledDots(dots, scales.vectors[part]);
#endif
      sum = hn::MulAdd(hn::ConvertTo(DF(), scaled), in.scale[part], sum);
    }
    AddStripes(w, sum, in, sums);
  }
#endif

  // Adds the sum times d, and the terms of minimums.
  static HWY_INLINE void AddStripes(const StripedFactors& w, VF sum, const Input& in,
                                    RowSums& sums) {
    sums.products = hn::MulAdd(sum, w.d, sums.products);
    if constexpr (kMinimum) {
      sums.offsets = hn::NegMulAdd(DotSums(Widen(w.mins), in), w.dmin, sums.offsets);
    }
  }

  // Unpacks for panels. Codes of two and three bits times their scales fit in a byte:
  // Type::kProducts has a table of 16 products for each scale + kProductZero, and one scale is left
  // for the block. Keeping codes small is better only where their products are added up as i16.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const StripedFactors factors = Type::Factors(w);
    const float d = hn::GetLane(factors.d);
    alignas(16) int8_t scales[16], mins[16];
    hn::Store(factors.scales, DI8x16(), scales);
    for (size_t v = 0; v < kStripeVectors; ++v) {
      VU8 of_stripe[4];
      Type::Codes(w, v, of_stripe);
      for (size_t k = 0; k < 4; ++k) {
        VU8 codes = of_stripe[k];
        if constexpr (Type::kFactors[1] == 4) codes = k % 2 == 1 ? ShiftBits<2>(codes) : codes;
        if constexpr (!kScalesInCodes<Type>)
          codes = hn::Sub(codes, hn::Set(DU8(), uint8_t{Type::kZeroPoint}));
        StoreLanes128(hn::BitCast(DI8(), codes), [&](size_t p) HWY_ATTR {
          const size_t i = kLanes128 == 2 ? 2 * p + v : v * kLanes128 + p;  // 16 of the stripe's 64
          return out.weights + 128 * (i / 2) + 32 * k + 16 * (i % 2);
        });
      }
    }
    if constexpr (kScalesInCodes<Type>) {
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
      hn::Store(factors.mins, DI8x16(), mins);
      StoreScaled(mins, 16, -hn::GetLane(factors.dmin), out.mins);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_STRIPED16_INL_H_
