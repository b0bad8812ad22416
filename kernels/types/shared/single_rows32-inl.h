// Products of types with scales (and minimums) for groups of 32 weights, a row at a time, in
// vectors of 16 or 32 bytes: UnsignedRows32 and SignedRows32. Empty for vectors of 64 bytes, which
// hold row pairs (row_pairs32-inl.h). Included once per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_SINGLE_ROWS32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_SINGLE_ROWS32_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_SINGLE_ROWS32_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_SINGLE_ROWS32_INL_H_
#endif

#include "kernels/types/shared/step32-inl.h"

#if !PRONK_VECTOR64
HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The vectors of 256 weights or activations are transposed: a lane has the same group in every
// vector, so that its dots are one sum.
constexpr bool kTransposes = kLanes128 > 1;
template <class V>
HWY_INLINE void Transpose([[maybe_unused]] V (&vectors)[kDotVectors][2]) {
#if PRONK_LANES128 == 2
  for (size_t half = 0; half < 2; ++half) {
    Transpose4x4(vectors[0][half], vectors[1][half], vectors[2][half], vectors[3][half]);
  }
#endif
}

// sum + dots * w * x. dots is one vector (if vectors are transposed) or kDotVectors, with at most
// kMaxDot in each lane; kLarge: at most twice that; kAny: any number.
constexpr int kMaxDot = 16383;
template <bool kLarge, bool kAny = false, size_t n>
HWY_INLINE VF AddScaledDots(VF sum, const VI32 (&dots)[n], const Floats8& w, const Floats8& x) {
  for (size_t k = 0; k < std::size(w.vectors); ++k) {
    VI32 added = dots[0];
    if constexpr (n > 1) {
      const VI32* const four = dots + 4 * k;
      added = AddNeighbours<kLarge>(AddNeighbours<kAny>(four[0], four[1]),
                                    AddNeighbours<kAny>(four[2], four[3]));
    }
    sum = hn::MulAdd(ToFloats(added), hn::Mul(w.vectors[k], x.vectors[k]), sum);
  }
  return sum;
}

// The start value of a step's dots, for codes that are kSubtractedZero more than the weights:
// -kSubtractedZero * (sum of the lane), and a part of kFloatStart.
template <int kSubtractedZero>
struct DotStarts {
  VI32 starts[kDotVectors];  // only the first, if vectors are transposed

  HWY_INLINE void SetStart(const VI8 (&x)[kDotVectors][2], size_t n) {
    const VU8 zero = hn::Set(DU8(), uint8_t{kSubtractedZero});
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VI32 sum = v < n ? hn::Zero(DI32()) : starts[v % n];
      starts[v % n] = Dot(Dot(sum, zero, x[v][0]), zero, x[v][1]);
    }
    const VI32 start = hn::Set(DI32(), kFloatStart / 4);
    for (size_t v = 0; v < n; ++v) starts[v] = hn::Sub(start, starts[v]);
  }
  HWY_INLINE VI32 Start(size_t v) const { return LoadStart(starts[v]); }
};
template <>
struct DotStarts<0> {
  HWY_INLINE void SetStart(const VI8 (&)[kDotVectors][2], size_t) {}
  HWY_INLINE VI32 Start(size_t) const { return hn::Set(DI32(), kFloatStart / 4); }
};

// The activations of a step.
template <int kSubtractedZero, bool kHasSums>
struct Input32 : DotStarts<kSubtractedZero> {
  VI8 x[kDotVectors][2];  // the first and the last 16 of each group
  Floats8 scales;         // the activations' scales
  [[no_unique_address]] MemberIf<kHasSums, Floats8> sums;  // scale * (sum of the 32)
};

template <int kSubtractedZero, bool kHasSums, bool kTransposed>
HWY_INLINE Input32<kSubtractedZero, kHasSums> LoadInput32(const ActivationRow& x, size_t i) {
  Input32<kSubtractedZero, kHasSums> in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    LoadLanes128Pair<32 * kGroupStep>(x.q + i + 32 * v, in.x[v][0], in.x[v][1]);
  }
  if constexpr (kTransposed) Transpose(in.x);
  in.SetStart(in.x, kTransposed ? 1 : kDotVectors);
  in.scales = LoadScales(x, i);
  if constexpr (kHasSums) in.sums = LoadScaledSums(x, i);
  return in;
}

// A step that Multiply unpacks for one token, two vectors at a time: 16 registers do not hold all
// codes. (Arm and AVX-512 with short vectors have 32, and do the same.)
struct DeferredStep {
  const uint8_t* step;
};

// Shared by unsigned and signed codes. UnsignedRows32 and SignedRows32 add, for vector v of the
// step and for the step's dots,
//   static VI32 DotVector(VI32 start, const VU8 (&codes)[2], const Input& in, size_t v)
//   static void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in, RowSums& sums)
template <class Type, class BlockType>
struct SingleRow32 : StepBase32<Type, BlockType> {
  static HWY_INLINE Unpacked32 Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked32 unpacked = Type::UnpackInOrder(w);
    Transpose(unpacked.codes);
    return unpacked;
  }
  static HWY_INLINE DeferredStep DeferUnpack(const uint8_t* HWY_RESTRICT w) { return {w}; }
  // The dots of a single token are added up lane by lane, which takes less than transposing the
  // codes; the numbers are the same.
  template <class Input>
  static HWY_INLINE void Multiply(const DeferredStep& w, const Input& in, RowSums& sums) {
    VI32 dots[kDotVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 codes[2][2];
      Type::Codes(w.step, v, codes);
      for (size_t k = 0; k < 2; ++k) {
        dots[v + k] = Type::DotVector(in.Start(v + k), codes[k], in, v + k);
      }
    }
    Type::AddDots(dots, Type::Factors(w.step), in, sums);
  }
};

// Products of unsigned codes, a row at a time.
template <class Type, class BlockType, int kZeroPoint, int kMaxCode, bool kMinimum, bool kEvenOdd>
struct UnsignedRows32 : SingleRow32<Type, BlockType> {
  static_assert(0 <= kZeroPoint && kZeroPoint <= kMaxCode, "the zero point is one of the codes");
  static_assert(
      8 * 127 * std::max(kZeroPoint, kMaxCode - kZeroPoint) <= 16383,
      "dots of a lane are sums of 16 bits: codes have at most five bits (or SignedType32)");
  using PanelForm = Int8Form<-kZeroPoint, kMaxCode - kZeroPoint, 1, kMinimum ? 1 : 0>;
  // Without a minimum, kZeroPoint is subtracted if codes are too large for sums of 16 bits, and
  // with VNNI, where dots have a start value anyway (3 to 7% of Q4_0 in the cache). Arm loads a
  // start value as fast as it makes zeros.
  static constexpr bool kLarge = 8 * 127 * kMaxCode > kMaxDot;
  static constexpr int kSubtractedZero =
      HWY_ARCH_ARM_A64 || (!kMinimum && (kLarge || PRONK_VNNI)) ? kZeroPoint : 0;
  // Dots of a lane may be twice kMaxDot.
  static constexpr bool kTwice = kLarge && kSubtractedZero == 0;
  static_assert(kSubtractedZero != 0 || 8 * 127 * kMaxCode <= 2 * kMaxDot + 1);
  static constexpr bool kAddsOffsets = kMinimum || kSubtractedZero != kZeroPoint;
  using Input = Input32<kSubtractedZero, kAddsOffsets>;
  using Unpacked = Unpacked32;
  using SingleRow32<Type, BlockType>::Multiply;

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    return LoadInput32<kSubtractedZero, kAddsOffsets, kTransposes>(x, i);
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    if constexpr (kMinimum) w.mins = KeepFirst(w.mins, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    constexpr size_t n = kTransposes ? 1 : kDotVectors;
    VI32 dots[n];
#if PRONK_MADDUBS && PRONK_LANES128 == 2
    // Products are summed in i16 as long as they fit.
    constexpr size_t kSumsInI16 = 8 * 2 * 127 * kMaxCode <= 32767 ? 4 : 2;
    dots[0] = in.Start(0);
    for (size_t first = 0; first < kDotVectors; first += kSumsInI16) {
      VI16 pairs = hn::Zero(DI16());
      for (size_t v = first; v < first + kSumsInI16; ++v) {
        for (size_t half = 0; half < 2; ++half) {
          pairs =
              hn::Add(pairs, hn::SatWidenMulPairwiseAdd(DI16(), w.codes[v][half], in.x[v][half]));
        }
      }
      dots[0] = hn::Add(dots[0], hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(DI16(), 1)));
    }
#else
    for (size_t v = 0; v < kDotVectors; ++v) {
      dots[v % n] = DotVector(v < n ? in.Start(v) : dots[v % n], w.codes[v], in, v);
    }
#endif
    AddDots(dots, w, in, sums);
  }
  static HWY_INLINE Input LoadInputForOne(const ActivationRow& x, size_t i) {
    return LoadInput32<kSubtractedZero, kAddsOffsets, false>(x, i);
  }
  static HWY_INLINE VI32 DotVector(VI32 start, const VU8 (&codes)[2], const Input& in, size_t v) {
    return Dot2(start, codes[0], in.x[v][0], codes[1], in.x[v][1]);
  }
  template <size_t n>
  static HWY_INLINE void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in,
                                 RowSums& sums) {
    sums.products = AddScaledDots<kTwice>(sums.products, dots, w.scales, in.scales);
    if constexpr (kMinimum && kSubtractedZero == 0) {
      sums.offsets = MulAdd(w.mins, in.sums, sums.offsets);
    } else if constexpr (kMinimum) {
      sums.offsets = MulAdd(MulAdd(w.scales, kSubtractedZero, w.mins), in.sums, sums.offsets);
    } else if constexpr (kSubtractedZero != kZeroPoint) {
      sums.offsets = MulAdd(Mul(w.scales, kSubtractedZero - kZeroPoint), in.sums, sums.offsets);
    }
  }

  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    Type::template StoreInOrder<kZeroPoint, kMinimum, kEvenOdd>(w, out);
  }
};

// The magnitudes of a step's activations, for SignedRows32.
struct Magnitudes32 {
  VU8 of[kDotVectors][2];
};
template <bool kMagnitudes>
struct InputSigned32 : Input32<kSignedOffset, false> {
  [[no_unique_address]] MemberIf<kMagnitudes, Magnitudes32> magnitudes;
};

// Products of signed bytes. kNo128: no weight is -128, so that without VNNI weights can take the
// activations' signs, whose magnitudes are stored (one token of IQ4_XS 6%).
template <class Type, class BlockType, bool kNo128>
struct SignedRows32 : SingleRow32<Type, BlockType> {
  static constexpr bool kMagnitudes = PRONK_MADDUBS && kNo128;
  using Input = InputSigned32<kMagnitudes>;
  using Unpacked = Unpacked32;
  using SingleRow32<Type, BlockType>::Multiply;

  template <bool kTransposed>
  static HWY_INLINE Input LoadSignedInput(const ActivationRow& x, size_t i) {
    Input in = {LoadInput32<kSignedOffset, false, kTransposed>(x, i), {}};
    if constexpr (kMagnitudes) {
      for (size_t v = 0; v < kDotVectors; ++v) {
        for (size_t half = 0; half < 2; ++half)
          in.magnitudes.of[v][half] = hn::BitCast(DU8(), hn::Abs(in.x[v][half]));
      }
    }
    return in;
  }
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    return LoadSignedInput<kTransposes>(x, i);
  }
  static HWY_INLINE Input LoadInputForOne(const ActivationRow& x, size_t i) {
    return LoadSignedInput<false>(x, i);
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    constexpr size_t n = kTransposes ? 1 : kDotVectors;
    VI32 dots[n];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kDotVectors; ++v) {
      dots[v % n] = DotVector(v < n ? in.Start(v) : dots[v % n], w.codes[v], in, v);
    }
    AddDots(dots, w, in, sums);
  }
  template <size_t n>
  static HWY_INLINE void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in,
                                 RowSums& sums) {
    sums.products = AddScaledDots<true, true>(sums.products, dots, w.scales, in.scales);
  }
  static HWY_INLINE VI32 DotVector(VI32 dot, const VU8 (&codes)[2], const Input& in, size_t v) {
    for (size_t half = 0; half < 2; ++half) {
#if PRONK_VNNI
      dot = Dot(dot, codes[half], in.x[v][half]);
#else
      const VI8 weights = hn::BitCast(DI8(), codes[half]);
      if constexpr (kMagnitudes) {
        const VI8 with_sign = hn::IfNegativeThenNegOrUndefIfZero(in.x[v][half], weights);
        dot = Dot(dot, in.magnitudes.of[v][half], with_sign);
      } else {
        dot = DotSigned(dot, weights, in.x[v][half]);
      }
#endif
    }
    return dot;
  }
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    Type::template StoreInOrder<kSignedOffset, false, false>(w, out);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // PRONK_KERNELS_TYPES_SHARED_SINGLE_ROWS32_INL_H_
