// Q8_K: 256 weights of a byte with a scale. 292 bytes, 9.125 bits a weight.
//
//   bytes    0 ... 3    4 ... 259                             260 ... 291
//            d (f32)    qs: byte j is weight j, signed        bsums, which weights do not need
//   weight   d * q
#if defined(PRONK_KERNELS_FORMATS_Q8_K_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_Q8_K_INL_H_
#undef PRONK_KERNELS_FORMATS_Q8_K_INL_H_
#else
#define PRONK_KERNELS_FORMATS_Q8_K_INL_H_
#endif

#include "gguf/blocks.h"
#include "kernels/groups32-inl.h"
#include "kernels/half.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

struct Q8_K : Signed32<Q8_K, gguf::BlockQ8_K> {
  static constexpr gguf::DType kDType = gguf::DType::kQ8_K;
  using Form = Int8Form<8>;

  static void Dequantize(const Block& block, float* out) {
    for (int j = 0; j < 256; ++j) out[j] = block.d * static_cast<float>(block.qs[j]);
  }

  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    constexpr size_t kStride = 32 * kGroupStep;
    const VU8 sign = hn::Set(DU8(), kSignedZero);
    Unpacked unpacked;
    for (size_t v = 0; v < kDotVectors; ++v) {
      const uint8_t* const qs = w + offsetof(Block, qs) + 32 * FirstGroup(v);
      unpacked.codes[v][0] = hn::Xor(LoadPieces<kStride>(qs), sign);
      unpacked.codes[v][1] = hn::Xor(LoadPieces<kStride>(qs + 16), sign);
    }
    float d;
    hwy::CopyBytes<4>(w + offsetof(Block, d), &d);
    for (V8& part : unpacked.scales.part) part = hn::Set(D8(), d);
    return unpacked;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_Q8_K_INL_H_
