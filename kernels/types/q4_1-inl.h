// Q4_1: 32 weights of four bits with a scale and a minimum. 20 bytes, 5 bits a weight.
//
//   bytes    0 1        d
//            2 3        m
//            4 ... 19   qs: nibbles as in Q4_0
//   weight   d * q + m

#include "kernels/types/q4_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q4_1 : UnsignedType32<Q4_1, gguf::BlockQ4_1, 8, 15, true>, Nibbles32<gguf::BlockQ4_1> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_1;

  static int Weight(const Block& block, int j) { return Q4_0::Nibble(block.qs, j); }
  static float GroupMin(const Block& block, int) { return F16ToF32(block.m); }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
