// Q1_0: 128 weights of one bit with a scale. 18 bytes, 1.125 bits a weight.
//
//   bytes    0 1        d
//            2 ... 17   qs: bit j % 8 of byte j / 8 is weight j
//   weight   d where the bit is set, else -d

#include "kernels/types/q2_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// `value` in byte i where `bits` has bit i, else 0.
HWY_INLINE VU8x16 SpreadBits(uint32_t bits, uint8_t value) {
  const DU8x16 d;
  alignas(16) static constexpr uint8_t kByte[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                   1, 2, 4, 8, 16, 32, 64, 128};
  const auto all = hn::BitCast(d, hn::Set(hn::FixedTag<uint32_t, 4>(), bits));
  const auto mask = hn::Load(d, kBit);
  const auto masked = hn::And(hn::TableLookupBytes(all, hn::Load(d, kByte)), mask);
  return hn::IfThenElseZero(hn::Eq(masked, mask), hn::Set(d, value));
}

struct Q1_0 : InOrder<gguf::BlockQ1_0, 8>, Definition<Q1_0, gguf::BlockQ1_0> {
  using PanelForm = Int8Form<-1, 1>;
  static constexpr gguf::DType kDType = gguf::DType::kQ1_0;

  static int Weight(const Block& block, int j) {
    return (block.qs[j / 8] >> (j % 8) & 1) != 0 ? 1 : -1;
  }
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    const DI8 d;
    Input in;
    VI8 low[4], high[4];  // each fourth activation of the first and the last half
    hn::LoadInterleaved4(d, x.q + i, low[0], low[1], low[2], low[3]);
    hn::LoadInterleaved4(d, x.q + i + 4 * kVectorBytes, high[0], high[1], high[2], high[3]);
    for (size_t n = 0; n < 4; ++n) {
      in.x[n] = hn::ConcatEven(d, high[n], low[n]);
      in.x[n + 4] = hn::ConcatOdd(d, high[n], low[n]);
    }
    Finish(x, i, in);
    return in;
  }

  // Codes 0 and 2 for -1 and 1.
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    const VU8 bits = LoadCodes(w);
    return {{Mask(ShiftBits<-1>(bits), 2), Mask(bits, 2), Mask(ShiftBits<1>(bits), 2),
             Mask(ShiftBits<2>(bits), 2), Mask(ShiftBits<3>(bits), 2), Mask(ShiftBits<4>(bits), 2),
             Mask(ShiftBits<5>(bits), 2), Mask(ShiftBits<6>(bits), 2)},
            BlockScales(w)};
  }

  // Two blocks at a time.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    for (size_t b = 0; b < 2; ++b) {
      for (size_t i = 0; i < 8; ++i) {
        uint16_t bits;
        hwy::CopyBytes<2>(blocks[b].qs + 2 * i, &bits);
        StoreWeights(SpreadBits(bits, 2), 1, out.weights + 128 * b + 16 * i);
      }
      std::fill_n(out.scales + 4 * b, 4, HalfToFloat(blocks[b].d));
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
