// Q5_1: 32 weights of five bits with a scale and a minimum. 24 bytes, 6 bits a weight.
//
//   bytes    0 1        d
//            2 3        m
//            4 ... 7    qh: fifth bits, as in Q5_0
//            8 ... 23   qs: the low four bits, nibbles as in Q4_0
//   weight   d * q + m

#include "kernels/types/q5_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q5_1 : UnsignedType32<Q5_1, gguf::BlockQ5_1, 16, 31, true> {
  static constexpr gguf::DType kDType = gguf::DType::kQ5_1;

  static int Weight(const Block& block, int j) { return Q5_0::FiveBits(block.qs, block.qh, j); }
  static float GroupMin(const Block& block, int) { return F16ToF32(block.m); }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    LoadFiveBits<Block>(w, v, codes);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
