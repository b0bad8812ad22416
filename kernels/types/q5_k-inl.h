// Q5_K: 256 weights of five bits, with a scale and a minimum for every 32, as in Q4_K. 176
// bytes, 5.5 bits a weight.
//
//   bytes    0 1          d
//            2 3          dmin
//            4 ... 15     scales, as in Q4_K
//            16 ... 47    qh: bit g of byte l is the fifth of weight 32g + l
//            48 ... 175   qs: the low four bits, as in Q4_K
//   weight   d * sc * q - dmin * min

#include "kernels/types/q4_k-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q5_K : UnsignedType32<Q5_K, gguf::BlockQ5_K, 16, 31, true, true> {
  static constexpr gguf::DType kDType = gguf::DType::kQ5_K;
  static constexpr size_t kRowsAtOnceForOne = PRONK_VECTOR64 ? 4 : 2;

  static int Weight(const Block& block, int j) {
    return FourBits(block.qs, j) | (block.qh[j % 32] >> (j / 32) & 1) << 4;
  }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(SixBitScaleMin(block.scales, g).scale);
  }
  static float GroupMin(const Block& block, int g) {
    return -F16ToF32(block.dmin) * static_cast<float>(SixBitScaleMin(block.scales, g).min);
  }

  // 16 bytes of qh in each 128-bit lane, bits 2i and 2i + 1 of its 64 weights (number i) shifted to
  // bits 0 and 1; with two 128-bit lanes the bits of both vectors, shifted to bits 4 to 7.
  static HWY_INLINE VU8 HighBits(const uint8_t* qh, [[maybe_unused]] size_t v) {
    const hn::Repartition<uint32_t, DU8> d32;
    const auto bytes = hn::BitCast(d32, LoadLanes128<0>(qh));
#if PRONK_LANES128 == 1
    return hn::BitCast(DU8(), hn::ShiftRightSame(bytes, static_cast<int>(v)));
#elif PRONK_LANES128 == 2  // a vector has 64s i and i + 2
    alignas(32) static constexpr uint32_t kCounts[8] = {4, 4, 4, 4};
    return hn::BitCast(DU8(), hn::Shl(bytes, hn::Load(d32, kCounts)));
#else                      // all four
    alignas(64) uint32_t counts[kFloatLanes];
    for (size_t i = 0; i < kFloatLanes; ++i) counts[i] = static_cast<uint32_t>(i / 4 * 2);
    return hn::BitCast(DU8(), hn::Shr(bytes, hn::Load(d32, counts)));
#endif
  }
  template <int kBit>
  static HWY_INLINE VU8 AddFifthBit(VU8 nibbles, VU8 high_bits) {
    return AddBits(nibbles, ShiftBits<kBit - 4>(high_bits), 16);
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    VU8 nibbles[2];
    LoadLanes128Pair<kNibbleStep>(w + offsetof(Block, qs) + 16 * v, nibbles[0], nibbles[1]);
    for (size_t half = 0; half < 2; ++half) {
      const VU8 qh = HighBits(w + offsetof(Block, qh) + 16 * half, v);
      const VU8 low = LowNibbles(nibbles[half]), high = HighNibbles(nibbles[half]);
#if PRONK_LANES128 == 2
      codes[0][half] = v == 0 ? AddFifthBit<4>(low, qh) : AddFifthBit<6>(low, qh);
      codes[1][half] = v == 0 ? AddFifthBit<5>(high, qh) : AddFifthBit<7>(high, qh);
#else
      codes[0][half] = AddFifthBit<0>(low, qh);
      codes[1][half] = AddFifthBit<1>(high, qh);
#endif
    }
  }
#if PRONK_VECTOR64
  static HWY_INLINE void PairCodes(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                                   VU8 (&codes)[8]) {
    LoadNibblePair<Block>(w0, w1, codes);
    // Bit g of a byte of qh belongs to group g. It is rotated to bit 4 in the group's lane.
    const hn::Half<DU8> d32;
    const VU8 qh = hn::Combine(DU8(), hn::LoadU(d32, w1 + offsetof(Block, qh)),
                               hn::LoadU(d32, w0 + offsetof(Block, qh)));
    alignas(64) static constexpr int32_t kTurns[16] = {4, 2, 0, 30, 3, 1, 31, 29,
                                                       4, 2, 0, 30, 3, 1, 31, 29};
    HWY_UNROLL(8)
    for (size_t k = 0; k < 8; ++k) {
      const VU8 lanes = PickLanes(qh, qh, [=](size_t i) { return i / 8 * 8 + k; });
      const VU8 bits{_mm512_rolv_epi32(lanes.raw, hn::Load(DI32(), kTurns).raw)};
      codes[k] = AddBits(codes[k], bits, 16);
    }
  }
  static HWY_INLINE PairFactors FactorsOfPair(const uint8_t* HWY_RESTRICT w0,
                                              const uint8_t* HWY_RESTRICT w1) {
    return LoadScales6(w0, w1);
  }
#endif
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) { return LoadScales6(w); }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
