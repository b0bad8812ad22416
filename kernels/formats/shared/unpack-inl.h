// What unpacking weights to plain bytes needs for more than one family of types. Vectors of 16
// bytes serve every instruction set: rows of blocks are short, and a weight is unpacked once per
// batch. Loops over bytes would do in principle, but GCC unrolls them before it could vectorize
// them: Q4_0 took 1.6 cycles a weight. Included once per instruction set.
#if defined(PRONK_KERNELS_FORMATS_SHARED_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_SHARED_UNPACK_INL_H_
#undef PRONK_KERNELS_FORMATS_SHARED_UNPACK_INL_H_
#else
#define PRONK_KERNELS_FORMATS_SHARED_UNPACK_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "gguf/dtype.h"
#include "kernels/ops/quantize.h"
#include "kernels/simd/vectors-inl.h"

// How bytes are multiplied. On x86 without VNNI neighbours are added up in i16, saturating
// (maddubs). With VNNI one side must be unsigned (a bias).
#undef PRONK_MADDUBS
#undef PRONK_BIAS
#define PRONK_MADDUBS (HWY_ARCH_X86 && !PRONK_VNNI)
#define PRONK_BIAS PRONK_VNNI

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// How a quantized type looks in a panel: weight = scale * w (+ minimum), where w is an integer of
// kBits bits, -2^(kBits-1) and up. Each 32 weights have kScales scales and kMins minimums: one for
// all of them, or one for each half.
template <int kBits, size_t kScalesPer32, size_t kMinsPer32>
struct PanelForm {
  static constexpr size_t kScales = kScalesPer32;
  static constexpr size_t kMins = kMinsPer32;
#if PRONK_MADDUBS
  // Unsigned codes w + kZero of as few bits as possible: so many sums of two products with an
  // activation of -127..127 fit in i16. With eight bits not even one does: those stay signed, and
  // their sign goes to the activation.
  static constexpr bool kSigned = kBits == 8;
  static constexpr size_t kRun = kBits >= 7 ? 1 : size_t{8} >> (kBits - 4);
  static constexpr int kZeroShift = 8 - kBits;
  static constexpr uint8_t kZero = kSigned ? 0 : 128 >> kZeroShift;
#else
  static constexpr uint8_t kZero = 0;
#endif
};
// Where the number of bits makes no difference there is one kernel for all.
template <int kBits, size_t kScales = 1, size_t kMins = 0>
using Int8Form = PanelForm<PRONK_MADDUBS ? kBits : 8, kScales, kMins>;

// 256 weights of a row, as panels are made of them: scale * weight (+ minimum).
struct Bytes256 {
  alignas(64) int8_t weights[256];
  float scales[16];  // per 32 or 16 weights, as the type's Form says
  float mins[16];
};

// The value of an f16, by the CPU's own conversion.
HWY_INLINE float HalfToFloat(uint16_t bits) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<hwy::float16_t, 4> d_half;
  const auto halfs = hn::ResizeBitCast(d_half, hn::Set(hn::FixedTag<uint32_t, 1>(), bits));
  return hn::GetLane(hn::PromoteTo(d, halfs));
}

using VU8x16 = hn::Vec<DU8x16>;

HWY_INLINE VU8x16 Load16(const uint8_t* p) { return hn::LoadU(DU8x16(), p); }

// The kCount bits from bit kFirst of each byte on, at bit kTo of the result.
template <int kFirst, int kCount, int kTo = 0>
HWY_INLINE VU8x16 Bits(VU8x16 v) {
  const DU8x16 d;
  const DU16x8 d16;
  auto words = hn::BitCast(d16, v);  // what comes in from the neighbour is masked
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

// out[i] = factor * integers[i] for n of them, a multiple of 8.
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

// The values of 32 nibbles: low ones, then high ones.
HWY_INLINE void LookUpNibbles(const uint8_t* HWY_RESTRICT qs, const std::array<int8_t, 16>& values,
                              int8_t* HWY_RESTRICT weights) {
  const hn::RebindToSigned<DU8x16> d;
  const auto table = hn::LoadU(d, values.data());
  const VU8x16 nibbles = Load16(qs);
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(d, Bits<0, 4>(nibbles))), d, weights);
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(d, Bits<4, 4>(nibbles))), d, weights + 16);
}

// 256 codes of two bits: 32 bytes, in two parts of 16, hold four runs of 32 weights. Calls
// each(run, part, codes, where their weights belong) for 16 weights at a time.
template <class Each>
HWY_INLINE void UnpackTwoBits(const uint8_t (&qs)[64], int8_t* HWY_RESTRICT weights, Each each) {
  for (size_t i = 0; i < 4; ++i) {
    const VU8x16 bytes = Load16(qs + 16 * i);
    const size_t run = i / 2 * 4, part = i % 2;
    int8_t* const out = weights + 32 * run + 16 * part;
    each(run, part, Bits<0, 2>(bytes), out);
    each(run + 1, part, Bits<2, 2>(bytes), out + 32);
    each(run + 2, part, Bits<4, 2>(bytes), out + 64);
    each(run + 3, part, Bits<6, 2>(bytes), out + 96);
  }
}

// `value` in the bytes of v that have bit number `bit`, else 0.
HWY_INLINE VU8x16 IfBit(VU8x16 v, size_t bit, uint8_t value) {
  const DU8x16 d;
  const auto mask = hn::Set(d, static_cast<uint8_t>(1 << bit));
  return hn::IfThenElseZero(hn::Eq(hn::And(v, mask), mask), hn::Set(d, value));
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_SHARED_UNPACK_INL_H_
