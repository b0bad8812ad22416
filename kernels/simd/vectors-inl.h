// The vectors of products, and the operations on them that every weight type needs. Included once
// per instruction set (Highway's foreach_target).
//
// A vector of bytes has kLanes128 128-bit lanes of 16 bytes. ("Lane" alone is one of f32 or i32.) A
// dot product of two byte vectors gives one i32 for each 4 bytes, so 4 lanes belong to each 128-bit
// lane, and the scale of a 128-bit lane is in 4 lanes:
//
//   bytes    | 128-bit lane 0: 16 codes | 128-bit lane 1         | ...
//   i32, f32 | lane 0..3                | lane 4..7              |
//   scales   | s0     s0     s0     s0  | s1    s1     s1     s1 |
#if defined(PRONK_KERNELS_SIMD_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_SIMD_VECTORS_INL_H_
#undef PRONK_KERNELS_SIMD_VECTORS_INL_H_
#else
#define PRONK_KERNELS_SIMD_VECTORS_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/simd/targets.h"

// 128-bit lanes of a vector: 4 (64 bytes) where one instruction permutes all bytes (AVX-512 VBMI).
// On AVX-512 without VBMI, vectors of 32 bytes are faster.
#undef PRONK_LANES128
#undef PRONK_VECTOR64
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define PRONK_LANES128 4
#define PRONK_VECTOR64 1
#elif HWY_MAX_BYTES >= 32
#define PRONK_LANES128 2
#define PRONK_VECTOR64 0
#else
#define PRONK_LANES128 1
#define PRONK_VECTOR64 0
#endif

// On x86: one instruction adds up four u8 x i8 products in i32.
#undef PRONK_VNNI
#if PRONK_VECTOR64 || defined(PRONK_AVX_VNNI)
#define PRONK_VNNI 1
#else
#define PRONK_VNNI 0
#endif

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kLanes128 = PRONK_LANES128;
constexpr size_t kVectorBytes = kLanes128 * 16;
constexpr size_t kFloatLanes = kLanes128 * 4;  // lanes of f32 and i32

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
using DF8 = hn::CappedTag<float, 8>;
constexpr size_t kVectors8 = 8 / hn::MaxLanes(DF8());
using VF8 = hn::Vec<DF8>;
struct Floats8 {
  VF8 vectors[kVectors8];
};

using DU8x16 = hn::FixedTag<uint8_t, 16>;
using DU16x8 = hn::FixedTag<uint16_t, 8>;

// The sums of the product of a row with a token: the product is the sum of all lanes of both.
// offsets has the terms of minimums and zero points, which need no weights.
struct RowSums {
  VF products;
  VF8 offsets;
};
// RowSums of two rows: one in the lower half, the other in the upper half.
struct PairSums {
  VF products, offsets;
};

// Loads. They touch no byte outside of [p, end of the last number that the comment names).

// Loads kLanes128 times 16 bytes, `stride` bytes apart.
HWY_INLINE VU8 LoadLanes128(const uint8_t* HWY_RESTRICT p, [[maybe_unused]] size_t stride) {
  const DU8x16 d16;
#if PRONK_VECTOR64
  const hn::Half<DU8> d32;
  const auto low = hn::Combine(d32, hn::LoadU(d16, p + stride), hn::LoadU(d16, p));
  const auto high =
      hn::Combine(d32, hn::LoadU(d16, p + 3 * stride), hn::LoadU(d16, p + 2 * stride));
  return hn::Combine(DU8(), high, low);
#elif PRONK_LANES128 == 2
  return hn::Combine(DU8(), hn::LoadU(d16, p + stride), hn::LoadU(d16, p));
#else
  return hn::LoadU(d16, p);
#endif
}
template <size_t kStride>
HWY_INLINE VU8 LoadLanes128(const uint8_t* HWY_RESTRICT p) {
  if constexpr (kStride == 0) return hn::LoadDup128(DU8(), p);  // one load, no insertions
#if PRONK_VECTOR64
  const DU8 d;
  if constexpr (kStride == 16) return hn::LoadU(d, p);
  if constexpr (kStride > 16 && kStride <= 24) {
    // Two loads and one byte permutation. The first 64 bytes hold 128-bit lanes 0 to 2, which the
    // permutation moves to their places. In the 64 bytes that end with lane 3, lane 3 is in its
    // place.
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
#endif
  return LoadLanes128(p, kStride);
}

// LoadLanes128 for activations.
template <size_t kStride>
HWY_INLINE VI8 LoadLanes128(const int8_t* HWY_RESTRICT p) {
  return hn::BitCast(DI8(), LoadLanes128<kStride>(reinterpret_cast<const uint8_t*>(p)));
}

// The start value of a sum. On Arm, copying a register occupies a vector unit; loading does not.
HWY_INLINE VI32 LoadStart(const VI32& v) {
#if HWY_ARCH_ARM_A64
  VI32 start;
  asm volatile("ldr %q0, %1" : "=w"(start.raw) : "m"(v.raw));
  return start;
#else
  return v;
#endif
}

// Integers below 2^22 as floats, from a sum that starts with kFloatStart: on Arm such a sum has the
// bits of a float, and subtracting kFloatStart takes half the time of a conversion.
constexpr int32_t kFloatStart = HWY_ARCH_ARM_A64 ? 0x4B400000 : 0;
HWY_INLINE VF ToFloats(VI32 sum) {
  if (!HWY_ARCH_ARM_A64) return hn::ConvertTo(DF(), sum);
  return hn::Sub(hn::BitCast(DF(), sum), hn::Set(DF(), 12582912.0f));
}

// Stores 128-bit lane p at to(p).
template <class To>
HWY_INLINE void StoreLanes128(VI8 v, To to) {
  const hn::FixedTag<int8_t, 16> d16;
#if PRONK_VECTOR64
  hn::StoreU(hn::ExtractBlock<0>(v), d16, to(0));
  hn::StoreU(hn::ExtractBlock<1>(v), d16, to(1));
  hn::StoreU(hn::ExtractBlock<2>(v), d16, to(2));
  hn::StoreU(hn::ExtractBlock<3>(v), d16, to(3));
#elif PRONK_LANES128 == 2
  hn::StoreU(hn::LowerHalf(d16, v), d16, to(0));
  hn::StoreU(hn::UpperHalf(d16, v), d16, to(1));
#else
  hn::StoreU(v, d16, to(0));
#endif
}

// Loads two vectors: LoadLanes128 at p and at p + 16.
template <size_t kStride, typename T>
HWY_INLINE void LoadLanes128Pair(const T* HWY_RESTRICT p, hn::Vec<hn::Rebind<T, DU8>>& first,
                                 hn::Vec<hn::Rebind<T, DU8>>& second) {
#if PRONK_VECTOR64
  if constexpr (kStride == 32) {  // all bytes of two vectors: even and odd 128-bit lanes
    const hn::Rebind<T, DU8> d;
    const auto low = hn::LoadU(d, p);
    const auto high = hn::LoadU(d, p + 64);
    first = decltype(low){_mm512_shuffle_i32x4(low.raw, high.raw, 0x88)};
    second = decltype(low){_mm512_shuffle_i32x4(low.raw, high.raw, 0xDD)};
    return;
  }
#endif
  first = LoadLanes128<kStride>(p);
  second = LoadLanes128<kStride>(p + 16);
}

// Stripes of 32 bytes, kStride bytes apart, fill StripeVectors() vectors. LoadStripes loads vector
// v: two stripes, one stripe or half a stripe.
constexpr size_t StripeVectors(size_t stripes) { return stripes * 2 / kLanes128; }
template <size_t kStride>
HWY_INLINE VU8 LoadStripes(const uint8_t* HWY_RESTRICT p, size_t v) {
  const DU8 d;
#if PRONK_LANES128 == 4
  const hn::Half<DU8> d32;
  p += 2 * v * kStride;
  if constexpr (kStride == 32) return hn::LoadU(d, p);
  return hn::Combine(d, hn::LoadU(d32, p + kStride), hn::LoadU(d32, p));
#else
  return hn::LoadU(d, p + v * kLanes128 / 2 * kStride + v * kLanes128 % 2 * 16);
#endif
}
template <size_t kStride>
HWY_INLINE VI8 LoadStripes(const int8_t* HWY_RESTRICT p, size_t v) {
  return hn::BitCast(DI8(), LoadStripes<kStride>(reinterpret_cast<const uint8_t*>(p), v));
}

// The half float (f16) at p, in all lanes of a vector. Reads 2 bytes.
template <class D>
HWY_INLINE hn::Vec<D> SetHalf(D d, const uint8_t* HWY_RESTRICT p) {
  uint16_t bits;
  hwy::CopyBytes<2>(p, &bits);
  // The conversion stays in vector registers; four lanes are converted faster than sixteen.
  using D8orFewer = hn::CappedTag<float, hn::MaxLanes(d) == 16 ? 4 : 8>;
  const hn::Rebind<uint16_t, D8orFewer> d_bits;
  const auto halfs = hn::BitCast(hn::Rebind<hwy::float16_t, D8orFewer>(), hn::Set(d_bits, bits));
  const auto floats = hn::ResizeBitCast(d, hn::PromoteTo(D8orFewer(), halfs));
  return hn::MaxLanes(d) == 16 ? hn::BroadcastLane<0>(floats) : floats;
}

// Each lane's ue4m3 (half.h) as a float, divided by kUe4m3Unit. A ue4m3 has the bits of an f16 with
// another bias.
constexpr float kUe4m3Unit = 256.0f;
template <class D>
HWY_INLINE hn::Vec<D> PromoteUe4m3(D d, hn::Vec<hn::Rebind<uint8_t, D>> bytes) {
  const hn::Rebind<uint8_t, D> d8;
  const hn::Rebind<uint16_t, D> d16;
  const auto largest = hn::Set(d8, uint8_t{0x7F});  // means 0
  const auto seven = hn::And(hn::IfThenZeroElse(hn::Eq(bytes, largest), bytes), largest);
  const auto halfs = hn::ShiftLeft<7>(hn::PromoteTo(d16, seven));
  return hn::PromoteTo(d, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), halfs));
}

// The bits of n half floats (f16), kStride bytes apart, as one number. Integer units make it, which
// are idle, since the units that shuffle vectors are busy (Zen 4: 15 cycles for 256 weights of Q4_0
// instead of 19 with unpack instructions, 17 by permuting words).
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

// A float per 128-bit lane, side by side.
using DPerLane128 = hn::FixedTag<float, kLanes128>;
using VPerLane128 = hn::Vec<DPerLane128>;

// kLanes128 half floats, kStride bytes apart.
template <size_t kStride>
HWY_INLINE VPerLane128 LoadHalfs(const uint8_t* HWY_RESTRICT p) {
  const hn::Rebind<hwy::float16_t, DPerLane128> d_half;
  const auto bits = hn::Set(hn::FixedTag<uint64_t, 1>(), CollectHalfs<kLanes128, kStride>(p));
  return hn::PromoteTo(DPerLane128(), hn::ResizeBitCast(d_half, bits));
}

// Copies each float to the 4 lanes of its 128-bit lane.
HWY_INLINE VF BroadcastPerLane128(VPerLane128 v) {
  const DF df;
#if PRONK_LANES128 == 1
  return hn::BroadcastLane<0>(hn::ResizeBitCast(df, v));
#else
  alignas(64) int32_t index[kFloatLanes];
  for (size_t i = 0; i < kFloatLanes; ++i) index[i] = static_cast<int32_t>(i / 4);
  return hn::TableLookupLanes(hn::ResizeBitCast(df, v), hn::SetTableIndices(df, index));
#endif
}

// Dot products of codes (unsigned bytes) with activations, -127..127. They are exact.

// sum[lane] + the four products of the lane's signed bytes. Not for x86.
HWY_INLINE VI32 DotBytes(VI32 sum, VI8 a, VI8 b) {
#ifdef PRONK_NEON_DOT
  // Before version 16, clang offers the intrinsic only in files compiled for it as a whole.
  asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  return sum;
#else
  return hn::SumOfMulQuadAccumulate(DI32(), a, b, sum);
#endif
}

#ifdef PRONK_NEON_DOT
// sum[lane] + the four products of the lane of a with lane i of b.
HWY_INLINE VI32 DotLane(VI32 sum, VI8 a, VI8 b, size_t i) {
  if (i == 0) asm("sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  if (i == 1) asm("sdot %0.4s, %1.16b, %2.4b[1]" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  if (i == 2) asm("sdot %0.4s, %1.16b, %2.4b[2]" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  if (i == 3) asm("sdot %0.4s, %1.16b, %2.4b[3]" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  return sum;
}
#endif

#ifdef PRONK_NEON_I8MM
// Dot products of two rows of eight bytes each: lane 2 i + j gets the products of rows a_i and b_j.
HWY_INLINE VI32 DotPairs(VI32 sum, VI8 a, VI8 b) {
  asm("smmla %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(a.raw), "w"(b.raw));
  return sum;
}
#endif

#if PRONK_VNNI
// Dot products of any unsigned and any signed bytes.
HWY_INLINE VI32 DotBytes(VI32 sum, VU8 a, VI8 b) {
#ifdef PRONK_AVX_VNNI
  return VI32{_mm256_dpbusd_avx_epi32(sum.raw, a.raw, b.raw)};
#else
  return hn::SumOfMulQuadAccumulate(DI32(), a, b, sum);
#endif
}
#endif

#if HWY_ARCH_X86
// sum[lane] + the two products of the lane.
HWY_INLINE VI32 DotWords(VI32 sum, VI16 a, VI16 b) {
#ifdef PRONK_AVX_VNNI
  return VI32{_mm256_dpwssd_avx_epi32(sum.raw, a.raw, b.raw)};
#else
  VI32 unused = hn::Zero(DI32());
  return hn::ReorderWidenMulAccumulate(DI32(), a, b, sum, unused);
#endif
}
#endif

// sum[lane] + the four products of the lane. Codes at most 127.
HWY_INLINE VI32 Dot(VI32 sum, VU8 codes, VI8 x) {
#if PRONK_VNNI
  return DotBytes(sum, codes, x);
#elif HWY_ARCH_X86
  // u8 x i8 products, added in pairs with saturation to i16: 2 * 127 * 127 < 32768.
  const DI16 d16;
  const VI16 pairs = hn::SatWidenMulPairwiseAdd(d16, codes, x);
  return hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(d16, 1)));
#else
  return DotBytes(sum, hn::BitCast(DI8(), codes), x);
#endif
}

// sum[lane] + the four products of the lane for each of two pairs of vectors. Codes at most 64.
HWY_INLINE VI32 Dot2(VI32 sum, VU8 codes0, VI8 x0, VU8 codes1, VI8 x1) {
#if HWY_ARCH_X86 && !PRONK_VNNI
  // Four products of at most 64 * 127 fit in i16, which saves half of the widening.
  const DI16 d16;
  const VI16 pairs = hn::Add(hn::SatWidenMulPairwiseAdd(d16, codes0, x0),
                             hn::SatWidenMulPairwiseAdd(d16, codes1, x1));
  return hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(d16, 1)));
#else
  return Dot(Dot(sum, codes0, x0), codes1, x1);
#endif
}

// sum[lane] + the four products of the lane, for signed weights, -128..127.
HWY_INLINE VI32 DotSigned(VI32 sum, VI8 weights, VI8 x) {
#if HWY_ARCH_X86
  // |w| is an unsigned byte, and w's sign goes to x: 2 * 128 * 127 < 32768.
  const VU8 magnitude = hn::BitCast(DU8(), hn::Abs(weights));
  return Dot(sum, magnitude, hn::IfNegativeThenNegOrUndefIfZero(weights, x));
#else
  return DotBytes(sum, weights, x);
#endif
}

// Bytes shifted right by kBits, or left if negative; bits from the neighbouring byte are not
// masked.
template <int kBits>
HWY_INLINE VU8 ShiftBits(VU8 v) {
  const DU16 d;
  if constexpr (kBits > 0) return hn::BitCast(DU8(), hn::ShiftRight<kBits>(hn::BitCast(d, v)));
  if constexpr (kBits < 0) return hn::BitCast(DU8(), hn::ShiftLeft<-kBits>(hn::BitCast(d, v)));
  return v;
}

HWY_INLINE VU8 Mask(VU8 v, uint8_t mask) { return hn::And(v, hn::Set(DU8(), mask)); }

// a | (b & mask), where no bit of a is in the mask.
HWY_INLINE VU8 AddBits(VU8 a, VU8 b, uint8_t mask) {
  const VU8 bits = hn::Set(DU8(), mask);
  return HWY_ARCH_ARM_A64 ? hn::BitwiseIfThenElse(bits, b, a) : hn::OrAnd(a, b, bits);
}

// The four two-bit codes of each byte.
HWY_INLINE void TwoBitCodes(VU8 qs, VU8 (&codes)[4]) {
  codes[0] = Mask(qs, 3);
  codes[1] = Mask(ShiftBits<2>(qs), 3);
  codes[2] = Mask(ShiftBits<4>(qs), 3);
  codes[3] = hn::ShiftRight<6>(qs);
}

HWY_INLINE VU8 LowNibbles(VU8 v) { return hn::And(v, hn::Set(DU8(), uint8_t{15})); }
HWY_INLINE VU8 HighNibbles(VU8 v) { return hn::ShiftRight<4>(v); }

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_SIMD_VECTORS_INL_H_
