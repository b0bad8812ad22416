// Products with the simple types: blocks of 32 weights with one scale each.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_legacy.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Activations for eight blocks of nibbles: vectors with the first 16 of each block and vectors with
// the second 16. That is the order in which nibbles come out: one AND gives the first halves of all
// blocks, a shift the second. Groups lie in the vectors as AddScaledDots wants them.
struct NibbleInput {
  VI8 first[kDotVectors], second[kDotVectors];
  Floats8 scales;  // of the activations
  Floats8 sums;    // scale * (sum of the 32) * factor
};

HWY_INLINE NibbleInput LoadNibbleInput(const ActivationRow& x, size_t i, float factor) {
  NibbleInput in;
  for (size_t v = 0; v < kDotVectors; ++v) {
    const int8_t* const q = x.q + i + 32 * FirstGroup(v);
    in.first[v] = LoadPieces<32 * kGroupStep>(q);
    in.second[v] = LoadPieces<32 * kGroupStep>(q + 16);
  }
  in.scales = LoadScales(x, i);
  in.sums = LoadScaledSums(x, i, factor);
  return in;
}

struct Q4_0 {
  using Block = gguf::BlockQ4_0;
  using Input = NibbleInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 8 * Block::kWeights;
  static constexpr size_t kStepBytes = 8 * sizeof(Block);

  // The zero point: (q - 8) * x = q * x - 8 * x.
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadNibbleInput(x, i, -8.0f);
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VU8 codes = LoadPieces<kGroupStep * sizeof(Block)>(w + FirstGroup(v) * sizeof(Block) +
                                                               offsetof(Block, qs));
      dots[v] =
          Dot2(hn::Zero(DI32()), LowNibbles(codes), in.first[v], HighNibbles(codes), in.second[v]);
    }
    const Floats8 d = LoadEightHalfs<sizeof(Block)>(w);
    sums.a = AddScaledDots(sums.a, dots, Mul(d, in.scales));
    sums.mins = MulAdd(d, in.sums, sums.mins);
  }
};

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
    const VI8 first = LoadPieces<32>(x.q + i);
    const VI8 second = LoadPieces<32>(x.q + i + 16);
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
void RowsQ8_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<Q8_0>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RowsQ4_0);
HWY_EXPORT(RowsQ8_0);

void GemvQ4_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsQ4_0)(w, begin, end, x, out);
}
void GemvQ8_0(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  HWY_DYNAMIC_DISPATCH(RowsQ8_0)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
