// I2_S: 128 weights -1, 0 and 1 of two bits each; the tensor has one scale, after its last row
// (gguf::TensorView::scale). 32 bytes, 2 bits a weight.
//
//   bytes    0 ... 31   qs: byte b has weights b, 32 + b, 64 + b and 96 + b, from its highest bits
//                       down
//   weight   q - 1
#include "kernels/formats/shared/ternary128-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct I2_S : Ternary128<I2_S, gguf::BlockI2_S, 4> {
  static constexpr gguf::DType kDType = gguf::DType::kI2_S;
  static constexpr size_t kSlotBytes = 32;

  static int Code(const Block& block, int j) { return block.qs[j % 32] >> (6 - 2 * (j / 32)) & 3; }
  static void Dequantize(const Block& block, float* out) {
    for (int j = 0; j < block.kWeights; ++j) out[j] = static_cast<float>(Code(block, j) - 1);
  }
  static constexpr size_t WeightOf(size_t byte, size_t n) { return 32 * (3 - n) + byte; }
  static HWY_INLINE float Scale(const Block&) { return 1; }
  static HWY_INLINE VU8 LoadBytes(const uint8_t* HWY_RESTRICT w, size_t v) {
    return hn::LoadU(DU8(), w + v * kVectorBytes);
  }
  static HWY_INLINE void Split(VU8 bytes, VU8 (&codes)[4]) { FourCodes(bytes, codes); }
  static HWY_INLINE void StoreBlock(const Block& block, int8_t* HWY_RESTRICT weights) {
    for (size_t b = 0; b < 32; b += 16) {
      const VU8x16 bytes = Load16(block.qs + b);
      StoreWeights(Bits<6, 2>(bytes), 1, weights + b);
      StoreWeights(Bits<4, 2>(bytes), 1, weights + 32 + b);
      StoreWeights(Bits<2, 2>(bytes), 1, weights + 64 + b);
      StoreWeights(Bits<0, 2>(bytes), 1, weights + 96 + b);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
