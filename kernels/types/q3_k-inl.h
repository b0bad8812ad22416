// Q3_K: 256 weights of three bits, with a scale of six bits for every 16. 110 bytes, 3.4375 bits a
// weight.
//
//   bytes    0 ... 31     hmask: bit g of byte l is the third of weight 32g + l
//            32 ... 95    qs: the low two bits, as in Q2_K
//            96 ... 107   scales
//            108 109      d
//   scales   the low four bits of scales 0 to 7 are the low nibbles of bytes 0 to 7, of scales 8 to
//            15 the high nibbles; the top two bits of scale s are bits 2 (s / 4) and up of byte 8 +
//            s % 4
//   weight   d * (scale - 32) * (q - 4)

#include "kernels/types/q2_k-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

struct Q3_K : StripedType16<Q3_K, gguf::BlockQ3_K, false> {
  static constexpr gguf::DType kDType = gguf::DType::kQ3_K;
  static constexpr size_t kRowsAtOnceForOne = PRONK_VECTOR64 ? 4 : 2;
  using PanelForm = std::conditional_t<PRONK_MADDUBS, Int8Form<-4, 3, 2>, Int8Form<-128, 127>>;
  static constexpr int kZeroPoint = 4;
  static constexpr int kOddFactor =
      HWY_ARCH_X86 && !PRONK_VECTOR64 ? 8 : 1;  // where codes are transposed
  static constexpr int kFactors[4] = {1, kOddFactor, 1, kOddFactor};
  static constexpr int kProductZero = 32;
  static constexpr float kProductSign = -1;  // -32 * -4 does not fit in a byte, -128 does
  static constexpr auto kProducts = [] {     // [scale + 32][code]
    std::array<std::array<int8_t, 16>, 64> tables{};
    for (int s = 0; s < 64; ++s) {
      for (int q = 0; q < 8; ++q) tables[s][q] = static_cast<int8_t>((s - 32) * (4 - q));
    }
    return tables;
  }();

  static int Scale(const uint8_t (&s)[12], int group) {
    const int low = group < 8 ? s[group] & 15 : s[group - 8] >> 4;
    const int high = (s[8 + group % 4] >> (2 * (group / 4))) & 3;
    return (low | high << 4) - 32;
  }
  static int Weight(const Block& block, int j) {
    return (TwoBits(block.qs, j) | (block.hmask[j % 32] >> (j / 32) & 1) << 2) - 4;
  }
  static float GroupScale(const Block& block, int g) {
    return F16ToF32(block.d) * static_cast<float>(Scale(block.scales, g));
  }

  // hmask for vector v, with the bits of its half of the block in bits 0..3.
  static HWY_INLINE VU8 ThirdBits(const uint8_t* hmask, size_t v) {
    const VU8 bytes = LoadStripe<0>(hmask, v);
#if PRONK_LANES128 == 1
    return v < 2 ? bytes : ShiftBits<4>(bytes);
#else
    const hn::Repartition<uint32_t, DU8> d32;
    alignas(64) uint32_t counts[kFloatLanes];
    for (size_t i = 0; i < kFloatLanes; ++i) counts[i] = i < kFloatLanes / 2 ? 0 : 4;
    return hn::BitCast(DU8(), hn::Shr(hn::BitCast(d32, bytes), hn::Load(d32, counts)));
#endif
  }
  static HWY_INLINE VI8x16 Scales(const uint8_t* packed) {
    uint32_t s[3];
    hwy::CopyBytes<12>(packed, s);
    const auto four = [&](uint32_t low, int k) {
      return static_cast<uint64_t>((low & 0x0F0F0F0Fu) | ((s[2] >> (2 * k)) & 0x03030303u) << 4);
    };
    const uint64_t first = four(s[0], 0) | four(s[1], 1) << 32;
    const uint64_t second = four(s[0] >> 4, 2) | four(s[1] >> 4, 3) << 32;
    const DI8x16 d;
    const auto scales = hn::Dup128VecFromValues(hn::FixedTag<uint64_t, 2>(), first, second);
    return hn::Sub(hn::BitCast(d, scales), hn::Set(d, int8_t{32}));
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    TwoBitCodes(LoadStripe<32>(w + offsetof(Block, qs), v), codes);
    const VU8 third = ThirdBits(w + offsetof(Block, hmask), v);
    codes[0] = AddBits(codes[0], ShiftBits<-2>(third), 4);
    codes[1] = AddBits(codes[1], ShiftBits<-1>(third), 4);
    codes[2] = AddBits(codes[2], third, 4);
    codes[3] = AddBits(codes[3], ShiftBits<1>(third), 4);
  }
#if HWY_ARCH_X86 && !PRONK_VECTOR64
  // Tables give the codes of two stripes in a byte, at bits 0 and 3: from a nibble of qs, and from
  // the third bits of stripes 0 and 1, or 2 and 3.
  static HWY_INLINE void TransposedCodes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    alignas(16) static constexpr auto kTables = [] {
      std::array<std::array<uint8_t, 16>, 3> tables{};
      for (int i = 0; i < 16; ++i) {
        tables[0][i] = static_cast<uint8_t>(i % 4 | i / 4 << 3);
        tables[1][i] = static_cast<uint8_t>((i & 1) << 2 | (i & 2) << 4);
        tables[2][i] = static_cast<uint8_t>((i & 4) | (i & 8) << 2);
      }
      return tables;
    }();
    const auto look_up = [](size_t table, VU8 nibbles) HWY_ATTR {
      return hn::TableLookupBytes(hn::LoadDup128(DU8(), kTables[table].data()), nibbles);
    };
    const VU8 qs = LoadStripe<32>(w + offsetof(Block, qs), v);
    const VU8 third = LowNibbles(ThirdBits(w + offsetof(Block, hmask), v));
    TransposePairs<0x07, 0x38>(hn::Or(look_up(0, LowNibbles(qs)), look_up(1, third)),
                               hn::Or(look_up(0, HighNibbles(qs)), look_up(2, third)), codes);
  }
#endif
  static HWY_INLINE StripedFactors Factors(const uint8_t* HWY_RESTRICT w) {
    StripedFactors factors;
    factors.scales = Scales(w + offsetof(Block, scales));
    factors.d = SetHalf(DF(), w + offsetof(Block, d));
    return factors;
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
