// IQ1_S: 256 weights. Each 8 are one of the 2048 points of a grid, all moved up or down by an
// eighth; each 32 share a scale of three bits. 50 bytes, 1.5625 bits a weight.
//
//   bytes    0 1         d
//            2 ... 33    qs: the low eight bits of each index
//            34 ... 49   qh: a u16 for each 32 weights: 4 x 3 bits of index, s, the sign of delta
//   weight   d * (2s + 1) * (level + delta), level -1, 0 or 1 (tables.h), delta 1/8 or -1/8
#if defined(PRONK_KERNELS_TYPES_IQ1_S_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_IQ1_S_INL_H_
#undef PRONK_KERNELS_TYPES_IQ1_S_INL_H_
#else
#define PRONK_KERNELS_TYPES_IQ1_S_INL_H_
#endif

#include "kernels/types/shared/grid-inl.h"
#include "kernels/types/shared/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// Eight times level + delta is an integer, 8 * level + 1 or - 1.
constexpr float kIq1Unit = 0.125f;

// The 8 integers of a grid entry, 8 * level + 1 or - 1.
inline void SetShifted(uint32_t entry, bool negative_delta, int* integers) {
  SetLevels<8>(entry, kIq1Levels, 0, integers);
  for (int i = 0; i < 8; ++i) integers[i] = 8 * integers[i] + (negative_delta ? -1 : 1);
}

// Bytes of 8 * level + delta from the table's 8 * level + 9.
HWY_INLINE uint64_t Iq1Bytes(uint32_t index, bool negative_delta) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  const uint64_t shifted = kIq1BytesPlus9[index] + (negative_delta ? 0 : 2 * kOnes);
  // Subtracts 10 from each byte, which gives -9 .. 9: adding 118 cannot carry, flipping the top bit
  // subtracts 128.
  return (shifted + 118 * kOnes) ^ (128 * kOnes);
}

// Common code of IQ1_S and IQ1_M. Weights are in eighths, plus 10: kIq1BytesPlus9 has 8 * level +
// 9.
template <class Type, class Block, int kBits>
struct Iq1Type : GridType<Type, Block, 1, kBits, false> {
  using Base = GridType<Type, Block, 1, kBits, false>;
  using typename Base::Input;
  static constexpr size_t kIndices = 32;

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in = Base::LoadInput(x, i);
    const VI32 zero = hn::Set(DI32(), -10);
    for (size_t p = 0; p < kBlockSlices; ++p) {
      in.start[p][0] = hn::Mul(LaneSums(in.x[p][0], in.x[p][1]), zero);
      in.start[p][1] = hn::Mul(LaneSums(in.x[p][2], in.x[p][3]), zero);
    }
    return in;
  }
  // qh has three bits of each index, every kStep bits.
  template <int kStep>
  static HWY_INLINE void StoreIndices(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    for (size_t p = 0; p < kBlockSlices; ++p) {
      const VU16 low = LoadOctets(w + offsetof(Block, qs), p);
      const VU16 high =
          SplitGroups<0, kStep, 3, 8>(LoadGroups<uint16_t>(w + offsetof(Block, qh), p));
      hn::Store(hn::Or(low, high), DU16(), index + p * kSliceGroups * 4);
    }
  }
  // Adds two (2 * delta in eighths) unless the group's `minus` is a mask of ones.
  static HWY_INLINE VU8 AddDelta(VU8 weights, hn::Mask<DU64> minus) {
    const VU64 two = hn::IfThenZeroElse(minus, hn::Set(DU64(), uint64_t{0x0202020202020202}));
    return hn::Add(weights, hn::BitCast(DU8(), two));
  }
};

struct IQ1_S : Iq1Type<IQ1_S, gguf::BlockIQ1_S, 0> {
  static constexpr gguf::DType kDType = gguf::DType::kIQ1_S;
  using Block = gguf::BlockIQ1_S;
  using PanelForm = Int8Form<-9, 9>;

  static uint32_t Index(const Block& block, int k) {  // the index of the k-th 8 weights
    return block.qs[k] | (block.qh[k / 4] >> (3 * (k % 4)) & 7u) << 8;
  }
  static bool IsNegative(const Block& block, int g) {  // delta, of the g-th 32 weights
    return (block.qh[g] & 0x8000) != 0;
  }
  static void Integers(const Block& block, int g, int* integers) {
    for (int k = 4 * g; k < 4 * g + 4; ++k, integers += 8)
      SetShifted(kIq1Grid[Index(block, k)], IsNegative(block, g), integers);
  }
  static float GroupScale(const Block& block, int g) {
    const int scale = 2 * (block.qh[g] >> 12 & 7) + 1;
    return HalfToFloat(block.d) * static_cast<float>(scale) * kIq1Unit;
  }

  // DotStarts of all four vectors: [0] if the delta is negative or has been added, [1] if it is
  // positive and has not been added.
  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in = Base::LoadInput(x, i);
    for (size_t p = 0; p < kBlockSlices; ++p) {
      const VI32 sum = hn::Add(LaneSums(in.x[p][0], in.x[p][1]), LaneSums(in.x[p][2], in.x[p][3]));
      in.start[p][0] = hn::Mul(sum, hn::Set(DI32(), -10));
      in.start[p][1] = hn::Mul(sum, hn::Set(DI32(), -8));
    }
    return in;
  }
  static HWY_INLINE void ComputeIndices(const uint8_t* HWY_RESTRICT w,
                                        uint16_t* HWY_RESTRICT index) {
    StoreIndices<3>(w, index);
  }
  // Unpacks everything but the delta; returns the mask of negative deltas.
  static HWY_INLINE hn::Mask<DU64> UnpackLevels(const PackedGrid& w, size_t p, GridSlice& slice) {
    const DU64 d64;
    LookUp<0xFFFF, 4>(kIq1BytesPlus9.data(), w.index, p, slice.weights);
    const VU64 qh = LoadGroups<uint16_t>(w.block + offsetof(Block, qh), p);
    SetScales(hn::And(hn::ShiftRight<12>(qh), hn::Set(d64, uint64_t{7})), w.d, slice);
    return hn::TestBit(qh, hn::Set(d64, uint64_t{1} << 15));
  }
  static HWY_INLINE void UnpackSlice(const PackedGrid& w, size_t p, GridSlice& slice) {
    const auto minus = UnpackLevels(w, p, slice);
    for (VU8& weights : slice.weights) weights = AddDelta(weights, minus);
  }
#if !PRONK_VECTOR64
  // For one token, deltas are not added; each group chooses between two zero points.
  using Iq1Type::Multiply;
  static HWY_INLINE void Multiply(const PackedGrid& w, const Input& in, RowSums& sums) {
    for (size_t p = 0; p < kBlockSlices; ++p) {
      GridSlice slice;
      const auto minus = UnpackLevels(w, p, slice);
      const auto zero = hn::IfThenElse(minus, hn::BitCast(DU64(), in.start[p][0]),
                                       hn::BitCast(DU64(), in.start[p][1]));
      AddDots(hn::BitCast(DI32(), zero), hn::Zero(DI32()), slice, in, p, sums);
    }
  }
#endif
  static HWY_INLINE uint64_t Octet(const Block& block, size_t k) {
    return Iq1Bytes(Index(block, static_cast<int>(k)), IsNegative(block, static_cast<int>(k / 4)));
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_IQ1_S_INL_H_
