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

// Activations for a step of kPieces blocks, one block per piece: a vector with the first 16 of each
// block and a vector with the second 16. That is the order in which nibbles come out: one AND gives
// the first halves of all blocks, a shift and an AND the second.
struct HalvesInput {
  VI8 first, second;
  VF scale;     // of the activations
  VI32 offset;  // what the codes' zero point contributes to each lane: -zero * (sum of the lane)
};

template <int kZero>
HWY_INLINE HalvesInput LoadHalves(const ActivationRow& x, size_t i) {
  const VI8 first = LoadPieces<32>(x.q + i);
  const VI8 second = LoadPieces<32>(x.q + i + 16);
  const VU8 zero = hn::Set(DU8(), uint8_t{kZero});
  const VI32 none = hn::Zero(DI32());
  return {first, second, SpreadFloats<1>(x.scales + i / 32),
          hn::Sub(none, Dot2(none, zero, first, zero, second))};
}

struct Q4_0 {
  using Block = gguf::BlockQ4_0;
  using Input = HalvesInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kPieces * Block::kWeights;
  static constexpr size_t kStepBytes = kPieces * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadHalves<8>(x, i); }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const DF df;
    const VU8 codes = LoadPieces<sizeof(Block)>(w + offsetof(Block, qs));
    const VI32 dot = Dot2(in.offset, LowNibbles(codes), in.first, HighNibbles(codes), in.second);
    const VF scale = hn::Mul(SpreadHalfs<sizeof(Block)>(w), in.scale);
    sums.a = hn::MulAdd(hn::ConvertTo(df, dot), scale, sums.a);
  }
};

struct Q8_0 {
  using Block = gguf::BlockQ8_0;
  using Input = HalvesInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kPieces * Block::kWeights;
  static constexpr size_t kStepBytes = kPieces * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    return LoadHalves < PRONK_WIDE ? 128 : 0 > (x, i);
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
    const VI32 dot = DotSigned(DotSigned(hn::Zero(DI32()), hn::BitCast(di8, first), in.first),
                               hn::BitCast(di8, second), in.second);
#endif
    const VF scale = hn::Mul(SpreadHalfs<sizeof(Block)>(w), in.scale);
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
