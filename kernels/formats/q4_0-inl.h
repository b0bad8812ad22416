// Q4_0: 32 weights of four bits with a scale. 18 bytes, 4.5 bits a weight.
//
//   bytes    0 1        d
//            2 ... 17   qs: byte j has weight j in its low nibble, weight j + 16 in its high
//   weight   d * (q - 8)
#if defined(PRONK_KERNELS_FORMATS_Q4_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#undef PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#else
#define PRONK_KERNELS_FORMATS_Q4_0_INL_H_
#endif

#include "kernels/formats/shared/groups32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

#if PRONK_WIDE
// The same and the scales, which blocks of up to 20 bytes begin with: the first 64 bytes of four
// blocks hold three of them and the fourth's scale. Faster than narrow loads of scales for several
// tokens, which arithmetic limits; slower for one, which waits for memory (NOTEBOOK.md).
template <class Block>
HWY_INLINE Floats8 PermuteNibbles(const uint8_t* HWY_RESTRICT w, VU8 (&codes)[kDotVectors][2]) {
  constexpr size_t kBytes = sizeof(Block), kFour = 4 * kBytes;
  static_assert(kDotVectors == 2 && 3 * kBytes + 2 <= 64 && offsetof(Block, qs) == kBytes - 16);
  static constexpr auto kNibbles = [] {
    std::array<uint8_t, 64> index{};  // of the fourth block: the tail's
    for (size_t i = 0; i < 48; ++i)
      index[i] = static_cast<uint8_t>(i / 16 * kBytes + kBytes - 16 + i % 16);
    return index;
  }();
  static constexpr auto kScales = [] {
    std::array<uint16_t, 32> index{};  // of words of two vectors
    for (size_t i = 0; i < 8; ++i)
      index[i] = static_cast<uint16_t>(i / 4 * 32 + i % 4 * kBytes / 2);
    return index;
  }();
  const DU8 d;
  const DU16 d16;
  const auto nibble_index = hn::IndicesFromVec(d, hn::LoadU(d, kNibbles.data()));
  VU8 heads[2];
  for (size_t v = 0; v < 2; ++v) {
    heads[v] = hn::LoadU(d, w + v * kFour);
    const VU8 tail = hn::LoadU(d, w + (v + 1) * kFour - 64);
    const VU8 nibbles =
        hn::IfThenElse(hn::FirstN(d, 48), hn::TableLookupLanes(heads[v], nibble_index), tail);
    codes[v][0] = LowNibbles(nibbles);
    codes[v][1] = HighNibbles(nibbles);
  }
  const auto words =
      hn::TwoTablesLookupLanes(d16, hn::BitCast(d16, heads[0]), hn::BitCast(d16, heads[1]),
                               hn::IndicesFromVec(d16, hn::LoadU(d16, kScales.data())));
  const hn::Rebind<hwy::float16_t, D8> d_halfs;
  return {{hn::PromoteTo(D8(), hn::ResizeBitCast(d_halfs, words))}};
}
#endif

struct Q4_0 : Type32<Q4_0, gguf::BlockQ4_0, 8, 15> {
  static constexpr gguf::DType kDType = gguf::DType::kQ4_0;

  // Nibble j of 16 bytes.
  static int Nibble(const uint8_t (&qs)[16], int j) {
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
  }
  static void Dequantize(const Block& block, float* out) {
    const float d = F16ToF32(block.d);
    for (int j = 0; j < 32; ++j) out[j] = d * static_cast<float>(Nibble(block.qs, j) - 8);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    LoadNibbles<sizeof(Block)>(w + offsetof(Block, qs), v, codes);
  }
#if PRONK_WIDE
  static HWY_INLINE Unpacked UnpackForSeveral(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    unpacked.scales = PermuteNibbles<Block>(w, unpacked.codes);
    return Deal(unpacked);
  }
#endif
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_Q4_0_INL_H_
