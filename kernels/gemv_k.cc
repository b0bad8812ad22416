// Products with Q4_K and Q5_K: blocks of 256 weights, with a scale and a minimum for every 32.
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
    LoadPiecePairs<2 * kNibbleStep>(x.q + i + 32 * v, in.x[v][0], in.x[v][1]);
  }
  in.scales = LoadScales(x, i);
  in.sums = LoadScaledSums(x, i);
  return in;
}

// Eight bytes as floats, times a factor.
HWY_INLINE Floats8 ToFloats(hn::Vec<hn::Half<DU8x16>> bytes, V8 factor) {
  const D8 d;
  const hn::RebindToSigned<D8> di;
  Floats8 floats;
#if PRONK_PIECES == 1
  const hn::Rebind<uint8_t, D8> d8;
  const auto low = hn::PromoteTo(di, hn::LowerHalf(d8, bytes));
  const auto high = hn::PromoteTo(di, hn::UpperHalf(d8, bytes));
  floats.part[0] = hn::Mul(hn::ConvertTo(d, low), factor);
  floats.part[1] = hn::Mul(hn::ConvertTo(d, high), factor);
#else
  floats.part[0] = hn::Mul(hn::ConvertTo(d, hn::PromoteTo(di, bytes)), factor);
#endif
  return floats;
}

// d * sc and -dmin * min, for each 32 weights.
struct Scales6 {
  Floats8 scales, minus_mins;
};

// Of a Q4_K or Q5_K block, whose first 16 bytes are d, dmin and the packed eight sc, eight min of
// six bits each: s[0..3] and s[4..7] have the first four of each in their low bits; s[8..11] has
// the low four bits of the others in its nibbles, their top two are the top bits of s[0..7].
HWY_INLINE Scales6 LoadScales6(const uint8_t* block) {
  const DU8x16 d8;
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::FixedTag<float, 4> df;
  const auto head = hn::LoadU(d8, block);
  alignas(16) static constexpr uint8_t kLow[16] = {4, 5, 6,  7,  12, 13, 14, 15,
                                                   8, 9, 10, 11, 12, 13, 14, 15};
  alignas(16) static constexpr uint8_t kTop[16] = {128, 128, 128, 128, 4, 5, 6,  7,
                                                   128, 128, 128, 128, 8, 9, 10, 11};
  alignas(16) static constexpr uint32_t kShifts[4] = {0, 0, 0, 4};
  alignas(16) static constexpr uint32_t kMasks[4] = {0x3F3F3F3Fu, 0x0F0F0F0Fu, 0x3F3F3F3Fu,
                                                     0x0F0F0F0Fu};
  const auto low = hn::And(hn::Shr(hn::BitCast(d32, hn::TableLookupBytes(head, hn::Load(d8, kLow))),
                                   hn::Load(d32, kShifts)),
                           hn::Load(d32, kMasks));
  const auto top =
      hn::ShiftRight<2>(hn::BitCast(d32, hn::TableLookupBytesOr0(head, hn::Load(d8, kTop))));
  const auto six = hn::BitCast(d8, hn::OrAnd(low, top, hn::Set(d32, 0x30303030u)));

  const auto halfs = hn::LowerHalf(hn::BitCast(hn::FixedTag<hwy::float16_t, 8>(), head));
  const auto d_dmin = hn::ResizeBitCast(D8(), hn::PromoteTo(df, halfs));
  return {ToFloats(hn::LowerHalf(six), hn::BroadcastLane<0>(d_dmin)),
          ToFloats(hn::UpperHalf(hn::Half<DU8x16>(), six), hn::Neg(hn::BroadcastLane<1>(d_dmin)))};
}

struct Q4_K {
  using Block = gguf::BlockQ4_K;
  using Input = NibbleInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStreams = 2;
  static constexpr size_t kStepWeights = kBlock;
  static constexpr size_t kStepBytes = sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadNibbleInput(x, i); }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; v += 2) {
      const uint8_t* const qs = w + offsetof(Block, qs) + 16 * v;
      VU8 first, second;
      LoadPiecePairs<kNibbleStep>(qs, first, second);
      const VI32 none = hn::Zero(DI32());
      dots[v] = Dot2(none, LowNibbles(first), in.x[v][0], LowNibbles(second), in.x[v][1]);
      dots[v + 1] =
          Dot2(none, HighNibbles(first), in.x[v + 1][0], HighNibbles(second), in.x[v + 1][1]);
    }
    const Scales6 scales = LoadScales6(w);
    sums.a = AddScaledDots<true>(sums.a, dots, Mul(scales.scales, in.scales));
    sums.mins = MulAdd(scales.minus_mins, in.sums, sums.mins);
  }
};

struct Q5_K {
  using Block = gguf::BlockQ5_K;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStreams = 2;
  static constexpr size_t kStepWeights = kBlock;
  static constexpr size_t kStepBytes = sizeof(Block);

  // Codes are centered (q - 16), so that dots stay small enough to be added up as i16.
  struct Input {
    NibbleInput nibbles;
    VI32 offset[kDotVectors];  // -16 * (sum of the lane)
  };
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in = {LoadNibbleInput(x, i), {}};
    const VU8 zero = hn::Set(DU8(), uint8_t{16});
    const VI32 none = hn::Zero(DI32());
    for (size_t v = 0; v < kDotVectors; ++v) {
      in.offset[v] = hn::Sub(none, Dot2(none, zero, in.nibbles.x[v][0], zero, in.nibbles.x[v][1]));
    }
    return in;
  }

  // 16 bytes of qh in each piece, bits 2i and 2i + 1 of the piece's 64s (number i) shifted to bits
  // 0 and 1.
  static HWY_INLINE VU8 HighBits(const uint8_t* qh, size_t v) {
    const hn::Repartition<uint32_t, DU8> d32;
    const auto bytes = hn::BitCast(d32, LoadPieces<0>(qh));
#if PRONK_PIECES == 1
    return hn::BitCast(DU8(), hn::ShiftRightSame(bytes, static_cast<int>(v)));
#else
    constexpr uint32_t kStep = kPieces == 2 ? 4 : 2;  // a vector has 64s i and i + 2, or all four
    alignas(64) uint32_t counts[kFloats];
    for (size_t i = 0; i < kFloats; ++i) counts[i] = static_cast<uint32_t>(v + i / 4 * kStep);
    return hn::BitCast(DU8(), hn::Shr(bytes, hn::Load(d32, counts)));
#endif
  }
  template <int kShift>
  static HWY_INLINE VU8 AddFifthBit(VU8 nibbles, VU8 high_bits) {
    const hn::Repartition<uint32_t, DU8> d32;
    const VU8 bit = hn::BitCast(DU8(), hn::ShiftLeft<kShift>(hn::BitCast(d32, high_bits)));
    return hn::OrAnd(nibbles, bit, hn::Set(DU8(), uint8_t{16}));
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; v += 2) {
      VU8 nibbles[2], even[2], odd[2];
      LoadPiecePairs<kNibbleStep>(w + offsetof(Block, qs) + 16 * v, nibbles[0], nibbles[1]);
      for (size_t half = 0; half < 2; ++half) {
        const VU8 qh = HighBits(w + offsetof(Block, qh) + 16 * half, v);
        even[half] = AddFifthBit<4>(LowNibbles(nibbles[half]), qh);
        odd[half] = AddFifthBit<3>(HighNibbles(nibbles[half]), qh);
      }
      const NibbleInput& n = in.nibbles;
      dots[v] = Dot2(in.offset[v], even[0], n.x[v][0], even[1], n.x[v][1]);
      dots[v + 1] = Dot2(in.offset[v + 1], odd[0], n.x[v + 1][0], odd[1], n.x[v + 1][1]);
    }
    const Scales6 scales = LoadScales6(w);
    sums.a = AddScaledDots<true>(sums.a, dots, Mul(scales.scales, in.nibbles.scales));
    Floats8 mins;
    for (size_t k = 0; k < kParts8; ++k) {
      mins.part[k] =
          hn::MulAdd(scales.scales.part[k], hn::Set(D8(), 16.0f), scales.minus_mins.part[k]);
    }
    sums.mins = MulAdd(mins, in.nibbles.sums, sums.mins);
  }
};

void RowsQ4_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q4_K>(w, begin, end, x, out);
}
void RowsQ5_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q5_K>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsQ4_K);
PRONK_EXPORT(RowsQ5_K);

void GemvQ4_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ4_K)(w, begin, end, x, out);
}
void GemvQ5_K(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ5_K)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
