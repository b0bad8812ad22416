// PTQ1_0 (PrismML): 128 weights -1, 0 and 1, five to a byte, with a scale. 28 bytes, 1.75 bits a
// weight.
//
//   bytes    0 ... 23    qs: digit n of byte b is weight 16n + b if b < 16, else 64 + 8n + b
//            24 25       qh: digit n of byte b is weight 120 + 2n + b, four digits to a byte
//            26 27       d
//   byte     its digits to the base of 3 as a fraction of 243, scaled to 256, as in TQ1_0
//   weight   d * (digit - 1)
//
// A vector of 64 bytes has two blocks as they are. Shorter vectors have bytes 0 to 15 and 12 to 27
// of one block. Repeated bytes and bytes without digits have no weight.
#include "kernels/types/i2_s-inl.h"
#include "kernels/types/tq1_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct PTQ1_0 : Ternary128<PTQ1_0, gguf::BlockPTQ1_0, 5> {
  static constexpr gguf::DType kDType = gguf::DType::kPTQ1_0;
  static constexpr size_t kSlotBytes = PRONK_VECTOR64 ? sizeof(Block) : 32;

  static int Code(const Block& block, int j) {
    const int n = j < 80 ? j / 16 : j < 120 ? (j - 80) / 8 : (j - 120) / 2;
    const int byte = j < 80    ? block.qs[j % 16]
                     : j < 120 ? block.qs[16 + (j - 80) % 8]
                               : block.qh[(j - 120) % 2];
    constexpr int kPowers[] = {1, 3, 9, 27, 81};
    return ((byte * kPowers[n]) & 255) * 3 >> 8;
  }
  static constexpr size_t WeightOf(size_t byte, size_t n) {
    if (byte < 16) return 16 * n + byte;
    const size_t again = kSlotBytes - sizeof(Block);  // repeated bytes
    if (byte < 16 + again) return kNoWeight;
    byte -= again;
    if (byte < 24) return 80 + 8 * n + byte - 16;
    return byte < 26 && n < 4 ? 120 + 2 * n + byte - 24 : kNoWeight;
  }
  static HWY_INLINE float Scale(const Block& block) { return HalfToFloat(block.d); }
  static HWY_INLINE VU8 LoadBytes(const uint8_t* HWY_RESTRICT w, size_t v) {
    static_assert(sizeof(Block) == 28 && offsetof(Block, qh) == 24);
#if PRONK_LANES128 == 1
    return Load16(w + 12 * v);
#elif PRONK_LANES128 == 2
    (void)v;
    return hn::Combine(DU8(), Load16(w + 12), Load16(w));
#else
    (void)v;
    return hn::LoadN(DU8(), w, 2 * sizeof(Block));
#endif
  }
  static HWY_INLINE void Split(VU8 bytes, VU8 (&digits)[5]) { FiveDigits(bytes, digits); }
  static HWY_INLINE void StoreBlock(const Block& block, int8_t* HWY_RESTRICT weights) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&block);
    VU8x16 first = Load16(bytes), last = Load16(bytes + 12);
    for (size_t n = 0; n < 5; ++n) {
      StoreWeights(TakeDigit(DU8x16(), first), 1, weights + 16 * n);
      int8_t others[16];
      StoreWeights(TakeDigit(DU8x16(), last), 1, others);
      hwy::CopyBytes<8>(others + 4, weights + 80 + 8 * n);
      if (n < 4) hwy::CopyBytes<2>(others + 12, weights + 120 + 2 * n);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
