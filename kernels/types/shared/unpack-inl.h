// Helpers for every weight type, and for unpacking to plain bytes. Unpacking to bytes uses vectors
// of 16 bytes on every instruction set, since a weight is unpacked once per batch. (Plain loops
// over bytes are slow, since GCC unrolls them before it could vectorize them: Q4_0 took 1.6 cycles
// a weight.) Included once per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_UNPACK_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_UNPACK_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_UNPACK_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "gguf/blocks.h"
#include "gguf/dtype.h"
#include "kernels/half.h"
#include "kernels/ops/rounding.h"
#include "kernels/simd/vectors-inl.h"

// The way bytes are multiplied. x86 without VNNI adds neighbours in i16, saturating (maddubs). With
// VNNI one side must be unsigned, so it gets a bias.
#undef PRONK_MADDUBS
#undef PRONK_BIAS
#define PRONK_MADDUBS (HWY_ARCH_X86 && !PRONK_VNNI)
#define PRONK_BIAS PRONK_VNNI

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// The form of a quantized type in a panel: weight = scale * w (+ minimum), where w is an integer of
// kBits bits, -2^(kBits-1) and up. Each 32 weights have kScales scales and kMins minimums: one for
// the 32, or one for each half.
template <int kBits, size_t kScalesPer32, size_t kMinsPer32>
struct Int8FormOfBits {
  static constexpr size_t kScales = kScalesPer32;
  static constexpr size_t kMins = kMinsPer32;
#if PRONK_MADDUBS
  // Unsigned codes w + kZeroPoint of as few bits as possible: kSumsInI16 sums of two products with
  // an activation of -127..127 fit in i16. With eight bits not even one sum fits: codes stay
  // signed, and their sign moves to the activation.
  static constexpr bool kSigned = kBits == 8;
  static constexpr size_t kSumsInI16 = kBits >= 7 ? 1 : size_t{8} >> (kBits - 4);
  static constexpr int kZeroShift = 8 - kBits;
  static constexpr uint8_t kZeroPoint = kSigned ? 0 : 128 >> kZeroShift;
#else
  static constexpr uint8_t kZeroPoint = 0;
#endif
};
// The form for integers w from kLowest to kHighest. Where the number of bits makes no difference,
// it is 8, so that types share a kernel.
template <int kLowest, int kHighest>
constexpr int BitsOf() {
  static_assert(-128 <= kLowest && kLowest <= 0 && 0 <= kHighest && kHighest <= 127,
                "a panel has signed bytes: scale * w, w from -128 to 127");
  int bits = 4;
  while (kLowest < -(1 << (bits - 1)) || kHighest >= 1 << (bits - 1)) ++bits;
  return PRONK_MADDUBS ? bits : 8;
}
template <int kLowest, int kHighest, size_t kScales = 1, size_t kMins = 0>
using Int8Form = Int8FormOfBits<BitsOf<kLowest, kHighest>(), kScales, kMins>;

// 256 weights of a row, before they are packed: scale * weight (+ minimum).
struct Bytes256 {
  alignas(64) int8_t weights[256];
  float scales[16];  // per 32 or 16 weights, as the type's PanelForm says
  float mins[16];
};

// Converts an f16 with the CPU's own instruction.
HWY_INLINE float HalfToFloat(uint16_t bits) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<hwy::float16_t, 4> d_half;
  const auto halfs = hn::ResizeBitCast(d_half, hn::Set(hn::FixedTag<uint32_t, 1>(), bits));
  return hn::GetLane(hn::PromoteTo(d, halfs));
}

// The definition of a weight type by integers and scales: the oracle of the SIMD code's tests. A
// group is kGroup weights, 16 or 32. A type has
//   static int Weight(const Block& block, int j)         the integer of weight j
// or, for the integers of group g at a time,
//   static void Integers(const Block& block, int g, int* integers)
// and, unless a block's only factor is its f16 d,
//   static float GroupScale(const Block& block, int g)   the scale of group g
//   static float GroupMin(const Block& block, int g)     is added to each weight of group g
template <class Type, class Block, int kGroup = 32>
struct Definition {
  static void Integers(const Block& block, int g, int* integers) {
    for (int i = 0; i < kGroup; ++i) integers[i] = Type::Weight(block, kGroup * g + i);
  }
  static float GroupScale(const Block& block, int /*g*/) { return F16ToF32(block.d); }
  // Adding -0 keeps the sign of zeros.
  static float GroupMin(const Block& /*block*/, int /*g*/) { return -0.0f; }

  // A weight is scale * integer + min.
  static void Dequantize(const Block& block, float* out) {
    int integers[kGroup];
    for (int g = 0; g < Block::kWeights / kGroup; ++g) {
      Type::Integers(block, g, integers);
      const float scale = Type::GroupScale(block, g), min = Type::GroupMin(block, g);
      for (const int integer : integers) *out++ = scale * static_cast<float>(integer) + min;
    }
  }
  // The definition of the product of a block with activations x.scales * x.q: exact sums of
  // integers, times both scales. The minimum needs no weights: it multiplies the sum of the
  // activations.
  static double DotReference(const Block& block, const ActivationRow& x) {
    int integers[kGroup];
    double product = 0;
    for (int g = 0; g < Block::kWeights / kGroup; ++g) {
      Type::Integers(block, g, integers);
      const int8_t* const q = x.q + kGroup * g;
      int dot = 0, sum_of_q = 0;
      for (int i = 0; i < kGroup; ++i) dot += integers[i] * q[i], sum_of_q += q[i];
      const double scale = Type::GroupScale(block, g), min = Type::GroupMin(block, g);
      product += double{x.scales[kGroup * g / 32]} * (scale * dot + min * sum_of_q);
    }
    return product;
  }
};

using VU8x16 = hn::Vec<DU8x16>;

HWY_INLINE VU8x16 Load16(const uint8_t* p) { return hn::LoadU(DU8x16(), p); }

// Moves kCount bits of each byte from bit kFirst to bit kTo.
template <int kFirst, int kCount, int kTo = 0>
HWY_INLINE VU8x16 Bits(VU8x16 v) {
  const DU8x16 d;
  const DU16x8 d16;
  auto words = hn::BitCast(d16, v);  // bits that come from the neighbouring byte are masked
  if constexpr (kFirst > kTo) words = hn::ShiftRight<kFirst - kTo>(words);
  if constexpr (kFirst < kTo) words = hn::ShiftLeft<kTo - kFirst>(words);
  return hn::And(hn::BitCast(d, words), hn::Set(d, ((1 << kCount) - 1) << kTo));
}

// weights[i] = codes[i] - zero
HWY_INLINE void StoreWeights(VU8x16 codes, int zero, int8_t* HWY_RESTRICT weights) {
  const hn::RebindToSigned<DU8x16> d;
  const auto centered = hn::Sub(hn::BitCast(d, codes), hn::Set(d, static_cast<int8_t>(zero)));
  hn::StoreU(centered, d, weights);
}

// out[i] = factor * integers[i] for i < n, a multiple of 8.
HWY_INLINE void StoreScaled(const int8_t* HWY_RESTRICT integers, size_t n, float factor,
                            float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 8> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    const auto lanes =
        hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), hn::LoadU(d8, integers + i));
    hn::StoreU(hn::Mul(hn::ConvertTo(d, lanes), hn::Set(d, factor)), d, out + i);
  }
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_UNPACK_INL_H_
