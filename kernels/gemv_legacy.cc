// Products with the simple types: blocks of 32 weights with one scale each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_legacy.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"
#include "kernels/halves-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Adds 16 to the codes whose bit is set in the 32 bits at qh of their block; blocks are kStep bytes
// apart, one per piece.
template <size_t kStep>
HWY_INLINE void AddFifthBits(const uint8_t* HWY_RESTRICT qh, VU8& first, VU8& second) {
  const DU8 d;
  const VU8 sixteen = hn::Set(d, uint8_t{16});
#if PRONK_WIDE
  // The bits as they are make a mask: 16 bits for each piece.
  const uint64_t bits[2] = {CollectHalfs<kPieces, kStep>(qh), CollectHalfs<kPieces, kStep>(qh + 2)};
  const auto first_mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits[0]));
  const auto second_mask = hn::LoadMaskBits(d, reinterpret_cast<const uint8_t*>(&bits[1]));
  first = hn::MaskedAddOr(first, first_mask, first, sixteen);
  second = hn::MaskedAddOr(second, second_mask, second, sixteen);
#else
  // Each byte of bits is repeated for the eight codes it belongs to, and each code looks at its
  // bit.
  uint32_t bits[2] = {};
  for (size_t i = 0; i < kPieces; ++i) hwy::CopyBytes<4>(qh + i * kStep, &bits[i]);
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

// What the four types of nibbles share. kZero is the zero point: that of the type, or (5 bits and a
// minimum) one that centers the codes, for AddScaledDots.
template <class BlockType, int kZero>
struct Nibbles {
  using Block = BlockType;
  using Input = HalvesInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 8 * Block::kWeights;
  static constexpr size_t kStepBytes = 8 * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadHalves<kZero>(x, i); }

  // sums.a + d * (scale of x) * (code - zero) * x
  static HWY_INLINE VF AddDots(const uint8_t* HWY_RESTRICT w, const Input& in, const Floats8& d,
                               VF sum) {
    constexpr size_t kStep = kGroupStep * sizeof(Block);
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) {
      const uint8_t* const block = w + FirstGroup(v) * sizeof(Block);
      const VU8 nibbles = LoadPieces<kStep>(block + offsetof(Block, qs));
      VU8 first = LowNibbles(nibbles);
      VU8 second = HighNibbles(nibbles);
      if constexpr (requires { Block::qh; }) {
        AddFifthBits<kStep>(block + offsetof(Block, qh), first, second);
      }
      dots[v] = Dot2(in.offset[v], first, in.first[v], second, in.second[v]);
    }
    return AddScaledDots(sum, dots, Mul(d, in.scales));
  }
};

// Q4_0 and Q5_0: d * (q - zero).
template <class Block, int kZero>
struct Symmetric : Nibbles<Block, kZero> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const HalvesInput& in, Sums& sums) {
    const Floats8 d = LoadEightHalfs<sizeof(Block)>(w);
    sums.a = Nibbles<Block, kZero>::AddDots(w, in, d, sums.a);
  }
};

// Q4_1 and Q5_1: d * q + m = d * (q - zero) + (m + zero * d).
template <class Block, int kZero>
struct WithMinimum : Nibbles<Block, kZero> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const HalvesInput& in, Sums& sums) {
    const Floats8 d = LoadEightHalfs<sizeof(Block)>(w);
    Floats8 m = LoadEightHalfs<sizeof(Block)>(w + offsetof(Block, m));
    sums.a = Nibbles<Block, kZero>::AddDots(w, in, d, sums.a);
    if constexpr (kZero != 0) {
      for (size_t k = 0; k < kParts8; ++k) {
        m.part[k] = hn::MulAdd(d.part[k], hn::Set(D8(), static_cast<float>(kZero)), m.part[k]);
      }
    }
    sums.mins = MulAdd(m, in.sums, sums.mins);
  }
};

using Q4_0 = Symmetric<gguf::BlockQ4_0, 8>;
using Q4_1 = WithMinimum<gguf::BlockQ4_1, 0>;
using Q5_0 = Symmetric<gguf::BlockQ5_0, 16>;
using Q5_1 = WithMinimum<gguf::BlockQ5_1, 16>;

struct Q8_0 {
  using Block = gguf::BlockQ8_0;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kPieces * Block::kWeights;
  static constexpr size_t kStepBytes = kPieces * sizeof(Block);

  // A block per piece. Its dots are too large for AddScaledDots.
  struct Input {
    VI8 first, second;  // 16 each
    VPiece scale;       // of the activations
    VI32 offset;        // what the offset of the codes contributes to each lane
  };
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    VI8 first, second;
    LoadPiecePairs<32>(x.q + i, first, second);
    VI32 offset = hn::Zero(DI32());
#if PRONK_WIDE
    const VU8 sign = hn::Set(DU8(), uint8_t{128});
    offset = hn::Sub(offset, Dot(Dot(offset, sign, first), sign, second));
#endif
    return {first, second, hn::LoadU(DPiece(), x.scales + i / 32), offset};
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const DF df;
    const VU8 first = LoadPieces<sizeof(Block)>(w + offsetof(Block, qs));
    const VU8 second = LoadPieces<sizeof(Block)>(w + offsetof(Block, qs) + 16);
#if PRONK_WIDE
    // The dot instruction wants unsigned codes: 128 more than the weights.
    const VU8 sign = hn::Set(DU8(), uint8_t{128});
    const VI32 dot =
        Dot(Dot(in.offset, hn::Xor(first, sign), in.first), hn::Xor(second, sign), in.second);
#else
    const DI8 di8;
    const VI32 dot = DotSigned(DotSigned(in.offset, hn::BitCast(di8, first), in.first),
                               hn::BitCast(di8, second), in.second);
#endif
    const VF scale = Spread(hn::Mul(LoadHalfs<sizeof(Block)>(w), in.scale));
    sums.a = hn::MulAdd(hn::ConvertTo(df, dot), scale, sums.a);
  }
};

void RowsQ4_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q4_0>(w, begin, end, x, out);
}
void RowsQ4_1(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q4_1>(w, begin, end, x, out);
}
void RowsQ5_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q5_0>(w, begin, end, x, out);
}
void RowsQ5_1(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q5_1>(w, begin, end, x, out);
}
void RowsQ8_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q8_0>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsQ4_0);
PRONK_EXPORT(RowsQ4_1);
PRONK_EXPORT(RowsQ5_0);
PRONK_EXPORT(RowsQ5_1);
PRONK_EXPORT(RowsQ8_0);

void GemvQ4_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ4_0)(w, begin, end, x, out);
}
void GemvQ4_1(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ4_1)(w, begin, end, x, out);
}
void GemvQ5_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ5_0)(w, begin, end, x, out);
}
void GemvQ5_1(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ5_1)(w, begin, end, x, out);
}
void GemvQ8_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsQ8_0)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
