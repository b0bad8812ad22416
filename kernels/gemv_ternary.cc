// Products with TQ1_0 and TQ2_0, weights -1, 0 and 1 in blocks of 256, and with Q1_0 and Q2_0, one
// and two bits in smaller blocks: a block has one scale.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_ternary.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"
#include "kernels/lookup-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A block is 64 bytes of codes: kByteVectors vectors.
constexpr size_t kByteVectors = 4 / kPieces;

// Two bits to a code. Where codes may be any bytes they stay where they are, which saves shifts:
// code n is Unit(n) times as large, and so are offsets, while scales are as much smaller.
constexpr int Unit(size_t n) { return PRONK_WIDE && n < 4 ? 1 << (2 * n) : 1; }
HWY_INLINE void FourCodes(VU8 bytes, VU8* HWY_RESTRICT codes) {
#if PRONK_WIDE
  for (size_t n = 0; n < 4; ++n) codes[n] = Mask(bytes, static_cast<uint8_t>(3 << (2 * n)));
#else
  VU8 four[4];
  TwoBitCodes(bytes, four);
  for (size_t n = 0; n < 4; ++n) codes[n] = four[n];
#endif
}

// What a vector of codes is multiplied with.
struct Factors {
  VI8 x;
  VI32 offset;
  VF scale;  // of the activations, in each lane
};

// For code n, in units of Unit(n): 0, 1, 2 for weights -1, 0, 1. `group` of 32 weights is that of
// each lane.
HWY_INLINE Factors MakeFactors(VI8 x, size_t n, const Floats8& scales,
                               const int32_t (&group)[kFloats]) {
  const DI32 d;
  const VI32 sum = Dot(hn::Zero(d), hn::Set(DU8(), uint8_t{1}), x);
  const VF unit = hn::Set(DF(), 1.0f / static_cast<float>(Unit(n)));
  return {x, hn::Mul(sum, hn::Set(d, -Unit(n))), hn::Mul(PickFloats(scales, group), unit)};
}

// sum + the scaled products, lane by lane: adding dots up first takes as many instructions, and
// of those that are scarce.
HWY_INLINE VF AddProducts(VF sum, VU8 codes, const Factors& in) {
  return hn::MulAdd(hn::ConvertTo(DF(), Dot(in.offset, codes, in.x)), in.scale, sum);
}

// Byte l of each half of the block has weights 32 apart, two bits each.
struct TQ2_0 {
  using Block = gguf::BlockTQ2_0;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);

  struct Input {
    Factors of[kByteVectors][4];
  };
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in;
    const Floats8 scales = LoadScales(x, i);
    for (size_t v = 0; v < kByteVectors; ++v) {
      for (size_t n = 0; n < 4; ++n) {
        int32_t group[kFloats];
        for (size_t lane = 0; lane < kFloats; ++lane) {
          group[lane] = static_cast<int32_t>((v * kFloats + lane) / 8 * 4 + n);
        }
        in.of[v][n] = MakeFactors(LoadRuns<128>(x.q + i + 32 * n, v), n, scales, group);
      }
    }
    return in;
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kByteVectors; ++v) {
      VU8 codes[4];
      FourCodes(hn::LoadU(DU8(), w + offsetof(Block, qs) + v * kVectorBytes), codes);
      for (size_t n = 0; n < 4; ++n) sum = AddProducts(sum, codes[n], in.of[v][n]);
    }
    sums.a = hn::MulAdd(sum, SetHalf(DF(), w + offsetof(Block, d)), sums.a);
  }
};

#if PRONK_WIDE
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

// Five digits to a byte. The 52 bytes of digits are taken as 64, the rest zeros; digit n of byte b
// is weight 32n + b for the first 32 bytes, 160 + 16n + (b - 32) for the next 16, and 240 + 4n + (b
// - 48) for four, which have only digits 0 to 3.
struct TQ1_0 {
  using Block = gguf::BlockTQ1_0;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);
  static constexpr size_t kDigits = 5;

  struct Input {
    Factors of[kByteVectors][kDigits];
  };
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in;
    const Floats8 scales = LoadScales(x, i);
    for (size_t v = 0; v < kByteVectors; ++v) {
      for (size_t n = 0; n < kDigits; ++n) {
        // Pieces 0 and 1 of the 64 bytes have group n of 32 weights, piece 2 group 5 + n / 2, the
        // last group 7.
        int32_t group[kFloats];
        for (size_t lane = 0; lane < kFloats; ++lane) {
          const size_t piece = v * kPieces + lane / 4;
          group[lane] = static_cast<int32_t>(piece < 2 ? n : piece == 2 ? 5 + n / 2 : 7);
        }
        in.of[v][n] = MakeFactors(LoadInput(x.q + i, v, n), n, scales, group);
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
#if PRONK_PIECES == 4
    (void)v;
    const hn::Half<DI8> d32;
    return hn::Combine(d, hn::Combine(d32, last, hn::LoadU(d16, q + 160 + 16 * n)),
                       hn::LoadU(d32, q + 32 * n));
#elif PRONK_PIECES == 2
    if (v == 0) return hn::LoadU(d, q + 32 * n);
    return hn::Combine(d, last, hn::LoadU(d16, q + 160 + 16 * n));
#else
    if (v == 3) return last;
    return hn::LoadU(d, v == 2 ? q + 160 + 16 * n : q + 32 * n + 16 * v);
#endif
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kByteVectors; ++v) {
      VU8 digits[kDigits];
      Digits(LoadBytes(w, v), digits);
      for (size_t n = 0; n < kDigits; ++n) sum = AddProducts(sum, digits[n], in.of[v][n]);
    }
    sums.a = hn::MulAdd(sum, SetHalf(DF(), w + offsetof(Block, d)), sums.a);
  }

  // Vector v of the 52 bytes of digits and zeros.
  static HWY_INLINE VU8 LoadBytes(const uint8_t* HWY_RESTRICT w, size_t v) {
    static_assert(offsetof(Block, qs) == 0 && offsetof(Block, qh) == 48);
    const DU8 d;
#if PRONK_WIDE
    (void)v;
    return hn::LoadN(d, w, 52);
#else
    if (v + 1 < kByteVectors) return hn::LoadU(d, w + v * kVectorBytes);
    const auto qh = hn::ZeroExtendResizeBitCast(DU8x16(), hn::FixedTag<uint8_t, 4>(),
                                                hn::LoadU(hn::FixedTag<uint8_t, 4>(), w + 48));
#if PRONK_PIECES == 2
    return hn::Combine(d, qh, hn::LoadU(DU8x16(), w + 32));
#else
    return qh;
#endif
#endif
  }

  // By a table in registers, or else by arithmetic: a byte is a fraction of 256; times 3, its whole
  // part is the digit and the rest the next fraction. The whole part of 3/4 of it, in steps of 64,
  // is a multiplication less: (b + ceil(b / 2)) / 2, with b lower by one so that rounding up does
  // no harm (checked for all 256).
  static HWY_INLINE void Digits(VU8 bytes, VU8 (&digits)[kDigits]) {
    const DU8 d;
#if PRONK_WIDE
    static constexpr SplitTable<256> kTable(DigitTable());
    const MU8 bits[] = {hn::MaskFromVec(bytes)};
    FourCodes(Lookup<256>(kTable.low, bytes, bits), digits);
    digits[4] = Lookup<256>(kTable.high, bytes, bits);
#else
    for (size_t n = 0; n < kDigits; ++n) {
      const VU8 lower = hn::SaturatedSub(bytes, hn::Set(d, uint8_t{1}));
      const VU8 half = hn::AverageRound(lower, hn::Zero(d));
      digits[n] = hn::ShiftRight<6>(hn::AverageRound(lower, half));
      bytes = hn::Add(hn::Add(bytes, bytes), bytes);
    }
#endif
  }
};

// What Q1_0 and Q2_0 share. Weights lie in order, so that a byte has kCodes neighbours; a vector is
// multiplied with activations number n, kCodes + n, 2 * kCodes + n ... for each n, and a lane of
// all these dots, added up, belongs to 16 or 32 neighbouring weights. A piece is a block.
template <class BlockType, size_t kCodes>
struct InOrder {
  using Block = BlockType;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kPieces * Block::kWeights;
  static constexpr size_t kStepBytes = kPieces * sizeof(Block);
  static_assert(sizeof(Block::qs) == 16 && Block::kWeights == 16 * kCodes);

  struct Input {
    VI8 x[kCodes];
    VI32 offset;  // -(sum of the lane)
    VF scale;     // of the activations, in each lane
  };

  // What is left of an input whose x is set.
  static HWY_INLINE void Finish(const ActivationRow& x, size_t i, Input& in) {
    VU8 ones[kCodes];
    for (VU8& v : ones) v = hn::Set(DU8(), uint8_t{1});
    in.offset = hn::Neg(DotAll(hn::Zero(DI32()), ones, in));
    alignas(64) float scales[kFloats];
    for (size_t lane = 0; lane < kFloats; ++lane) {
      scales[lane] = x.scales[i / 32 + lane * kCodes / 8];
    }
    in.scale = hn::Load(DF(), scales);
  }

  // sum + the products of all codes, of at most 3 or, where there are eight, 2.
  static HWY_INLINE VI32 DotAll(VI32 sum, const VU8 (&codes)[kCodes], const Input& in) {
#if HWY_ARCH_X86 && !PRONK_VNNI
    const DI16 d16;  // holds 2 * 8 * 2 * 127 and 2 * 4 * 3 * 127
    VI16 pairs = hn::SatWidenMulPairwiseAdd(d16, codes[0], in.x[0]);
    for (size_t n = 1; n < kCodes; ++n) {
      pairs = hn::Add(pairs, hn::SatWidenMulPairwiseAdd(d16, codes[n], in.x[n]));
    }
    return hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), pairs, hn::Set(d16, 1)));
#else
    VI32 other = hn::Zero(DI32());  // two chains: 8% of Q1_0, measured on Zen 5
    for (size_t n = 0; n < kCodes; n += 2) {
      sum = Dot(sum, codes[n], in.x[n]);
      other = Dot(other, codes[n + 1], in.x[n + 1]);
    }
    return hn::Add(sum, other);
#endif
  }

  static HWY_INLINE void AddCodes(const uint8_t* HWY_RESTRICT w, const VU8 (&codes)[kCodes],
                                  const Input& in, Sums& sums) {
    const VF scale = hn::Mul(Spread(LoadHalfs<sizeof(Block)>(w)), in.scale);
    sums.a = hn::MulAdd(hn::ConvertTo(DF(), DotAll(in.offset, codes, in)), scale, sums.a);
  }
  static HWY_INLINE VU8 LoadCodes(const uint8_t* HWY_RESTRICT w) {
    return LoadPieces<sizeof(Block)>(w + offsetof(Block, qs));
  }
};

// Codes 0 and 2 for -1 and 1.
struct Q1_0 : InOrder<gguf::BlockQ1_0, 8> {
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
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

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const VU8 bits = LoadCodes(w);
    const VU8 codes[8] = {Mask(ShiftBits<-1>(bits), 2), Mask(bits, 2),
                          Mask(ShiftBits<1>(bits), 2),  Mask(ShiftBits<2>(bits), 2),
                          Mask(ShiftBits<3>(bits), 2),  Mask(ShiftBits<4>(bits), 2),
                          Mask(ShiftBits<5>(bits), 2),  Mask(ShiftBits<6>(bits), 2)};
    AddCodes(w, codes, in, sums);
  }
};

// Codes 0 to 3 for -1 to 2.
struct Q2_0 : InOrder<gguf::BlockQ2_0, 4> {
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in;
    hn::LoadInterleaved4(DI8(), x.q + i, in.x[0], in.x[1], in.x[2], in.x[3]);
    Finish(x, i, in);
    return in;
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VU8 codes[4];
    TwoBitCodes(LoadCodes(w), codes);
    AddCodes(w, codes, in, sums);
  }
};

void RowsTQ1_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<TQ1_0>(w, begin, end, x, out);
}
void RowsTQ2_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<TQ2_0>(w, begin, end, x, out);
}
void RowsQ1_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q1_0>(w, begin, end, x, out);
}
void RowsQ2_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q2_0>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsTQ1_0);
PRONK_EXPORT(RowsTQ2_0);
PRONK_EXPORT(RowsQ1_0);
PRONK_EXPORT(RowsQ2_0);

void GemvTQ1_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsTQ1_0)(w, begin, end, x, out);
}
void GemvTQ2_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsTQ2_0)(w, begin, end, x, out);
}
void GemvQ1_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ1_0)(w, begin, end, x, out);
}
void GemvQ2_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ2_0)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
