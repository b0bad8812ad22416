// What unpacking weights to plain bytes needs for more than one family of types. The loops are
// written for the compiler to vectorize: a weight is unpacked once per batch, so this is a few
// percent of a product's time. Included once per instruction set.
#if defined(PRONK_KERNELS_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_UNPACK_INL_H_
#undef PRONK_KERNELS_UNPACK_INL_H_
#else
#define PRONK_KERNELS_UNPACK_INL_H_
#endif

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A row's next 256 weights, or fewer at its end: scale * weight (+ minimum).
struct Unpacked {
  alignas(64) int8_t weights[256];
  float scales[16];  // per 32 or 16 weights, as the type's format says
  float mins[16];
};

// The value of an f16, by the CPU's own conversion.
HWY_INLINE float HalfToFloat(uint16_t bits) {
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<hwy::float16_t, 4> d_half;
  const auto halfs = hn::ResizeBitCast(d_half, hn::Set(hn::FixedTag<uint32_t, 1>(), bits));
  return hn::GetLane(hn::PromoteTo(d, halfs));
}

// The values of 32 nibbles: low ones, then high ones.
HWY_INLINE void LookUpNibbles(const uint8_t* HWY_RESTRICT qs, const std::array<int8_t, 16>& values,
                              int8_t* HWY_RESTRICT weights) {
  const DU8x16 d;
  const hn::RebindToSigned<DU8x16> di;
  const auto table = hn::LoadU(di, values.data());
  const auto nibbles = hn::LoadU(d, qs);
  const auto low = hn::And(nibbles, hn::Set(d, uint8_t{15}));
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(di, low)), di, weights);
  const auto high = hn::ShiftRight<4>(nibbles);
  hn::StoreU(hn::TableLookupBytes(table, hn::BitCast(di, high)), di, weights + 16);
}

// Two bits each, plus `bias`: 32 bytes hold four runs of 32 weights.
HWY_INLINE void UnpackTwoBits(const uint8_t (&qs)[64], int bias, int8_t* HWY_RESTRICT weights) {
  for (size_t run = 0; run < 8; ++run) {
    const uint8_t* const bytes = qs + run / 4 * 32;
    const size_t shift = run % 4 * 2;
    for (size_t j = 0; j < 32; ++j) {
      weights[32 * run + j] = static_cast<int8_t>((bytes[j] >> shift & 3) + bias);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_UNPACK_INL_H_
