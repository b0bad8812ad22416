// I2_S: 128 weights -1, 0 and 1 of two bits each; the tensor has one scale, after its last row
// (gguf::TensorView::scale). 32 bytes, 2 bits a weight.
//
//   bytes    0 ... 31   qs: byte b has weights b, 32 + b, 64 + b and 96 + b, from its highest bits
//                       down
//   weight   q - 1
#if defined(PRONK_KERNELS_TYPES_I2_S_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_I2_S_INL_H_
#undef PRONK_KERNELS_TYPES_I2_S_INL_H_
#else
#define PRONK_KERNELS_TYPES_I2_S_INL_H_
#endif

#include "kernels/types/tq2_0-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// Code common to I2_S and PTQ1_0: ternary weights, 128 in a block, whose codes fill at most 32
// bytes. A step is two blocks where a vector has 64 bytes, else one. A type has
//   kSlotBytes                                            a block's bytes in a vector; the slots
//                                                         of a step follow each other
//   static VU8 LoadBytes(const uint8_t* w, size_t v)      vector v of the step's slots
//   static void Split(VU8 bytes, VU8 (&codes)[kCodes])    their codes, as FourCodes() keeps them
//   static size_t WeightOf(size_t byte, size_t n)         index of code n's weight, or kNoWeight
//   static float Scale(const Block& block)
//   static int Code(const Block& block, int j)            weight j plus 1
constexpr size_t kNoWeight = 128;
template <class Type, class BlockType, size_t kCodes>
struct Ternary128 : Definition<Type, BlockType> {
  using Block = BlockType;
  using PanelForm = Int8Form<-1, 1>;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepBlocks = PRONK_VECTOR64 ? 2 : 1;
  static constexpr size_t kVectors = 32 * kStepBlocks / kVectorBytes;
  static constexpr size_t kStepWeights = 128 * kStepBlocks;
  static constexpr size_t kStepBytes = kStepBlocks * sizeof(Block);

  struct Input {
    CodeInput of[kVectors][kCodes];
  };
  struct Unpacked {
    VU8 codes[kVectors][kCodes];
    VF d;
  };

  static int Weight(const Block& block, int j) { return Type::Code(block, j) - 1; }

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    Floats8 scales;  // scales of the step's activations; it may be the row's last step
    constexpr size_t kScales = kStepWeights / 32, kLanes = hn::MaxLanes(DF8());
    for (size_t k = 0; k < kVectors8; ++k) {
      const size_t n = kScales - std::min(kScales, k * kLanes);
      scales.vectors[k] = hn::LoadN(DF8(), x.scales + i / 32 + k * kLanes, n);
    }
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t n = 0; n < kCodes; ++n) {
        alignas(64) int8_t q[kVectorBytes];
        int32_t group[kFloatLanes];
        for (size_t byte = 0; byte < kVectorBytes; ++byte) {
          const size_t at = v * kVectorBytes + byte, block = at / Type::kSlotBytes;
          const size_t weight =
              block < kStepBlocks ? Type::WeightOf(at % Type::kSlotBytes, n) : kNoWeight;
          q[byte] = weight == kNoWeight ? int8_t{0} : x.q[i + block * 128 + weight];
          // A lane's four codes are of one group.
          if (weight != kNoWeight)
            group[byte / 4] = static_cast<int32_t>((block * 128 + weight) / 32);
          else if (byte % 4 == 0)
            group[byte / 4] = 0;
        }
        in.of[v][n] = MakeCodeInput(hn::Load(DI8(), q), n, scales, group);
      }
    }
    return in;
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    for (size_t v = 0; v < kVectors; ++v) Type::Split(Type::LoadBytes(w, v), unpacked.codes[v]);
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    unpacked.d = hn::Set(DF(), Type::Scale(blocks[0]));
    if constexpr (kStepBlocks == 2) {
      const auto first = hn::FirstN(DF(), Type::kSlotBytes / 4);
      unpacked.d = hn::IfThenElse(first, unpacked.d, hn::Set(DF(), Type::Scale(blocks[1])));
    }
    return unpacked;
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked w, size_t n) {
    w.d = hn::IfThenElseZero(hn::FirstN(DF(), n / 128 * Type::kSlotBytes / 4), w.d);
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, RowSums& sums) {
    VF sum = hn::Zero(DF());
    for (size_t v = 0; v < kVectors; ++v) {
      for (size_t n = 0; n < kCodes; ++n) sum = AddProducts(sum, w.codes[v][n], in.of[v][n]);
    }
    sums.products = hn::MulAdd(sum, w.d, sums.products);
  }
  // Two blocks.
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const auto* const blocks = reinterpret_cast<const Block*>(w);
    for (size_t b = 0; b < 2; ++b) {
      Type::StoreBlock(blocks[b], out.weights + 128 * b);
      std::fill_n(out.scales + 4 * b, 4, Type::Scale(blocks[b]));
    }
  }
};

struct I2_S : Ternary128<I2_S, gguf::BlockI2_S, 4> {
  static constexpr gguf::DType kDType = gguf::DType::kI2_S;
  static constexpr size_t kSlotBytes = 32;

  static int Code(const Block& block, int j) { return block.qs[j % 32] >> (6 - 2 * (j / 32)) & 3; }
  static float GroupScale(const Block&, int) { return 1; }
  static constexpr size_t WeightOf(size_t byte, size_t n) { return 32 * (3 - n) + byte; }
  static HWY_INLINE float Scale(const Block&) { return 1; }
  static HWY_INLINE VU8 LoadBytes(const uint8_t* HWY_RESTRICT w, size_t v) {
    return hn::LoadU(DU8(), w + v * kVectorBytes);
  }
  static HWY_INLINE void Split(VU8 bytes, VU8 (&codes)[4]) { FourCodes(bytes, codes); }
  static HWY_INLINE void StoreBlock(const Block& block, int8_t* HWY_RESTRICT weights) {
    for (size_t b = 0; b < 32; b += 16) {
      const VU8x16 bytes = Load16(block.qs + b);
      StoreWeights(Bits<6, 2>(bytes), 1, weights + b);
      StoreWeights(Bits<4, 2>(bytes), 1, weights + 32 + b);
      StoreWeights(Bits<2, 2>(bytes), 1, weights + 64 + b);
      StoreWeights(Bits<0, 2>(bytes), 1, weights + 96 + b);
    }
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_I2_S_INL_H_
