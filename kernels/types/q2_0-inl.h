// Q2_0: 64 weights of two bits with a scale. 18 bytes, 2.25 bits a weight.
//
//   bytes    0 1        d
//            2 ... 17   qs: byte b has weights 4b to 4b + 3, from its lowest bits up
//   weight   d * (q - 1): -1, 0, 1 or 2 times d
#if defined(PRONK_KERNELS_TYPES_Q2_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q2_0_INL_H_
#undef PRONK_KERNELS_TYPES_Q2_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q2_0_INL_H_
#endif

#include "kernels/types/shared/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// Common code of Q1_0 and Q2_0. Weights are in order: a byte has kCodes neighbours. Code n of a
// vector multiplies activations n, kCodes + n, 2 * kCodes + n ..., and a lane of all these dots,
// added up, belongs to 16 or 32 neighbouring weights. A 128-bit lane is a block.
template <class BlockType, size_t kCodes>
struct InOrder {
  using Block = BlockType;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = kLanes128 * Block::kWeights;
  static constexpr size_t kStepBytes = kLanes128 * sizeof(Block);
  static_assert(sizeof(Block::qs) == 16 && Block::kWeights == 16 * kCodes);

  struct Input {
    VI8 x[kCodes];
    VI32 start;  // -(sum of the lane)
    VF scale;    // the activations' scale, in each lane
  };

  // Sets the start value and scale of an input whose x is set.
  static HWY_INLINE void Finish(const ActivationRow& x, size_t i, Input& in) {
    VU8 ones[kCodes];
    for (VU8& v : ones) v = hn::Set(DU8(), uint8_t{1});
    in.start = hn::Neg(DotAll(hn::Zero(DI32()), ones, in));
    alignas(64) float scales[kFloatLanes];
    for (size_t lane = 0; lane < kFloatLanes; ++lane) {
      scales[lane] = x.scales[i / 32 + lane * kCodes / 8];
    }
    in.scale = hn::Load(DF(), scales);
  }

  // sum + the products of all codes. Codes are at most 3, or at most 2 if a byte has eight.
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

  struct Unpacked {
    VU8 codes[kCodes];
    VF scale;
  };
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    const auto mask = hn::FirstN(DF(), n / Block::kWeights * 4);
    w.scale = hn::IfThenElseZero(mask, w.scale);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    const VF dots = hn::ConvertTo(DF(), DotAll(in.start, w.codes, in));
    sums.products = hn::MulAdd(dots, hn::Mul(w.scale, in.scale), sums.products);
  }
  static HWY_INLINE VU8 LoadCodes(const uint8_t* HWY_RESTRICT w) {
    return LoadLanes128<sizeof(Block)>(w + offsetof(Block, qs));
  }
  static HWY_INLINE VF BlockScales(const uint8_t* HWY_RESTRICT w) {
    return BroadcastPerLane128(LoadHalfs<sizeof(Block)>(w));
  }
};

// The weights of 16 bytes.
HWY_INLINE void StoreTwoBits(const uint8_t* HWY_RESTRICT qs, int8_t* HWY_RESTRICT weights) {
  const DU8x16 d;
  const VU8x16 bytes = Load16(qs), one = hn::Set(d, uint8_t{1});
  hn::StoreInterleaved4(hn::Sub(Bits<0, 2>(bytes), one), hn::Sub(Bits<2, 2>(bytes), one),
                        hn::Sub(Bits<4, 2>(bytes), one), hn::Sub(Bits<6, 2>(bytes), one), d,
                        reinterpret_cast<uint8_t*>(weights));
}

struct Q2_0 : InOrder<gguf::BlockQ2_0, 4>, Definition<Q2_0, gguf::BlockQ2_0> {
  using PanelForm = Int8Form<-1, 2>;
  static constexpr gguf::DType kDType = gguf::DType::kQ2_0;

  static int Weight(const Block& block, int j) {
    return (block.qs[j / 4] >> (2 * (j % 4)) & 3) - 1;
  }
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    hn::LoadInterleaved4(DI8(), x.q + i, in.x[0], in.x[1], in.x[2], in.x[3]);
    Finish(x, i, in);
    return in;
  }

  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    TwoBitCodes(LoadCodes(w), unpacked.codes);
    unpacked.scale = BlockScales(w);
    return unpacked;
  }

  // Four blocks at a time.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    for (size_t b = 0; b < 4; ++b) {
      StoreTwoBits(blocks[b].qs, out.weights + 64 * b);
      std::fill_n(out.scales + 2 * b, 2, HalfToFloat(blocks[b].d));
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q2_0_INL_H_
