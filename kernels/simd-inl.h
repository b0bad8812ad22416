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
struct Floats8 {
  hn::Vec<D8> part[kParts8];
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

// The same for activations.
template <size_t kStride>
HWY_INLINE VI8 LoadPieces(const int8_t* HWY_RESTRICT p) {
  return hn::BitCast(DI8(), LoadPieces<kStride>(reinterpret_cast<const uint8_t*>(p)));
}

// One float per piece, kStride floats apart, in the 4 lanes of its piece.
template <size_t kStride>
HWY_INLINE VF SpreadFloats(const float* HWY_RESTRICT p) {
  const DF df;
#if PRONK_PIECES == 1
  return hn::Set(df, *p);
#else
  static constexpr auto kIndex = [] {
    std::array<int32_t, kFloats> index{};
    for (size_t i = 0; i < kFloats; ++i) index[i] = static_cast<int32_t>(i / 4 * kStride);
    return index;
  }();
  const hn::FixedTag<float, kPieces * kStride> d;
  return hn::TableLookupLanes(hn::ResizeBitCast(df, hn::LoadU(d, p)),
                              hn::SetTableIndices(df, kIndex.data()));
#endif
}

// The same from eight floats, of which piece p gets number first + p * kStride.
template <size_t kStride>
HWY_INLINE VF SpreadOfEight(const Floats8& floats, size_t first) {
  const DF df;
  alignas(64) int32_t index[kFloats];
  for (size_t i = 0; i < kFloats; ++i)
    index[i] = static_cast<int32_t>((first + i / 4 * kStride) % kFloats);
  return hn::TableLookupLanes(hn::ResizeBitCast(df, floats.part[first / kFloats % kParts8]),
                              hn::SetTableIndices(df, index));
}

// sums plus the eight floats, in any lanes.
HWY_INLINE VF AddEight(VF sums, const Floats8& floats) {
  const DF df;
  for (const auto part : floats.part) {
    sums = hn::Add(sums, hn::ZeroExtendResizeBitCast(df, D8(), part));
  }
  return sums;
}

// The half float (f16) at p, in all lanes of a vector. Reads 2 bytes.
template <class D>
HWY_INLINE hn::Vec<D> SetHalf(D d, const uint8_t* HWY_RESTRICT p) {
  uint16_t bits;
  hwy::CopyBytes<2>(p, &bits);
  const hn::Rebind<uint16_t, D> d_bits;
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), hn::Set(d_bits, bits)));
}

// One half float (f16) per piece, kStride bytes apart, in the 4 lanes of its piece. May read 16
// bytes from each.
template <size_t kStride>
HWY_INLINE VF SpreadHalfs(const uint8_t* HWY_RESTRICT p) {
  const DF df;
#if PRONK_PIECES == 1
  return SetHalf(df, p);
#else
  const DU16x8 d16;
  const auto halfs = [p](size_t piece) {
    return hn::BitCast(DU16x8(), hn::LoadU(DU8x16(), p + piece * kStride));
  };
  const auto low = hn::InterleaveLower(d16, halfs(0), halfs(1));
#if PRONK_PIECES == 2
  const hn::FixedTag<hwy::float16_t, 4> d_half;
  const auto floats = hn::PromoteTo(hn::FixedTag<float, 4>(), hn::ResizeBitCast(d_half, low));
  alignas(32) static constexpr int32_t kIndex[8] = {0, 0, 0, 0, 1, 1, 1, 1};
  return hn::TableLookupLanes(hn::ResizeBitCast(df, floats), hn::SetTableIndices(df, kIndex));
#else
  const hn::FixedTag<uint32_t, 4> d32;
  const hn::Rebind<uint16_t, DF> d_bits;
  const auto high = hn::InterleaveLower(d16, halfs(2), halfs(3));
  const auto four = hn::InterleaveLower(d32, hn::BitCast(d32, low), hn::BitCast(d32, high));
  alignas(32) static constexpr uint16_t kIndex[16] = {0, 0, 0, 0, 1, 1, 1, 1,
                                                      2, 2, 2, 2, 3, 3, 3, 3};
  const auto spread =
      hn::TableLookupLanes(hn::ResizeBitCast(d_bits, four), hn::SetTableIndices(d_bits, kIndex));
  return hn::PromoteTo(df, hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), spread));
#endif
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
HWY_INLINE VU8 HighNibbles(VU8 v) {
  const DU16 d;
  return LowNibbles(hn::BitCast(DU8(), hn::ShiftRight<4>(hn::BitCast(d, v))));
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_SIMD_INL_H_
