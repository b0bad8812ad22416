// TQ2_0: 256 weights -1, 0 and 1, two bits each, with a scale. 66 bytes, 2.0625 bits a weight.
//
//   bytes    0 ... 63   qs: 32 bytes for each half of 128 weights; bits 2k and 2k + 1 have stripe k
//                       of 32, as in Q2_K
//            64 65      d
//   weight   d * (q - 1)
#if defined(PRONK_KERNELS_TYPES_TQ2_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_TQ2_0_INL_H_
#undef PRONK_KERNELS_TYPES_TQ2_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_TQ2_0_INL_H_
#endif

#include "kernels/types/shared/scaled_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A block is 64 bytes of codes: kByteVectors vectors.
constexpr size_t kByteVectors = 4 / kLanes128;

// Two bits to a code. In vectors of 64 bytes codes stay at their bits, to save shifts: code n and
// its start value are multiplied by Unit(n), and scales are divided by it.
constexpr int Unit(size_t n) { return PRONK_VECTOR64 && n < 4 ? 1 << (2 * n) : 1; }
HWY_INLINE void FourCodes(VU8 bytes, VU8* HWY_RESTRICT codes) {
#if PRONK_VECTOR64
  for (size_t n = 0; n < 4; ++n) codes[n] = Mask(bytes, static_cast<uint8_t>(3 << (2 * n)));
#else
  VU8 four[4];
  TwoBitCodes(bytes, four);
  for (size_t n = 0; n < 4; ++n) codes[n] = four[n];
#endif
}

// The activations for a vector of codes.
struct CodeInput {
  VI8 x;
  VI32 start;
  VF scale;  // the activations' scale, in each lane
};

// The input for code n, in units of Unit(n): 0, 1, 2 for weights -1, 0, 1. `group` is the group of
// 32 weights of each lane.
HWY_INLINE CodeInput MakeCodeInput(VI8 x, size_t n, const Floats8& scales,
                                   const int32_t (&group)[kFloatLanes]) {
  const DI32 d;
  const VI32 sum = Dot(hn::Zero(d), hn::Set(DU8(), uint8_t{1}), x);
  const VF unit = hn::Set(DF(), 1.0f / static_cast<float>(Unit(n)));
  return {x, hn::Mul(sum, hn::Set(d, -Unit(n))), hn::Mul(PickFloats(scales, group), unit)};
}

// sum + the scaled products, lane by lane: adding up dots first would take as many, but scarcer,
// instructions.
HWY_INLINE VF AddProducts(VF sum, VU8 codes, const CodeInput& in) {
  return hn::MulAdd(hn::ConvertTo(DF(), Dot(in.start, codes, in.x)), in.scale, sum);
}

// Shared by both ternary types: a block of kCodes codes to a byte, times one scale. A type adds
//   static void Codes(const uint8_t* w, size_t v, VU8 (&codes)[kCodes])    of vector v of the bytes
template <class Type, class BlockType, size_t kCodes>
struct TernaryType : Definition<Type, BlockType> {
  using Block = BlockType;
  struct Input {
    CodeInput of[kByteVectors][kCodes];
  };
  struct Unpacked {
    VU8 codes[kByteVectors][kCodes];
    VF d;
  };
  struct Packed {
    const uint8_t* block;
  };
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = Block::kWeights;
  static constexpr size_t kStepBytes = sizeof(Block);
  using PanelForm = Int8Form<-1, 1>;

  // A type's code of weight j is Type::Code(block, j), one more than the weight.
  static int Weight(const Block& block, int j) { return Type::Code(block, j) - 1; }

  static HWY_INLINE VF Scale(const uint8_t* HWY_RESTRICT w) {
    return SetHalf(DF(), w + offsetof(Block, d));
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    for (size_t v = 0; v < kByteVectors; ++v) Type::Codes(w, v, unpacked.codes[v]);
    unpacked.d = Scale(w);
    return unpacked;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kByteVectors; ++v) sum = AddVector(sum, w.codes[v], in.of[v]);
    sums.products = hn::MulAdd(sum, w.d, sums.products);
  }
  // One token's products take a vector of bytes at a time: 5% with vectors of 32 bytes.
  static HWY_INLINE Packed DeferUnpack(const uint8_t* HWY_RESTRICT w) { return {w}; }
  static HWY_INLINE void Multiply(const Packed& w, const Input& in, RowSums& sums) {
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kByteVectors; ++v) {
      VU8 codes[kCodes];
      Type::Codes(w.block, v, codes);
      sum = AddVector(sum, codes, in.of[v]);
    }
    sums.products = hn::MulAdd(sum, Scale(w.block), sums.products);
  }
  static HWY_INLINE VF AddVector(VF sum, const VU8 (&codes)[kCodes],
                                 const CodeInput (&in)[kCodes]) {
    for (size_t n = 0; n < kCodes; ++n) sum = AddProducts(sum, codes[n], in[n]);
    return sum;
  }
  // Stores 128-bit lane p of the 64 bytes' codes n at to(p, n), for panels.
  template <class To>
  static HWY_INLINE void StoreWeights(const Unpacked& w, To to, Bytes256& out) {
    for (size_t v = 0; v < kByteVectors; ++v) {
      for (size_t n = 0; n < kCodes; ++n) {
        VU8 codes = w.codes[v][n];
        if (Unit(n) != 1) {
          const auto words = hn::BitCast(DU16(), codes);
          codes = hn::BitCast(DU8(), hn::ShiftRightSame(words, 2 * static_cast<int>(n)));
        }
        StoreLanes128(hn::BitCast(DI8(), hn::Sub(codes, hn::Set(DU8(), uint8_t{1}))),
                      [&](size_t p) HWY_ATTR { return to(v * kLanes128 + p, n); });
      }
    }
    std::fill_n(out.scales, 8, hn::GetLane(w.d));
  }
};

struct TQ2_0 : TernaryType<TQ2_0, gguf::BlockTQ2_0, 4> {
  static constexpr gguf::DType kDType = gguf::DType::kTQ2_0;

  static int Code(const Block& block, int j) {
    const int half = j / 128, quarter = j % 128 / 32;
    return block.qs[32 * half + j % 32] >> (2 * quarter) & 3;
  }
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    const Floats8 scales = LoadScales(x, i);
    for (size_t v = 0; v < kByteVectors; ++v) {
      for (size_t n = 0; n < 4; ++n) {
        int32_t group[kFloatLanes];
        for (size_t lane = 0; lane < kFloatLanes; ++lane) {
          group[lane] = static_cast<int32_t>((v * kFloatLanes + lane) / 8 * 4 + n);
        }
        in.of[v][n] = MakeCodeInput(LoadStripes<128>(x.q + i + 32 * n, v), n, scales, group);
      }
    }
    return in;
  }

  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (&codes)[4]) {
    FourCodes(hn::LoadU(DU8(), w + offsetof(Block, qs) + v * kVectorBytes), codes);
  }
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    StoreWeights(
        Unpack(w),
        [&](size_t p, size_t n)
            HWY_ATTR { return out.weights + 128 * (p / 2) + 32 * n + 16 * (p % 2); },
        out);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_TQ2_0_INL_H_
