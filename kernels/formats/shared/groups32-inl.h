// Common code of formats with scales (and minimums) for groups of 32. Included once per instruction
// set.
#if defined(PRONK_KERNELS_FORMATS_SHARED_GROUPS32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_SHARED_GROUPS32_INL_H_
#undef PRONK_KERNELS_FORMATS_SHARED_GROUPS32_INL_H_
#else
#define PRONK_KERNELS_FORMATS_SHARED_GROUPS32_INL_H_
#endif

#include "kernels/formats/shared/scaled_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The group of piece p of vector v.
template <bool kEvenOdd>
constexpr size_t GroupOf(size_t v, size_t p) {
  return kEvenOdd && PRONK_WIDE ? v + 2 * p : FirstGroup(v) + p * kGroupStep;
}

// Codes minus `zero` in the order of the weights.
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

// The start value of a step's dots, for codes that are kCenter more than the weights: -kCenter *
// (sum of the lane).
template <int kCenter>
struct Offsets {
  VI32 offset[PRONK_WIDE ? 1 : kDotVectors];  // of dealt vectors only the first

  HWY_INLINE void SetStart(const VI8 (&x)[kDotVectors][2], size_t n) {
    const VU8 center = hn::Set(DU8(), uint8_t{kCenter});
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VI32 sum = v < n ? hn::Zero(DI32()) : offset[v % n];
      offset[v % n] = Dot(Dot(sum, center, x[v][0]), center, x[v][1]);
    }
    for (size_t v = 0; v < n; ++v) offset[v] = hn::Neg(offset[v]);
  }
  HWY_INLINE VI32 Start(size_t v) const { return offset[v]; }
};
template <>
struct Offsets<0> {
  HWY_INLINE void SetStart(const VI8 (&)[kDotVectors][2], size_t) {}
  HWY_INLINE VI32 Start(size_t) const { return hn::Zero(DI32()); }
};

// The activations of a step.
struct Sums32 {
  Floats8 sums;  // scale * (sum of the 32)
};
struct NoSums32 {};
template <bool kEvenOdd, int kCenter, bool kSums>
struct Input32 : Offsets<kCenter>, std::conditional_t<kSums, Sums32, NoSums32> {
  VI8 x[kDotVectors][2];  // the first 16 of each group and the other 16
  GroupScales scales;     // of the activations
};

template <bool kEvenOdd, int kCenter, bool kSums, bool kDealt>
HWY_INLINE Input32<kEvenOdd, kCenter, kSums> LoadInput32(const ActivationRow& x, size_t i) {
  constexpr size_t kStride = 32 * (GroupOf<kEvenOdd>(0, 1) - GroupOf<kEvenOdd>(0, 0));
  Input32<kEvenOdd, kCenter, kSums> in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    LoadPiecePairs<kStride>(x.q + i + 32 * GroupOf<kEvenOdd>(v, 0), in.x[v][0], in.x[v][1]);
  }
  if constexpr (kDealt) Deal(in.x);
  in.SetStart(in.x, kDealt ? 1 : kDotVectors);
  in.scales = SpreadScales<kEvenOdd>(LoadScales(x, i));
  if constexpr (kSums) in.sums = LoadScaledSums(x, i);
  return in;
}

// Numbers for each group.
struct Factors32 {
  Floats8 scales, mins;
};
// And the codes of the first 16 weights of each group and of the other 16.
struct Unpacked32 : Factors32 {
  VU8 codes[kDotVectors][2];
};
// The step before it is unpacked.
struct Packed32 {
  const uint8_t* step;
};

// Steps of 256 weights. A type adds
//   static void Codes(const uint8_t* w, size_t v, VU8 (*codes)[2])    of vectors v and v + 1
// and, unless its blocks of 32 have an f16 d (and m), as below,
//   static Factors32 Factors(const uint8_t* w)
template <class Type, class BlockType>
struct Steps32 {
  using Block = BlockType;
  using Unpacked = Unpacked32;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);

  static HWY_INLINE Unpacked UnpackInOrder(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) Type::Codes(w, v, unpacked.codes + v);
    // One by one: GCC copies both as one vector, which waits until two stores are in the cache.
    const Factors32 factors = Type::Factors(w);
    unpacked.scales = factors.scales;
    unpacked.mins = factors.mins;
    return unpacked;
  }
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    Factors32 factors{LoadEightHalfs<sizeof(Block)>(w + offsetof(Block, d)), {}};
    if constexpr (requires(Block block) { block.m; }) {
      factors.mins = LoadEightHalfs<sizeof(Block)>(w + offsetof(Block, m));
    }
    return factors;
  }
#if !PRONK_WIDE
  // One token's products take two vectors at a time: 16 registers do not hold all codes. (Arm and
  // AVX-512 with short vectors have 32, and do the same.)
  static HWY_INLINE Packed32 UnpackForOne(const uint8_t* HWY_RESTRICT w) { return {w}; }
#endif
};

// Codes of 0 to kMaxCode.
//   kMinimum false   weight = scale * (code - kZero)
//   kMinimum true    weight = scale * code + min;  kZero is about the middle of the codes
template <class Type, class BlockType, int kZero, int kMaxCode, bool kMinimum = false,
          bool kEvenOdd = false>
struct Type32 : Steps32<Type, BlockType> {
  static_assert(0 <= kZero && kZero <= kMaxCode, "the zero point is one of the codes");
  static_assert(PRONK_WIDE || 8 * 127 * std::max(kZero, kMaxCode - kZero) <= 16383,
                "dots of a lane are sums of 16 bits: codes have at most five bits (or Signed32)");
  using Form = Int8Form<-kZero, kMaxCode - kZero, 1, kMinimum ? 1 : 0>;
  // kZero is subtracted from codes that are too large for sums of 16 bits; with VNNI, whose dots
  // have a start value anyway, from all without a minimum (3 to 7% of Q4_0 in the cache). Arm loads
  // a start value as fast as it makes zeros.
  static constexpr bool kLarge = 8 * 127 * kMaxCode > kMaxDot;
  static constexpr int kCenter =
      kLarge || HWY_ARCH_ARM_A64 || (PRONK_VNNI && !kMinimum) ? kZero : 0;
  static constexpr bool kSums = kMinimum || kCenter != kZero;
  using Input = Input32<kEvenOdd, kCenter, kSums>;
  using Unpacked = Unpacked32;

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadInput32<kEvenOdd, kCenter, kSums, kDeals>(x, i);
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked = Type::UnpackInOrder(w);
    Deal(unpacked.codes);
    return unpacked;
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    if constexpr (kMinimum) w.mins = KeepFirst(w.mins, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    constexpr size_t n = kDeals ? 1 : kDotVectors;
    VI32 dots[n];
#if PRONK_MADDUBS && PRONK_PIECES == 2
    // Products are summed in i16 as long as they fit.
    constexpr size_t kRun = 8 * 2 * 127 * kMaxCode <= 32767 ? 4 : 2;
    dots[0] = in.Start(0);
    for (size_t first = 0; first < kDotVectors; first += kRun) {
      VI16 pairs = hn::Zero(DI16());
      for (size_t v = first; v < first + kRun; ++v) {
        for (size_t half = 0; half < 2; ++half) {
          pairs =
              hn::Add(pairs, hn::SatWidenMulPairwiseAdd(DI16(), w.codes[v][half], in.x[v][half]));
        }
      }
      dots[0] = hn::Add(dots[0], hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(DI16(), 1)));
    }
#else
    for (size_t v = 0; v < kDotVectors; ++v) {
      dots[v % n] = DotVector(v < n ? in.Start(v) : dots[v % n], w.codes[v], in.x[v]);
    }
#endif
    AddDots(dots, w, in, sums);
  }
#if !PRONK_WIDE
  // The dots of a single token are added up lane by lane, which takes less than dealing the codes;
  // the numbers are the same.
  static HWY_INLINE Input LoadForOne(const ActivationRow& x, size_t i) {
    return LoadInput32<kEvenOdd, kCenter, kSums, false>(x, i);
  }
  static HWY_INLINE void Multiply(const Packed32& w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 codes[2][2];
      Type::Codes(w.step, v, codes);
      for (size_t k = 0; k < 2; ++k) {
        dots[v + k] = DotVector(in.Start(v + k), codes[k], in.x[v + k]);
      }
    }
    AddDots(dots, Type::Factors(w.step), in, sums);
  }
#endif
  static HWY_INLINE VI32 DotVector(VI32 start, const VU8 (&codes)[2], const VI8 (&x)[2]) {
    return Dot2(start, codes[0], x[0], codes[1], x[1]);
  }
  template <size_t n>
  static HWY_INLINE void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in,
                                 Sums& sums) {
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
    const Unpacked unpacked = Type::UnpackInOrder(w);
    StoreBytes32<kEvenOdd>(unpacked.codes, kZero, out.weights);
    StoreFloats(unpacked.scales, out.scales);
    if constexpr (kMinimum) StoreFloats(MulAdd(unpacked.scales, kZero, unpacked.mins), out.mins);
  }
};

// The same for signed bytes: weight = scale * w, code = w + kSignedZero. VNNI needs them unsigned,
// as w + 128; without it signs and magnitudes are separate. The dots are too large for sums of 16
// bits.
constexpr uint8_t kSignedZero = PRONK_VNNI ? 128 : 0;

#if PRONK_WIDE
template <class Type, class BlockType>
struct Signed32 : Type32<Type, BlockType, kSignedZero, 255> {};
#else
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
    }
    in.SetStart(in.x, kDotVectors);
    in.scales = LoadScales(x, i);
    return in;
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    return Type::UnpackInOrder(w);
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(w.scales, in.scales);
    VI32 dots[4];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kDotVectors; ++v) AddVector(w.codes[v], scales, in, v, dots, sums);
  }
  static HWY_INLINE void Multiply(const Packed32& w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(Type::Factors(w.step).scales, in.scales);
    VI32 dots[4];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 codes[2][2];
      Type::Codes(w.step, v, codes);
      for (size_t k = 0; k < 2; ++k) AddVector(codes[k], scales, in, v + k, dots, sums);
    }
  }
  static HWY_INLINE void AddVector(const VU8 (&codes)[2], const Floats8& scales, const Input& in,
                                   size_t v, VI32 (&dots)[4], Sums& sums) {
    VI32 dot = in.Start(v);
    for (size_t half = 0; half < 2; ++half) {
#if PRONK_VNNI
      dot = Dot(dot, codes[half], in.x[v][half]);
#else
      dot = DotSigned(dot, hn::BitCast(DI8(), codes[half]), in.x[v][half]);
#endif
    }
#if HWY_ARCH_ARM_A64  // adds up lanes of four groups first, as integers of 32 bits
    dots[v % 4] = dot;
    if (v % 4 < 3) return;
    dot = AddNeighbours(AddNeighbours(dots[0], dots[1]), AddNeighbours(dots[2], dots[3]));
    sums.a = hn::MulAdd(hn::ConvertTo(DF(), dot), scales.part[v / 4], sums.a);
#else
    (void)dots;
    sums.a = hn::MulAdd(hn::ConvertTo(DF(), dot), SpreadGroups(scales, v), sums.a);
#endif
  }
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const Unpacked unpacked = Type::UnpackInOrder(w);
    StoreBytes32<false>(unpacked.codes, kSignedZero, out.weights);
    StoreFloats(unpacked.scales, out.scales);
  }
};
#endif

// Vectors v and v + 1 of the codes of groups of 32 nibbles, which are kStride bytes apart: one AND
// gives the first halves of all groups, a shift the second.
template <size_t kStride>
HWY_INLINE void LoadNibbles(const uint8_t* HWY_RESTRICT qs, size_t v, VU8 (*codes)[2]) {
  for (size_t k = 0; k < 2; ++k) {
    const VU8 nibbles = LoadPieces<kGroupStep * kStride>(qs + FirstGroup(v + k) * kStride);
    codes[k][0] = LowNibbles(nibbles);
    codes[k][1] = HighNibbles(nibbles);
  }
}

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

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_SHARED_GROUPS32_INL_H_
