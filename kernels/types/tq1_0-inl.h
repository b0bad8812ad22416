// TQ1_0: 256 weights -1, 0 and 1, five to a byte, with a scale. 54 bytes, 1.6875 bits a weight.
//
//   bytes    0 ... 47    qs: digit n of byte b is weight 32n + b if b < 32, else 128 + 16n + b
//            48 ... 51   qh: digit n of byte b is weight 240 + 4n + b, four digits to a byte
//            52 53       d
//   byte     its five digits to the base of 3 as a fraction of 243, scaled to 256
//   weight   d * (digit - 1)
//
// The 52 bytes are padded with zeros to 64.

#if defined(PRONK_KERNELS_TYPES_TQ1_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_TQ1_0_INL_H_
#undef PRONK_KERNELS_TYPES_TQ1_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_TQ1_0_INL_H_
#endif

#include "kernels/types/shared/lookup-inl.h"
#include "kernels/types/tq2_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

#if PRONK_VECTOR64
// Digits 0 to 3 of a byte as four times two bits, and digit 4 above.
constexpr std::array<uint16_t, 256> DigitTable() {
  std::array<uint16_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t fraction = byte;
    for (int n = 0; n < 5; ++n) {
      const uint32_t digit = fraction * 3 >> 8;
      table[byte] = static_cast<uint16_t>(table[byte] | digit << (2 * n));
      fraction = fraction * 3 & 255;
    }
  }
  return table;
}
#endif

// Removes the first digit of each byte and returns it: the integer part of 3 times the fraction,
// which is also 3/4 of the byte in steps of 64; that saves a multiplication: (b + ceil(b / 2)) / 2,
// with b lower by one because of the rounding (checked for all 256).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V TakeDigit(D d, V& bytes) {
  const V lower = hn::SaturatedSub(bytes, hn::Set(d, uint8_t{1}));
  const V half = hn::AverageRound(lower, hn::Zero(d));
  bytes = hn::Add(hn::Add(bytes, bytes), bytes);
  return hn::ShiftRight<6>(hn::AverageRound(lower, half));
}

// The digits of each byte, as FourCodes() keeps them: by a table in registers, or by arithmetic.
HWY_INLINE void FiveDigits(VU8 bytes, VU8 (&digits)[5]) {
#if PRONK_VECTOR64
  static constexpr SplitTable<256> kTable(DigitTable());
  const MU8 bits[] = {hn::MaskFromVec(bytes)};
  FourCodes(Lookup<256>(kTable.low, bytes, bits), digits);
  digits[4] = Lookup<256>(kTable.high, bytes, bits);
#else
  for (VU8& digit : digits) digit = TakeDigit(DU8(), bytes);
#endif
}

struct TQ1_0 : TernaryType<TQ1_0, gguf::BlockTQ1_0, 5> {
  static constexpr gguf::DType kDType = gguf::DType::kTQ1_0;
  static constexpr size_t kDigits = 5;

  // Digit n of a byte: times 3^n brings it to the front of the fraction (& 255 drops the whole
  // part), times 3 then makes it the whole part.
  static int Digit(uint32_t byte, int n) {
    for (; n > 0; --n) byte = byte * 3 & 255;
    return static_cast<int>(byte * 3 >> 8);
  }
  static int Code(const Block& block, int j) {
    if (j < 160) return Digit(block.qs[j % 32], j / 32);
    if (j < 240) return Digit(block.qs[32 + (j - 160) % 16], (j - 160) / 16);
    return Digit(block.qh[(j - 240) % 4], (j - 240) / 4);
  }
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    const Floats8 scales = LoadScales(x, i);
    for (size_t v = 0; v < kByteVectors; ++v) {
      for (size_t n = 0; n < kDigits; ++n) {
        // 128-bit lanes 0 and 1 of the 64 bytes have group n, lane 2 group 5 + n / 2, the last
        // group 7.
        int32_t group[kFloatLanes];
        for (size_t lane = 0; lane < kFloatLanes; ++lane) {
          const size_t lane128 = v * kLanes128 + lane / 4;
          group[lane] = static_cast<int32_t>(lane128 < 2 ? n : lane128 == 2 ? 5 + n / 2 : 7);
        }
        in.of[v][n] = MakeCodeInput(LoadInput(x.q + i, v, n), n, scales, group);
      }
    }
    return in;
  }

  // Vector v of the activations that digit n of each byte is multiplied with.
  static HWY_INLINE VI8 LoadInput(const int8_t* HWY_RESTRICT q, size_t v, size_t n) {
    const DI8 d;
    const hn::FixedTag<int8_t, 16> d16;
    const hn::FixedTag<int8_t, 4> d4;
    const auto last = n == 4 ? hn::Zero(d16)
                             : hn::ZeroExtendResizeBitCast(d16, d4, hn::LoadU(d4, q + 240 + 4 * n));
#if PRONK_LANES128 == 4
    (void)v;
    const hn::Half<DI8> d32;
    return hn::Combine(d, hn::Combine(d32, last, hn::LoadU(d16, q + 160 + 16 * n)),
                       hn::LoadU(d32, q + 32 * n));
#elif PRONK_LANES128 == 2
    if (v == 0) return hn::LoadU(d, q + 32 * n);
    return hn::Combine(d, last, hn::LoadU(d16, q + 160 + 16 * n));
#else
    if (v == 3) return last;
    return hn::LoadU(d, v == 2 ? q + 160 + 16 * n : q + 32 * n + 16 * v);
#endif
  }

  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    int8_t last[kDigits][16];
    StoreWeights(
        Unpack(w),
        [&](size_t p, size_t n) HWY_ATTR {
          if (p < 2) return out.weights + 32 * n + 16 * p;
          return p == 2 ? out.weights + 160 + 16 * n : last[n];
        },
        out);
    for (size_t n = 0; n < 4; ++n) hwy::CopyBytes<4>(last[n], out.weights + 240 + 4 * n);
  }

  // Vector v of the 52 bytes of digits and zeros.
  static HWY_INLINE VU8 LoadBytes(const uint8_t* HWY_RESTRICT w, size_t v) {
    static_assert(offsetof(Block, qs) == 0 && offsetof(Block, qh) == 48);
    const DU8 d;
#if PRONK_VECTOR64
    (void)v;
    return hn::LoadN(d, w, 52);
#else
    if (v + 1 < kByteVectors) return hn::LoadU(d, w + v * kVectorBytes);
    const auto qh = hn::ZeroExtendResizeBitCast(DU8x16(), hn::FixedTag<uint8_t, 4>(),
                                                hn::LoadU(hn::FixedTag<uint8_t, 4>(), w + 48));
#if PRONK_LANES128 == 2
    return hn::Combine(d, qh, hn::LoadU(DU8x16(), w + 32));
#else
    return qh;
#endif
#endif
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&digits)[kDigits]) {
    FiveDigits(LoadBytes(w, v), digits);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_TQ1_0_INL_H_
