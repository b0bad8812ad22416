// Q5_0: 32 weights of five bits with a scale. 22 bytes, 5.5 bits a weight.
//
//   bytes    0 1        d
//            2 ... 5    qh: bit j is weight j's fifth
//            6 ... 21   qs: the low four bits, nibbles as in Q4_0
//   weight   d * (q - 16)
#if defined(PRONK_KERNELS_TYPES_Q5_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q5_0_INL_H_
#undef PRONK_KERNELS_TYPES_Q5_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q5_0_INL_H_
#endif

#include "kernels/types/q4_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// Adds 16 to the codes whose bit is set in the 32 bits at qh of their block; blocks are kStep bytes
// apart, one per 128-bit lane.
template <size_t kStep>
HWY_INLINE void AddFifthBits(const uint8_t* HWY_RESTRICT qh, VU8& first, VU8& second) {
  const DU8 d;
  const VU8 sixteen = hn::Set(d, uint8_t{16});
#if PRONK_VECTOR64
  // The bits as they are make a mask: 16 bits for each 128-bit lane.
  const uint64_t bits[2] = {CollectHalfs<kLanes128, kStep>(qh),
                            CollectHalfs<kLanes128, kStep>(qh + 2)};
  const auto first_mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits[0]));
  const auto second_mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits[1]));
  first = hn::MaskedAddOr(first, first_mask, first, sixteen);
  second = hn::MaskedAddOr(second, second_mask, second, sixteen);
#else
  // Each byte of bits is repeated for its eight codes, and each code tests its bit.
  uint32_t bits[2] = {};
  for (size_t i = 0; i < kLanes128; ++i) hwy::CopyBytes<4>(qh + i * kStep, &bits[i]);
  const uint64_t all = bits[0] | static_cast<uint64_t>(bits[1]) << 32;
  const VU8 bytes = hn::BitCast(d, hn::Set(hn::Repartition<uint64_t, DU8>(), all));
  alignas(32) uint8_t index[2][kVectorBytes];
  for (size_t i = 0; i < kVectorBytes; ++i) {
    index[0][i] = static_cast<uint8_t>(i / 16 * 4 + i % 16 / 8);
    index[1][i] = static_cast<uint8_t>(index[0][i] + 2);
  }
  const VU8 bit = hn::BitCast(d, hn::Set(hn::Repartition<uint64_t, DU8>(), 0x8040201008040201u));
  const auto add = [&](VU8 codes, const uint8_t* which) HWY_ATTR {
    const VU8 byte = hn::TableLookupBytes(bytes, hn::Load(d, which));
    return hn::Or(codes, hn::IfThenElseZero(hn::TestBit(byte, bit), sixteen));
  };
  first = add(first, index[0]);
  second = add(second, index[1]);
#endif
}

// Nibbles32's Codes, for five bits.
template <class Block>
HWY_INLINE void LoadFiveBits(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
  Nibbles32<Block>::Codes(w, v, codes);
  HWY_UNROLL(2)
  for (size_t k = 0; k < 2; ++k) {
    const uint8_t* const qh = w + FirstGroup(v + k) * sizeof(Block) + offsetof(Block, qh);
    AddFifthBits<kGroupStep * sizeof(Block)>(qh, codes[k][0], codes[k][1]);
  }
}

struct Q5_0 : UnsignedType32<Q5_0, gguf::BlockQ5_0, 16, 31> {
  static constexpr gguf::DType kDType = gguf::DType::kQ5_0;

  static int FiveBits(const uint8_t (&qs)[16], const uint8_t (&qh)[4], int j) {
    return Q4_0::Nibble(qs, j) | ((qh[j / 8] >> (j % 8)) & 1) << 4;
  }
  static int Weight(const Block& block, int j) { return FiveBits(block.qs, block.qh, j) - 16; }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    LoadFiveBits<Block>(w, v, codes);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q5_0_INL_H_
