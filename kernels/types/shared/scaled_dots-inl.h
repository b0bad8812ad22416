// Scales for the dot products of eight groups of 32 weights.
//
// The i32 dots of 256 weights are kDotVectors vectors, with a group in each 128-bit lane. Only the
// sum of a group's four lanes matters, so lanes are added before conversion to float until one
// vector is left (two with one 128-bit lane): pairs of vectors are packed to i16 and neighbours
// added, half of the work of converting and scaling each vector. Groups are assigned to 128-bit
// lanes so that they come out in order, or nearly:
//
//   kLanes128 1: vector v has group v                     out: 0 1 2 3, 4 5 6 7
//   kLanes128 2: vector v has groups v, v + 4             out: 0 1 2 3 4 5 6 7
//   kLanes128 4: vector v has groups 4v, 4v+1, ... 4v+3   two rows side by side: row_pairs32-inl.h
//   or (kEvenOdd)   groups v, v + 2, v + 4, v + 6
// (kEvenOdd is for types whose bytes hold nibbles of neighbouring groups.) Included once per
// instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_SCALED_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_SCALED_DOTS_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_SCALED_DOTS_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_SCALED_DOTS_INL_H_
#endif

#include "kernels/types/shared/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

constexpr size_t kDotVectors = 8 / kLanes128;

// The order of groups in separate blocks: the first group of vector v, and the distance of the
// groups of neighbouring 128-bit lanes.
constexpr size_t FirstGroup(size_t v) { return PRONK_VECTOR64 ? 4 * v : v; }
constexpr size_t kGroupStep = PRONK_VECTOR64 ? 1 : 4;

// Adds neighbouring lanes of a, then of b, one 128-bit lane after the other. |lanes| < 32768,
// unless kAny.
template <bool kAny = false>
HWY_INLINE VI32 AddNeighbours(VI32 a, VI32 b) {
#if HWY_ARCH_X86
#if PRONK_LANES128 == 2
  if constexpr (kAny) return VI32{_mm256_hadd_epi32(a.raw, b.raw)};
#elif PRONK_LANES128 == 1
  if constexpr (kAny) return VI32{_mm_hadd_epi32(a.raw, b.raw)};
#endif
  const DI16 d;
  return hn::WidenMulPairwiseAdd(DI32(), hn::ReorderDemote2To(d, a, b), hn::Set(d, 1));
#elif HWY_ARCH_ARM_A64
  return VI32{vpaddq_s32(a.raw, b.raw)};
#else
  const DI32 d;
  return hn::Add(hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a));
#endif
}

// Transposes the 4 x 4 lanes of each 128-bit lane of four vectors: lane 4p + k of vector i becomes
// lane 4p + i of vector k. So vectors with a group in each 128-bit lane become vectors with four
// bytes of each group.
template <class V>
HWY_INLINE void Transpose4x4(V& a, V& b, V& c, V& d) {
  const DI32 d32;
  const hn::Repartition<int64_t, DI32> d64;
  const hn::DFromV<V> dv;
  const auto lower = [&](V x, V y) HWY_ATTR {
    return hn::BitCast(d64, hn::InterleaveLower(d32, hn::BitCast(d32, x), hn::BitCast(d32, y)));
  };
  const auto upper = [&](V x, V y) HWY_ATTR {
    return hn::BitCast(d64, hn::InterleaveUpper(d32, hn::BitCast(d32, x), hn::BitCast(d32, y)));
  };
  const auto low_ab = lower(a, b), low_cd = lower(c, d);
  const auto high_ab = upper(a, b), high_cd = upper(c, d);
  a = hn::BitCast(dv, hn::InterleaveLower(d64, low_ab, low_cd));
  b = hn::BitCast(dv, hn::InterleaveUpper(d64, low_ab, low_cd));
  c = hn::BitCast(dv, hn::InterleaveLower(d64, high_ab, high_cd));
  d = hn::BitCast(dv, hn::InterleaveUpper(d64, high_ab, high_cd));
}

// Lane i is float number[i] of eight. If the eight floats are two vectors, all numbers belong to
// one vector.
HWY_INLINE VF PickFloats(const Floats8& eight, const int32_t (&number)[kFloatLanes]) {
  constexpr auto kLanes = static_cast<int32_t>(hn::MaxLanes(DF8()));
  alignas(64) int32_t lane[kFloatLanes];
  for (size_t i = 0; i < kFloatLanes; ++i) lane[i] = number[i] % kLanes;
  const VF part = hn::ResizeBitCast(DF(), eight.vectors[number[0] / kLanes]);
  return hn::TableLookupLanes(part, hn::SetTableIndices(DF(), lane));
}

// sum + a * b, in any lanes.
HWY_INLINE VF8 MulAdd(const Floats8& a, const Floats8& b, VF8 sum) {
  for (size_t k = 0; k < kVectors8; ++k) sum = hn::MulAdd(a.vectors[k], b.vectors[k], sum);
  return sum;
}

// a * factor (+ b)
HWY_INLINE Floats8 Mul(const Floats8& a, float factor) {
  Floats8 product;
  for (size_t k = 0; k < kVectors8; ++k) {
    product.vectors[k] = hn::Mul(a.vectors[k], hn::Set(DF8(), factor));
  }
  return product;
}
HWY_INLINE Floats8 MulAdd(const Floats8& a, float factor, const Floats8& b) {
  Floats8 sum;
  for (size_t k = 0; k < kVectors8; ++k) {
    sum.vectors[k] = hn::MulAdd(a.vectors[k], hn::Set(DF8(), factor), b.vectors[k]);
  }
  return sum;
}

// The first n of eight floats, then zeros, also in place of NaN.
HWY_INLINE Floats8 KeepFirst(const Floats8& a, size_t n) {
  Floats8 kept;
  for (size_t k = 0; k < kVectors8; ++k) {
    const size_t before = k * hn::MaxLanes(DF8());
    const auto mask = hn::FirstN(DF8(), n > before ? n - before : 0);
    kept.vectors[k] = hn::IfThenElseZero(mask, a.vectors[k]);
  }
  return kept;
}

#if PRONK_VECTOR64
// Byte i of the result is byte number(i) of 64 at p, or of 64 at q: 64 + number.
template <class Number>
HWY_INLINE VU8 PickBytes(const uint8_t* HWY_RESTRICT p, const uint8_t* HWY_RESTRICT q,
                         Number number) {
  alignas(64) uint8_t numbers[64];
  for (size_t i = 0; i < 64; ++i) numbers[i] = static_cast<uint8_t>(number(i));
  const DU8 d;
  return VU8{
      _mm512_permutex2var_epi8(hn::LoadU(d, p).raw, hn::Load(d, numbers).raw, hn::LoadU(d, q).raw)};
}
#endif

// Eight half floats (f16), kStride bytes apart.
template <size_t kStride>
HWY_INLINE Floats8 LoadEightHalfs(const uint8_t* HWY_RESTRICT p) {
#if PRONK_VECTOR64
  // Taken from the vectors that nibbles are loaded into (row_pairs32-inl.h): separate loads would
  // cost more.
  if constexpr (kStride >= 16 && 3 * kStride + 2 <= 64) {
    const auto halfs = PickBytes(p, p + 4 * kStride, [](size_t i) {
      return i / 2 % 8 / 4 * 64 + i / 2 % 4 * kStride + i % 2;
    });
    return {{hn::PromoteTo(DF8(), hn::ResizeBitCast(hn::Rebind<hwy::float16_t, DF8>(), halfs))}};
  }
#endif
  Floats8 floats;
  const uint64_t low = CollectHalfs<4, kStride>(p);
  const uint64_t high = CollectHalfs<4, kStride>(p + 4 * kStride);
  const hn::Rebind<hwy::float16_t, DF8> d_half;
#if PRONK_LANES128 == 1
  const hn::FixedTag<uint64_t, 1> d_bits;
  floats.vectors[0] = hn::PromoteTo(DF8(), hn::BitCast(d_half, hn::Set(d_bits, low)));
  floats.vectors[1] = hn::PromoteTo(DF8(), hn::BitCast(d_half, hn::Set(d_bits, high)));
#else
  const hn::FixedTag<uint64_t, 2> d_bits;
  const auto bits = hn::Dup128VecFromValues(d_bits, low, high);
  floats.vectors[0] = hn::PromoteTo(DF8(), hn::BitCast(d_half, bits));
#endif
  return floats;
}

// The scales of the 256 activations at i.
HWY_INLINE Floats8 LoadScales(const ActivationRow& x, size_t i) {
  Floats8 scales;
  for (size_t k = 0; k < kVectors8; ++k) {
    scales.vectors[k] = hn::LoadU(DF8(), x.scales + i / 32 + k * hn::MaxLanes(DF8()));
  }
  return scales;
}

// scale * (sum of q) for each 32 of the 256 activations at i, which minimums multiply.
HWY_INLINE Floats8 LoadScaledSums(const ActivationRow& x, size_t i) {
  const DF8 d;
  const hn::Repartition<int16_t, DF8> d16;
  Floats8 sums = LoadScales(x, i);
  for (size_t k = 0; k < kVectors8; ++k) {
    // Neighbouring sums of 16 make a sum of 32.
    const auto of_16 = hn::LoadU(d16, x.sums + i / 16 + k * hn::MaxLanes(d16));
    const auto of_32 = hn::WidenMulPairwiseAdd(hn::RebindToSigned<DF8>(), of_16, hn::Set(d16, 1));
    sums.vectors[k] = hn::Mul(sums.vectors[k], hn::ConvertTo(d, of_32));
  }
  return sums;
}

HWY_INLINE void StoreFloats(const Floats8& floats, float* HWY_RESTRICT out) {
  for (size_t k = 0; k < kVectors8; ++k) {
    hn::StoreU(floats.vectors[k], DF8(), out + k * hn::MaxLanes(DF8()));
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_SCALED_DOTS_INL_H_
