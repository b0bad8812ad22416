// Q4_0: 32 weights of four bits with a scale. 18 bytes, 4.5 bits a weight.
//
//   bytes    0 1        d
//            2 ... 17   qs: byte j has weight j in its low nibble, weight j + 16 in its high nibble
//   weight   d * (q - 8)
#if defined(PRONK_KERNELS_TYPES_Q4_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q4_0_INL_H_
#undef PRONK_KERNELS_TYPES_Q4_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q4_0_INL_H_
#endif

#include "kernels/types/shared/types32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q4_0 : UnsignedType32<Q4_0, gguf::BlockQ4_0, 8, 15>, Nibbles32<gguf::BlockQ4_0> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_0;

  // Nibble j of 16 bytes.
  static int Nibble(const uint8_t (&qs)[16], int j) {
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
  }
  static int Weight(const Block& block, int j) { return Nibble(block.qs, j) - 8; }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q4_0_INL_H_
