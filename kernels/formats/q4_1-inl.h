// Q4_1: 32 weights of four bits with a scale and a minimum. 20 bytes, 5 bits a weight.
//
//   bytes    0 1        d
//            2 3        m
//            4 ... 19   qs: nibbles as in Q4_0
//   weight   d * q + m

#include "kernels/formats/q4_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q4_1 : UnsignedType32<Q4_1, gguf::BlockQ4_1, 8, 15, true>, Nibbles32<gguf::BlockQ4_1> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_1;

  static void Dequantize(const Block& block, float* out) {
    const float d = F16ToF32(block.d), m = F16ToF32(block.m);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(Q4_0::Nibble(block.qs, j)) + m;
  }
  // The minimum needs no weights: it multiplies the sum of the activations.
  static double DotReference(const Block& block, const ActivationRow& x) {
    const double d = F16ToF32(block.d), m = F16ToF32(block.m);
    const int dot = DotCodes(x.q, 0, 32, [&](int j) { return Q4_0::Nibble(block.qs, j); });
    return double{x.scales[0]} * (d * dot + m * (x.sums[0] + x.sums[1]));
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
