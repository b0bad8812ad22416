// PQ2_0 (PrismML): Q2_0 with a scale for 128 weights. 34 bytes, 2.125 bits a weight.
//
//   bytes    0 1        d
//            2 ... 33   qs: byte b has weights 4b to 4b + 3, from its lowest bits up
//   weight   d * (q - 1): -1, 0, 1 or 2 times d
#include "kernels/types/q2_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A step is two blocks where a vector has 64 bytes, else one.
struct PQ2_0 : Definition<PQ2_0, gguf::BlockPQ2_0> {
  using Block = gguf::BlockPQ2_0;
  using PanelForm = Int8Form<-1, 2>;
  using Vector = InOrder<gguf::BlockQ2_0, 4>;
  static constexpr gguf::DType kDType = gguf::DType::kPQ2_0;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepBlocks = PRONK_VECTOR64 ? 2 : 1;
  static constexpr size_t kVectors = 32 * kStepBlocks / kVectorBytes;
  static constexpr size_t kStepWeights = 128 * kStepBlocks;
  static constexpr size_t kStepBytes = kStepBlocks * sizeof(Block);

  static int Weight(const Block& block, int j) {
    return (block.qs[j / 4] >> (2 * (j % 4)) & 3) - 1;
  }

  struct Input {
    Vector::Input of[kVectors];
  };
  struct Unpacked {
    VU8 codes[kVectors][4];
    VF scale;
  };
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = i + v * 4 * kVectorBytes;
      VI8(&q)[4] = in.of[v].x;
      hn::LoadInterleaved4(DI8(), x.q + at, q[0], q[1], q[2], q[3]);
      Vector::Finish(x, at, in.of[v]);
    }
    return in;
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    Unpacked unpacked;
    unpacked.scale = hn::Set(DF(), HalfToFloat(blocks[0].d));
#if PRONK_VECTOR64
    const hn::Half<DU8> d32;
    TwoBitCodes(hn::Combine(DU8(), hn::LoadU(d32, blocks[1].qs), hn::LoadU(d32, blocks[0].qs)),
                unpacked.codes[0]);
    const auto first = hn::FirstN(DF(), kFloatLanes / 2);
    unpacked.scale = hn::IfThenElse(first, unpacked.scale, hn::Set(DF(), HalfToFloat(blocks[1].d)));
#else
    for (size_t v = 0; v < kVectors; ++v) {
      TwoBitCodes(hn::LoadU(DU8(), blocks[0].qs + v * kVectorBytes), unpacked.codes[v]);
    }
#endif
    return unpacked;
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    w.scale = hn::IfThenElseZero(hn::FirstN(DF(), n / 16), w.scale);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    for (size_t v = 0; v < kVectors; ++v) {
      const Vector::Input& x = in.of[v];
      const VF dots = hn::ConvertTo(DF(), Vector::DotAll(x.start, w.codes[v], x));
      sums.products = hn::MulAdd(dots, hn::Mul(w.scale, x.scale), sums.products);
    }
  }
  // Two blocks.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    for (size_t b = 0; b < 4; ++b) {
      StoreTwoBits(blocks[b / 2].qs + 16 * (b % 2), out.weights + 64 * b);
      std::fill_n(out.scales + 2 * b, 2, HalfToFloat(blocks[b / 2].d));
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
