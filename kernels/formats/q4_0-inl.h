// Q4_0: 32 weights of four bits with a scale. 18 bytes, 4.5 bits a weight.
//
//   bytes    0 1    2 ... 17
//            d      qs: byte j has weight j in its low nibble, weight j + 16 in its high
//   weight   d * (q - 8)
#if defined(PRONK_KERNELS_FORMATS_Q4_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#undef PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#else
#define PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#endif

#include "gguf/blocks.h"
#include "kernels/groups32-inl.h"
#include "kernels/half.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// The codes of a step's blocks, which are 32 nibbles each: one AND gives the first halves of all
// groups, a shift the second.
template <class Block>
HWY_INLINE void LoadNibbles(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[kDotVectors][2]) {
  for (size_t v = 0; v < kDotVectors; ++v) {
    const uint8_t* const qs = w + FirstGroup(v) * sizeof(Block) + offsetof(Block, qs);
    const VU8 nibbles = LoadPieces<kGroupStep * sizeof(Block)>(qs);
    codes[v][0] = LowNibbles(nibbles);
    codes[v][1] = HighNibbles(nibbles);
  }
}

struct Q4_0 : Type32<Q4_0, gguf::BlockQ4_0, 8, 15> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_0;
  using Form = Int8Form<4>;

  // The scalar definition: nibble j of 16 bytes, and what it stands for.
  static int Nibble(const uint8_t (&qs)[16], int j) {
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
  }
  static void Dequantize(const Block& block, float* out) {
    const float d = F16ToF32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(Nibble(block.qs, j) - 8);
  }

  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    LoadNibbles<Block>(w, unpacked.codes);
    unpacked.scales = LoadEightHalfs<sizeof(Block)>(w);
    return unpacked;
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_Q4_0_INL_H_
