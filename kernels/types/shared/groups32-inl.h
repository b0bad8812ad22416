// Formats with scales (and minimums) for groups of 32: UnsignedType32 and SignedType32, which
// formats inherit. Here are the products of single rows in vectors of 16 or 32 bytes (pairs32-inl.h
// has those of 64), and codes of nibbles. Included once per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_GROUPS32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_GROUPS32_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_GROUPS32_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_GROUPS32_INL_H_
#endif

#include "kernels/types/shared/pairs32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

#if !PRONK_WIDE
// The vectors of 256 weights or activations are DEALT: a lane is of the same group in every vector,
// so that their dots are one sum.
constexpr bool kDeals = kPieces > 1;
template <class V>
HWY_INLINE void Deal([[maybe_unused]] V (&vectors)[kDotVectors][2]) {
#if PRONK_PIECES == 2
  for (size_t half = 0; half < 2; ++half) {
    DealFour(vectors[0][half], vectors[1][half], vectors[2][half], vectors[3][half]);
  }
#endif
}

// sum + dots * w * x. dots is one vector (dealt) or kDotVectors, with at most kMaxDot in each lane;
// kLarge: at most twice that; kAny: any number.
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

// The start value of a step's dots, for codes that are kCenter more than the weights: -kCenter *
// (sum of the lane), and a part of kFloatStart.
template <int kCenter>
struct Offsets {
  VI32 offset[kDotVectors];  // of dealt vectors only the first

  HWY_INLINE void SetStart(const VI8 (&x)[kDotVectors][2], size_t n) {
    const VU8 center = hn::Set(DU8(), uint8_t{kCenter});
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VI32 sum = v < n ? hn::Zero(DI32()) : offset[v % n];
      offset[v % n] = Dot(Dot(sum, center, x[v][0]), center, x[v][1]);
    }
    const VI32 start = hn::Set(DI32(), kFloatStart / 4);
    for (size_t v = 0; v < n; ++v) offset[v] = hn::Sub(start, offset[v]);
  }
  HWY_INLINE VI32 Start(size_t v) const { return LoadStart(offset[v]); }
};
template <>
struct Offsets<0> {
  HWY_INLINE void SetStart(const VI8 (&)[kDotVectors][2], size_t) {}
  HWY_INLINE VI32 Start(size_t) const { return hn::Set(DI32(), kFloatStart / 4); }
};

// The activations of a step.
template <int kCenter, bool kSums>
struct Input32 : Offsets<kCenter> {
  VI8 x[kDotVectors][2];                                // the first and the last 16 of each group
  Floats8 scales;                                       // of the activations
  [[no_unique_address]] Optional<kSums, Floats8> sums;  // scale * (sum of the 32)
};

template <int kCenter, bool kSums, bool kDealt>
HWY_INLINE Input32<kCenter, kSums> LoadInput32(const ActivationRow& x, size_t i) {
  Input32<kCenter, kSums> in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    LoadPiecePairs<32 * kGroupStep>(x.q + i + 32 * v, in.x[v][0], in.x[v][1]);
  }
  if constexpr (kDealt) Deal(in.x);
  in.SetStart(in.x, kDealt ? 1 : kDotVectors);
  in.scales = LoadScales(x, i);
  if constexpr (kSums) in.sums = LoadScaledSums(x, i);
  return in;
}

// A step that Multiply unpacks for one token, two vectors at a time: 16 registers do not hold all
// codes. (Arm and AVX-512 with short vectors have 32, and do the same.)
struct Packed32 {
  const uint8_t* step;
};

// What unsigned and signed codes share. SingleRows32 and SignedRows32 add, for vector v of the step
// and for the step's dots,
//   static VI32 DotVector(VI32 start, const VU8 (&codes)[2], const Input& in, size_t v)
//   static void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in, RowSums& sums)
template <class Type, class BlockType>
struct RowOf32 : Steps32<Type, BlockType> {
  static HWY_INLINE Unpacked32 Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked32 unpacked = Type::UnpackInOrder(w);
    Deal(unpacked.codes);
    return unpacked;
  }
  static HWY_INLINE Packed32 DeferUnpack(const uint8_t* HWY_RESTRICT w) { return {w}; }
  // The dots of a single token are added up lane by lane, which takes less than dealing the codes;
  // the numbers are the same.
  template <class Input>
  static HWY_INLINE void Multiply(const Packed32& w, const Input& in, RowSums& sums) {
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
template <class Type, class BlockType, int kZero, int kMaxCode, bool kMinimum, bool kEvenOdd>
struct SingleRows32 : RowOf32<Type, BlockType> {
  static_assert(0 <= kZero && kZero <= kMaxCode, "the zero point is one of the codes");
  static_assert(
      8 * 127 * std::max(kZero, kMaxCode - kZero) <= 16383,
      "dots of a lane are sums of 16 bits: codes have at most five bits (or SignedType32)");
  using PanelForm = Int8Form<-kZero, kMaxCode - kZero, 1, kMinimum ? 1 : 0>;
  // Without a minimum, kZero is subtracted if codes are too large for sums of 16 bits, and with
  // VNNI, where dots have a start value anyway (3 to 7% of Q4_0 in the cache). Arm loads a start
  // value as fast as it makes zeros.
  static constexpr bool kLarge = 8 * 127 * kMaxCode > kMaxDot;
  static constexpr int kCenter =
      HWY_ARCH_ARM_A64 || (!kMinimum && (kLarge || PRONK_VNNI)) ? kZero : 0;
  // Dots of a lane may be twice kMaxDot.
  static constexpr bool kTwice = kLarge && kCenter == 0;
  static_assert(kCenter != 0 || 8 * 127 * kMaxCode <= 2 * kMaxDot + 1);
  static constexpr bool kSums = kMinimum || kCenter != kZero;
  using Input = Input32<kCenter, kSums>;
  using Unpacked = Unpacked32;
  using RowOf32<Type, BlockType>::Multiply;

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadInput32<kCenter, kSums, kDeals>(x, i);
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    if constexpr (kMinimum) w.mins = KeepFirst(w.mins, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    constexpr size_t n = kDeals ? 1 : kDotVectors;
    VI32 dots[n];
#if PRONK_MADDUBS && PRONK_PIECES == 2
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
  static HWY_INLINE Input LoadForOne(const ActivationRow& x, size_t i) {
    return LoadInput32<kCenter, kSums, false>(x, i);
  }
  static HWY_INLINE VI32 DotVector(VI32 start, const VU8 (&codes)[2], const Input& in, size_t v) {
    return Dot2(start, codes[0], in.x[v][0], codes[1], in.x[v][1]);
  }
  template <size_t n>
  static HWY_INLINE void AddDots(const VI32 (&dots)[n], const Factors32& w, const Input& in,
                                 RowSums& sums) {
    sums.products = AddScaledDots<kTwice>(sums.products, dots, w.scales, in.scales);
    if constexpr (kMinimum && kCenter == 0) {
      sums.mins = MulAdd(w.mins, in.sums, sums.mins);
    } else if constexpr (kMinimum) {
      sums.mins = MulAdd(MulAdd(w.scales, kCenter, w.mins), in.sums, sums.mins);
    } else if constexpr (kCenter != kZero) {
      sums.mins = MulAdd(Mul(w.scales, kCenter - kZero), in.sums, sums.mins);
    }
  }

  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    Type::template StoreInOrder<kZero, kMinimum, kEvenOdd>(w, out);
  }
};

// Signed bytes, whose dot products do not fit into sums of 16 bits.
struct Magnitudes32 {
  VU8 of[kDotVectors][2];
};
template <bool kMagnitudes>
struct InputSigned32 : Input32<kSignedOffset, false> {
  [[no_unique_address]] Optional<kMagnitudes, Magnitudes32> magnitudes;
};

// Products of signed bytes. kNo128: no weight is -128, so that without VNNI weights can take the
// activations' signs, whose magnitudes are stored (one token of IQ4_XS 6%).
template <class Type, class BlockType, bool kNo128>
struct SignedRows32 : RowOf32<Type, BlockType> {
  static constexpr bool kMagnitudes = PRONK_MADDUBS && kNo128;
  using Input = InputSigned32<kMagnitudes>;
  using Unpacked = Unpacked32;
  using RowOf32<Type, BlockType>::Multiply;

  template <bool kDealt>
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in = {LoadInput32<kSignedOffset, false, kDealt>(x, i), {}};
    if constexpr (kMagnitudes) {
      for (size_t v = 0; v < kDotVectors; ++v) {
        for (size_t half = 0; half < 2; ++half)
          in.magnitudes.of[v][half] = hn::BitCast(DU8(), hn::Abs(in.x[v][half]));
      }
    }
    return in;
  }
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadInput<kDeals>(x, i); }
  static HWY_INLINE Input LoadForOne(const ActivationRow& x, size_t i) {
    return LoadInput<false>(x, i);
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    w.scales = KeepFirst(w.scales, n / 32);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    constexpr size_t n = kDeals ? 1 : kDotVectors;
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
#endif

// What formats inherit. Codes from 0 to kMaxCode, at most 31:
//   kMinimum false   weight = scale * (code - kZero)
//   kMinimum true    weight = scale * code + min;  kZero is about the middle of the codes
// kEvenOdd: a byte's nibbles are of neighbouring groups. kNo128: no signed byte is -128.
#if PRONK_WIDE
template <class Type, class Block, int kZero, int kMaxCode, bool kMinimum = false,
          bool kEvenOdd = false>
using UnsignedType32 = RowPairs32<Type, Block, kZero, kMaxCode, kMinimum, kEvenOdd>;
template <class Type, class Block, bool /*kNo128*/ = false>
using SignedType32 = RowPairs32<Type, Block, kSignedOffset, 255, false, false>;
#else
template <class Type, class Block, int kZero, int kMaxCode, bool kMinimum = false,
          bool kEvenOdd = false>
using UnsignedType32 = SingleRows32<Type, Block, kZero, kMaxCode, kMinimum, kEvenOdd>;
template <class Type, class Block, bool kNo128 = false>
using SignedType32 = SignedRows32<Type, Block, kNo128>;
#endif

// What the code of a nibble is: the nibble itself, or the table's entry.
struct SameCodes {
  static HWY_INLINE VU8 Of(VU8 nibbles) { return nibbles; }
};
template <const std::array<int8_t, 16>& kValues, int kZero>  // values + kZero
struct TableCodes {
  static HWY_INLINE VU8 Of(VU8 nibbles) {
    const DU8 d;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(kValues.data());
    const VU8 table = hn::Add(hn::LoadDup128(d, bytes), hn::Set(d, static_cast<uint8_t>(kZero)));
    return hn::TableLookupBytes(table, nibbles);
  }
};

// Groups of 32 nibbles, kStride bytes apart: one AND gives the first halves of all groups, a shift
// the second.
template <class Block, class OfNibbles = SameCodes, size_t kStride = sizeof(Block)>
struct Nibbles32 {
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    for (size_t k = 0; k < 2; ++k) {
      const uint8_t* const first = w + offsetof(Block, qs) + FirstGroup(v + k) * kStride;
      const VU8 nibbles = LoadPieces<kGroupStep * kStride>(first);
      codes[k][0] = OfNibbles::Of(LowNibbles(nibbles));
      codes[k][1] = OfNibbles::Of(HighNibbles(nibbles));
    }
  }
#if PRONK_WIDE
  static HWY_INLINE void PairCodes(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                                   VU8 (&codes)[8]) {
    VU8 nibbles[4];
    LoadPair<kStride, offsetof(Block, qs)>(w0, w1, nibbles);
    HWY_UNROLL(4)
    for (size_t k = 0; k < 4; ++k) {
      codes[k] = OfNibbles::Of(LowNibbles(nibbles[k]));
      codes[4 + k] = OfNibbles::Of(HighNibbles(nibbles[k]));
    }
  }
#endif
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_GROUPS32_INL_H_
