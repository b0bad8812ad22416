// Q4_1: 32 weights of four bits with a scale and a minimum. 20 bytes, 5 bits a weight.
//
//   bytes    0 1        d
//            2 3        m
//            4 ... 19   qs: nibbles as in Q4_0
//   weight   d * q + m

#include "kernels/formats/q4_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q4_1 : Type32<Q4_1, gguf::BlockQ4_1, 8, 15, true>, Nibbles32<gguf::BlockQ4_1> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_1;

  static void Dequantize(const Block& block, float* out) {
    const float d = F16ToF32(block.d), m = F16ToF32(block.m);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(Q4_0::Nibble(block.qs, j)) + m;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
