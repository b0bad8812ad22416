// The vectors that the products work with, and the few operations on them that every weight type
// needs. Included once per instruction set (Highway's foreach_target); see gemv-inl.h.
//
// The picture to keep in mind: a vector of bytes is kPieces "pieces" of 16. A dot product of two
// byte vectors gives one i32 for each 4 bytes, so 4 lanes belong to each piece, and a scale that
// holds for a piece is a float vector with that scale in 4 neighbouring lanes.
//
//   bytes    | piece 0: 16 codes     | piece 1               | ...
//   i32, f32 | lane 0..3             | lane 4..7             |
//   scales   | s0    s0    s0    s0  | s1    s1    s1    s1  |
#if defined(PRONK_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_SIMD_INL_H_
#undef PRONK_KERNELS_SIMD_INL_H_
#else
#define PRONK_KERNELS_SIMD_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/matmul.h"

// Pieces of 16 bytes in a vector. 4 (and the macro "wide") where any byte can go anywhere in one
// instruction (AVX-512 VBMI); on AVX-512 without that, vectors of 32 bytes are faster.
#undef PRONK_PIECES
#undef PRONK_WIDE
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define PRONK_PIECES 4
#define PRONK_WIDE 1
#elif HWY_MAX_BYTES >= 32
#define PRONK_PIECES 2
#define PRONK_WIDE 0
#else
#define PRONK_PIECES 1
#define PRONK_WIDE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kPieces = PRONK_PIECES;
constexpr size_t kVectorBytes = kPieces * 16;
constexpr size_t kFloats = kPieces * 4;  // lanes of f32 and i32

using DU8 = hn::FixedTag<uint8_t, kVectorBytes>;
using DI8 = hn::RebindToSigned<DU8>;
using DU16 = hn::Repartition<uint16_t, DU8>;
using DI16 = hn::Repartition<int16_t, DU8>;
using DI32 = hn::Repartition<int32_t, DU8>;
using DF = hn::Repartition<float, DU8>;
using VU8 = hn::Vec<DU8>;
using VI8 = hn::Vec<DI8>;
using VI16 = hn::Vec<DI16>;
using VI32 = hn::Vec<DI32>;
using VF = hn::Vec<DF>;

// Eight floats, for example a number for each 32 weights of a block of 256.
using D8 = hn::CappedTag<float, 8>;
constexpr size_t kParts8 = 8 / hn::MaxLanes(D8());
using V8 = hn::Vec<D8>;
struct Floats8 {
  V8 part[kParts8];
};

using DU8x16 = hn::FixedTag<uint8_t, 16>;
using DU16x8 = hn::FixedTag<uint16_t, 8>;

// --------------------------------------------------------------------------------------------------
// Loads. None of them touches a byte outside of [p, end of the last piece or number named).

// kPieces pieces of 16 bytes, kStride bytes apart.
template <size_t kStride>
HWY_INLINE VU8 LoadPieces(const uint8_t* HWY_RESTRICT p) {
  const DU8x16 d16;
#if PRONK_WIDE
  const DU8 d;
  const hn::Half<DU8> d32;
  if constexpr (kStride == 16) return hn::LoadU(d, p);
  if constexpr (kStride > 16 && kStride <= 24) {
    // Two loads and one byte permutation under a mask: the first 64 bytes hold pieces 0 to 2, and
    // the 64 bytes that end with piece 3 hold it where it belongs.
    static constexpr auto kIndex = [] {
      std::array<uint8_t, 64> index{};
      for (size_t i = 0; i < 48; ++i) index[i] = static_cast<uint8_t>(i / 16 * kStride + i % 16);
      return index;
    }();
    const auto head =
        hn::TableLookupLanes(hn::LoadU(d, p), hn::IndicesFromVec(d, hn::LoadU(d, kIndex.data())));
    const auto tail = hn::LoadU(d, p + 3 * kStride - 48);
    return hn::IfThenElse(hn::FirstN(d, 48), head, tail);
  }
  const auto low = hn::Combine(d32, hn::LoadU(d16, p + kStride), hn::LoadU(d16, p));
  const auto high =
      hn::Combine(d32, hn::LoadU(d16, p + 3 * kStride), hn::LoadU(d16, p + 2 * kStride));
  return hn::Combine(d, high, low);
#elif PRONK_PIECES == 2
  return hn::Combine(DU8(), hn::LoadU(d16, p + kStride), hn::LoadU(d16, p));
#else
  return hn::LoadU(d16, p);
#endif
}

// The same for activations.
template <size_t kStride>
HWY_INLINE VI8 LoadPieces(const int8_t* HWY_RESTRICT p) {
  return hn::BitCast(DI8(), LoadPieces<kStride>(reinterpret_cast<const uint8_t*>(p)));
}

// Runs of 32 bytes. Vector v of all the vectors that runs fill: a vector has two runs, one, or half
// of one.
constexpr size_t RunVectors(size_t runs) { return runs * 2 / kPieces; }
template <size_t kStride>
HWY_INLINE VU8 LoadRuns(const uint8_t* HWY_RESTRICT p, size_t v) {
  const DU8 d;
#if PRONK_PIECES == 4
  const hn::Half<DU8> d32;
  p += 2 * v * kStride;
  if constexpr (kStride == 32) return hn::LoadU(d, p);
  return hn::Combine(d, hn::LoadU(d32, p + kStride), hn::LoadU(d32, p));
#else
  return hn::LoadU(d, p + v * kPieces / 2 * kStride + v * kPieces % 2 * 16);
#endif
}
template <size_t kStride>
HWY_INLINE VI8 LoadRuns(const int8_t* HWY_RESTRICT p, size_t v) {
  return hn::BitCast(DI8(), LoadRuns<kStride>(reinterpret_cast<const uint8_t*>(p), v));
}

// The half float (f16) at p, in all lanes of a vector. Reads 2 bytes.
template <class D>
HWY_INLINE hn::Vec<D> SetHalf(D d, const uint8_t* HWY_RESTRICT p) {
  uint16_t bits;
  hwy::CopyBytes<2>(p, &bits);
  const hn::Rebind<uint16_t, D> d_bits;
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), hn::Set(d_bits, bits)));
}

// n half floats (f16) that lie kStride bytes apart, as one number. They are collected in an integer
// register: the units for that are idle, those for shuffling vectors are not (measured on Zen 4: 15
// cycles for 256 weights of Q4_0 instead of 19 with unpack instructions, 17 by permuting words).
template <size_t n, size_t kStride>
HWY_INLINE uint64_t CollectHalfs(const uint8_t* HWY_RESTRICT p) {
  uint64_t bits = 0;
  for (size_t i = 0; i < n; ++i) {
    uint16_t half;
    hwy::CopyBytes<2>(p + i * kStride, &half);
    bits |= static_cast<uint64_t>(half) << (16 * i);
  }
  return bits;
}

// A float per piece, side by side.
using DPiece = hn::FixedTag<float, kPieces>;
using VPiece = hn::Vec<DPiece>;

// kPieces half floats, kStride bytes apart.
template <size_t kStride>
HWY_INLINE VPiece LoadHalfs(const uint8_t* HWY_RESTRICT p) {
  const hn::Rebind<hwy::float16_t, DPiece> d_half;
  const auto bits = hn::Set(hn::FixedTag<uint64_t, 1>(), CollectHalfs<kPieces, kStride>(p));
  return hn::PromoteTo(DPiece(), hn::ResizeBitCast(d_half, bits));
}

// Each float in the 4 lanes of its piece.
HWY_INLINE VF Spread(VPiece v) {
  const DF df;
#if PRONK_PIECES == 1
  return hn::BroadcastLane<0>(hn::ResizeBitCast(df, v));
#else
  alignas(64) int32_t index[kFloats];
  for (size_t i = 0; i < kFloats; ++i) index[i] = static_cast<int32_t>(i / 4);
  return hn::TableLookupLanes(hn::ResizeBitCast(df, v), hn::SetTableIndices(df, index));
#endif
}

// --------------------------------------------------------------------------------------------------
// Dot products of codes (unsigned bytes) with activations, -127..127. All exact.

// sum[lane] + the four products of the lane. Codes at most 127.
HWY_INLINE VI32 Dot(VI32 sum, VU8 codes, VI8 x) {
  const DI32 d;
#if PRONK_WIDE
  return hn::SumOfMulQuadAccumulate(d, codes, x, sum);
#elif HWY_ARCH_X86
  // u8 x i8 products, added in pairs with saturation to i16: 2 * 127 * 127 < 32768.
  const DI16 d16;
  const VI16 pairs = hn::SatWidenMulPairwiseAdd(d16, codes, x);
  return hn::Add(sum, hn::WidenMulPairwiseAdd(d, pairs, hn::Set(d16, 1)));
#else
  return hn::SumOfMulQuadAccumulate(d, hn::BitCast(DI8(), codes), x, sum);
#endif
}

// Dot of both pairs. Codes at most 64.
HWY_INLINE VI32 Dot2(VI32 sum, VU8 codes0, VI8 x0, VU8 codes1, VI8 x1) {
#if HWY_ARCH_X86 && !PRONK_WIDE
  // Four products of at most 64 * 127 fit in i16, which saves half of the widening.
  const DI16 d16;
  const VI16 pairs = hn::Add(hn::SatWidenMulPairwiseAdd(d16, codes0, x0),
                             hn::SatWidenMulPairwiseAdd(d16, codes1, x1));
  return hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(d16, 1)));
#else
  return Dot(Dot(sum, codes0, x0), codes1, x1);
#endif
}

// The four products of each lane, times a small integer scale per piece (SpreadScales). On x86 the
// multiplication is part of the addition of pairs and costs nothing. Codes at most 127.
#if HWY_ARCH_X86
using VScale = VI16;
HWY_INLINE VI32 ScaledDot(VU8 codes, VI8 x, VScale scale) {
  return hn::WidenMulPairwiseAdd(DI32(), hn::SatWidenMulPairwiseAdd(DI16(), codes, x), scale);
}
#else
using VScale = VI32;
HWY_INLINE VI32 ScaledDot(VU8 codes, VI8 x, VScale scale) {
  return hn::Mul(Dot(hn::Zero(DI32()), codes, x), scale);
}
#endif

// sum[lane] + the four products of the lane, for signed weights, -128..127.
HWY_INLINE VI32 DotSigned(VI32 sum, VI8 weights, VI8 x) {
#if HWY_ARCH_X86
  // |w| is an unsigned byte, and w's sign goes to x: 2 * 128 * 127 < 32768.
  const VU8 magnitude = hn::BitCast(DU8(), hn::Abs(weights));
  return Dot(sum, magnitude, hn::IfNegativeThenNegOrUndefIfZero(weights, x));
#else
  return hn::SumOfMulQuadAccumulate(DI32(), weights, x, sum);
#endif
}

HWY_INLINE VU8 LowNibbles(VU8 v) { return hn::And(v, hn::Set(DU8(), uint8_t{15})); }
HWY_INLINE VU8 HighNibbles(VU8 v) { return hn::ShiftRight<4>(v); }

// --------------------------------------------------------------------------------------------------
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

// sum + dots * scales. |dots| at most 16383 in each lane.
template <bool kEvenOdd = false>
HWY_INLINE VF AddScaledDots(VF sum, const VI32 (&dots)[kDotVectors], const Floats8& scales) {
  const DF df;
#if PRONK_PIECES == 4
  alignas(64) static constexpr int32_t kIndex[2][16] = {
      {0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7},
      {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}};
  const VF scale = hn::TableLookupLanes(hn::ResizeBitCast(df, scales.part[0]),
                                        hn::SetTableIndices(df, kIndex[kEvenOdd]));
  return hn::MulAdd(hn::ConvertTo(df, AddNeighbours(dots[0], dots[1])), scale, sum);
#else
  for (size_t k = 0; k < kParts8; ++k) {
    const VI32* const four = dots + 4 * k;
    const VI32 added =
        AddNeighbours(AddNeighbours(four[0], four[1]), AddNeighbours(four[2], four[3]));
    sum = hn::MulAdd(hn::ConvertTo(df, added), scales.part[k], sum);
  }
  return sum;
#endif
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

// factor * scale * (sum of q) for each 32 of the 256 activations at i: what a minimum is multiplied
// with, or (factor = minus the zero point) the scale of codes with a zero point.
HWY_INLINE Floats8 LoadScaledSums(const ActivationRow& x, size_t i, float factor) {
  const D8 d;
  const hn::Repartition<int16_t, D8> d16;
  Floats8 sums = LoadScales(x, i);
  for (size_t k = 0; k < kParts8; ++k) {
    // Neighbouring sums of 16 make a sum of 32.
    const auto of_16 = hn::LoadU(d16, x.sums + i / 16 + k * hn::MaxLanes(d16));
    const auto of_32 = hn::WidenMulPairwiseAdd(hn::RebindToSigned<D8>(), of_16, hn::Set(d16, 1));
    sums.part[k] = hn::Mul(hn::Mul(sums.part[k], hn::Set(d, factor)), hn::ConvertTo(d, of_32));
  }
  return sums;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_SIMD_INL_H_
