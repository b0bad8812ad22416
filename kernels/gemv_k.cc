// Products with the K types: blocks of 256 weights, with small integer scales for every 16 or 32.
//
// Two ways to apply the small scales, by what is cheaper:
// - A scale for 32 weights (Q4_K): the scale becomes a float, multiplied with the activations'
// scale.
// - A scale for 16 weights (Q6_K): products of pairs (i16) are multiplied with the scale as an
//   integer in the very instruction that adds them to i32. Exact, and costs nothing.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_k.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

constexpr size_t kBlock = 256;

// The activations of a block in the order in which the nibbles of Q4_K come out, for AddScaledDots:
// vectors of even 32s (low nibbles) and of odd ones (high nibbles) by turns.
struct NibbleInput {
  VI8 x[kDotVectors][2];
  Floats8 scales;  // of the activations
  Floats8 sums;    // scale * (sum of the 32)
};

// Bytes of nibbles for kPieces even 32s, and as many odd ones, are kNibbleStep bytes apart. With
// two pieces a vector has groups v and v + 4.
constexpr size_t kNibbleStep = kPieces == 2 ? 64 : 32;

HWY_INLINE NibbleInput LoadNibbleInput(const ActivationRow& x, size_t i) {
  NibbleInput in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    const int8_t* const q = x.q + i + 32 * v;
    for (size_t half = 0; half < 2; ++half) {
      in.x[v][half] = LoadPieces<2 * kNibbleStep>(q + 16 * half);
    }
  }
  in.scales = LoadScales(x, i);
  in.sums = LoadScaledSums(x, i, 1.0f);
  return in;
}

// Eight scales and eight minimums of six bits each, as bytes.
struct SixBits {
  uint64_t scales, mins;
};
HWY_INLINE SixBits UnpackSixBits(const uint8_t* packed) {
  uint32_t s[3];
  hwy::CopyBytes<12>(packed, s);
  const uint32_t low_scales = s[0] & 0x3F3F3F3Fu;
  const uint32_t low_mins = s[1] & 0x3F3F3F3Fu;
  const uint32_t high_scales = (s[2] & 0x0F0F0F0Fu) | ((s[0] >> 2) & 0x30303030u);
  const uint32_t high_mins = ((s[2] >> 4) & 0x0F0F0F0Fu) | ((s[1] >> 2) & 0x30303030u);
  return {low_scales | static_cast<uint64_t>(high_scales) << 32,
          low_mins | static_cast<uint64_t>(high_mins) << 32};
}

// Eight bytes as floats, times a factor.
HWY_INLINE Floats8 ToFloats(uint64_t bytes, V8 factor) {
  const D8 d;
  const hn::RebindToSigned<D8> di;
  const hn::Rebind<uint8_t, D8> d8;
  Floats8 floats;
  for (size_t k = 0; k < kParts8; ++k) {
    const uint64_t part = bytes >> (k * 8 * hn::MaxLanes(D8()) % 64);
    const auto v = hn::ResizeBitCast(d8, hn::Set(hn::FixedTag<uint64_t, 1>(), part));
    floats.part[k] = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, v)), factor);
  }
  return floats;
}

// d * sc and -dmin * min, for each 32 weights. half_scales is d, then dmin.
struct Scales6 {
  Floats8 scales, minus_mins;
};
HWY_INLINE Scales6 LoadScales6(const uint8_t* packed, const uint8_t* half_scales) {
  const SixBits six = UnpackSixBits(packed);
  return {ToFloats(six.scales, SetHalf(D8(), half_scales)),
          ToFloats(six.mins, hn::Neg(SetHalf(D8(), half_scales + 2)))};
}

struct Q4_K {
  using Block = gguf::BlockQ4_K;
  using Input = NibbleInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kBlock;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadNibbleInput(x, i); }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; v += 2) {
      const uint8_t* const qs = w + offsetof(Block, qs) + 16 * v;
      const VU8 first = LoadPieces<kNibbleStep>(qs);
      const VU8 second = LoadPieces<kNibbleStep>(qs + 16);
      const VI32 none = hn::Zero(DI32());
      dots[v] = Dot2(none, LowNibbles(first), in.x[v][0], LowNibbles(second), in.x[v][1]);
      dots[v + 1] =
          Dot2(none, HighNibbles(first), in.x[v + 1][0], HighNibbles(second), in.x[v + 1][1]);
    }
    const Scales6 scales = LoadScales6(w + offsetof(Block, scales), w + offsetof(Block, d));
    sums.a = AddScaledDots<true>(sums.a, dots, Mul(scales.scales, in.scales));
    sums.mins = MulAdd(scales.minus_mins, in.sums, sums.mins);
  }
};

// Sixteen small integers, a number for each 16 weights of a block.
using D16 = hn::Repartition<int16_t, D8>;
struct Small16 {
  hn::Vec<D16> part[kParts8];
};

// The activations of a block in the order in which the types with two bits here and two bits there
// come out: of each 128 weights, four runs of 32.
struct RunInput {
  static constexpr size_t kVectors = RunVectors(2);
  VI8 x[4][kVectors];
  VF scale[4][kVectors];  // of the activations, in the lanes of their run
  Floats8 scales;         // the same, in order
  Small16 sums;           // of each 16
};

HWY_INLINE RunInput LoadRunInput(const ActivationRow& x, size_t i) {
  RunInput in;
  for (size_t k = 0; k < 4; ++k) {
    for (size_t v = 0; v < RunInput::kVectors; ++v) {
      in.x[k][v] = LoadRuns<128>(x.q + i + 32 * k, v);
      const float* const scale = x.scales + i / 32 + k;
#if PRONK_PIECES == 4
      const hn::Half<DF> d8;
      in.scale[k][v] = hn::Combine(DF(), hn::Set(d8, scale[4]), hn::Set(d8, scale[0]));
#else
      in.scale[k][v] = hn::Set(DF(), scale[v * kPieces / 2 * 4]);
#endif
    }
  }
  in.scales = LoadScales(x, i);
  for (size_t k = 0; k < kParts8; ++k) {
    in.sums.part[k] = hn::LoadU(D16(), x.sums + i / 16 + k * hn::MaxLanes(D16()));
  }
  return in;
}

// The small scales of a block from signed bytes.
HWY_INLINE Small16 WidenScales(hn::Vec<hn::FixedTag<int8_t, 16>> bytes) {
  const D16 d;
#if PRONK_PIECES == 1
  return {{hn::PromoteLowerTo(d, bytes), hn::PromoteUpperTo(d, bytes)}};
#else
  return {{hn::PromoteTo(d, bytes)}};
#endif
}

// Those of run k, vector v, in the lanes of their 16s: numbers 8 * half + 2 * k + (0 or 1).
HWY_INLINE VScale ScalesOf(const Small16& scales, size_t k, size_t v) {
#if PRONK_PIECES == 4
  (void)v;
  alignas(64) int16_t index[32];
  for (size_t i = 0; i < 32; ++i) {
    index[i] = static_cast<int16_t>(i / 16 * 8 + 2 * k + i / 8 % 2);
  }
  return hn::TableLookupLanes(hn::ResizeBitCast(DI16(), scales.part[0]),
                              hn::SetTableIndices(DI16(), index));
#elif PRONK_PIECES == 2
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

// For codes with a zero point: what it adds up to for each 32 weights, to be multiplied with the
// activations' scales.
HWY_INLINE Floats8 ZeroTerms(const Small16& scales, const RunInput& in) {
  const D8 d;
  Floats8 terms;
  for (size_t k = 0; k < kParts8; ++k) {
    const auto sum =
        hn::WidenMulPairwiseAdd(hn::RebindToSigned<D8>(), scales.part[k], in.sums.part[k]);
    terms.part[k] = hn::ConvertTo(d, sum);
  }
  return terms;
}

// The top bits of run k: bits 2k and 2k + 1 of each byte, moved to bits 4 and 5.
template <size_t k>
HWY_INLINE VU8 TopBits(VU8 bytes) {
  const DU8 d8;
  const DU16 d16;
  const auto v = hn::BitCast(d16, bytes);
  VU8 moved = bytes;  // k == 2
  if constexpr (k == 0) moved = hn::BitCast(d8, hn::ShiftLeft<4>(v));
  if constexpr (k == 1) moved = hn::BitCast(d8, hn::ShiftLeft<2>(v));
  if constexpr (k == 3) moved = hn::BitCast(d8, hn::ShiftRight<2>(v));
  return hn::And(moved, hn::Set(d8, uint8_t{0x30}));
}

struct Q6_K {
  using Block = gguf::BlockQ6_K;
  using Input = RunInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kBlock;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadRunInput(x, i); }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const DF df;
    const hn::FixedTag<int8_t, 16> d_scales;
    const Small16 scales = WidenScales(
        hn::LoadU(d_scales, reinterpret_cast<const int8_t*>(w + offsetof(Block, scales))));
    VF sum = hn::Zero(df);
    for (size_t v = 0; v < RunInput::kVectors; ++v) {
      const VU8 ql0 = LoadRuns<64>(w + offsetof(Block, ql), v);
      const VU8 ql1 = LoadRuns<64>(w + offsetof(Block, ql) + 32, v);
      const VU8 qh = LoadRuns<32>(w + offsetof(Block, qh), v);
      const VU8 codes[4] = {
          hn::Or(LowNibbles(ql0), TopBits<0>(qh)), hn::Or(LowNibbles(ql1), TopBits<1>(qh)),
          hn::Or(HighNibbles(ql0), TopBits<2>(qh)), hn::Or(HighNibbles(ql1), TopBits<3>(qh))};
      for (size_t k = 0; k < 4; ++k) {
        const VI32 dot = ScaledDot(codes[k], in.x[k][v], ScalesOf(scales, k, v));
        sum = hn::MulAdd(hn::ConvertTo(df, dot), in.scale[k][v], sum);
      }
    }
    const V8 zeros = MulAdd(ZeroTerms(scales, in), in.scales, hn::Zero(D8()));
    sums.a = hn::MulAdd(sum, SetHalf(df, w + offsetof(Block, d)), sums.a);
    sums.mins = hn::MulAdd(
        zeros, hn::Mul(SetHalf(D8(), w + offsetof(Block, d)), hn::Set(D8(), -32.0f)), sums.mins);
  }
};

void RowsQ4_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q4_K>(w, begin, end, x, out);
}
void RowsQ6_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q6_K>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RowsQ4_K);
HWY_EXPORT(RowsQ6_K);

void GemvQ4_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsQ4_K)(w, begin, end, x, out);
}
void GemvQ6_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsQ6_K)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
