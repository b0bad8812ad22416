// Products with IQ1_S and IQ1_M: every 8 weights are an entry of a grid of 2048 points. See
// grid-inl.h.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq1.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "kernels/grid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Weights are -1, 0 or 1, plus or minus 1/8. In eighths: what kIq1BytesPlus9 has, less 8 or 10.
constexpr int kZeroPlus = 8, kZeroMinus = 10;

template <class Type, class Block>
struct Iq1Type : GridType<Type, Block, 1> {
  static constexpr size_t kIndices = 32;

  // Three bits of each index lie in qh, every kStep bits.
  template <int kStep>
  static HWY_INLINE void StoreIndices(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    for (size_t p = 0; p < kBlockParts; ++p) {
      const VU16 low = LoadEighths(w + offsetof(Block, qs), p);
      const VU16 high =
          SplitGroups<0, kStep, 3, 8>(LoadGroups<uint16_t>(w + offsetof(Block, qh), p));
      hn::Store(hn::Or(low, high), DU16(), index + p * kPartGroups * 4);
    }
  }
};

struct IQ1_S : Iq1Type<IQ1_S, gguf::BlockIQ1_S> {
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in = GridType::Load(x, i);
    for (size_t p = 0; p < kBlockParts; ++p) {
      const VI32 sum = hn::Add(LaneSums(in.x[p][0], in.x[p][1]), LaneSums(in.x[p][2], in.x[p][3]));
      in.offset[p][0] = hn::Mul(sum, hn::Set(DI32(), -kZeroPlus));
      in.offset[p][1] = hn::Mul(sum, hn::Set(DI32(), -kZeroMinus));
    }
    return in;
  }
  static HWY_INLINE void Look(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    StoreIndices<3>(w, index);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block,
                               const uint16_t* HWY_RESTRICT index, size_t p, const Input& in) {
    const DU64 d;
    const VU64 qh = LoadGroups<uint16_t>(block + offsetof(Block, qh), p);
    const auto minus = hn::TestBit(qh, hn::Set(d, uint64_t{1} << 15));
    const VI32 sum = hn::BitCast(DI32(), hn::IfThenElse(minus, hn::BitCast(d, in.offset[p][1]),
                                                        hn::BitCast(d, in.offset[p][0])));
    VU8 weights[4];
    LookUp<0xFFFF, 4>(kIq1BytesPlus9.data(), index, p, weights);
    const Sixteens dots = {Dot2(sum, weights[0], in.x[p][0], weights[1], in.x[p][1]),
                           Dot2(hn::Zero(DI32()), weights[2], in.x[p][2], weights[3], in.x[p][3])};
    return Scaled32(dots, hn::And(hn::ShiftRight<12>(qh), hn::Set(d, uint64_t{7})), in, p);
  }
};

struct IQ1_M : Iq1Type<IQ1_M, gguf::BlockIQ1_M> {
  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in = GridType::Load(x, i);
    for (size_t p = 0; p < kBlockParts; ++p) {
      for (size_t half = 0; half < 2; ++half) {
        const VI32 sum = LaneSums(in.x[p][2 * half], in.x[p][2 * half + 1]);
        in.offset[p][half] = hn::Mul(sum, hn::Set(DI32(), -kZeroMinus));
      }
    }
    return in;
  }
  static HWY_INLINE void Look(const uint8_t* HWY_RESTRICT w, uint16_t* HWY_RESTRICT index) {
    StoreIndices<4>(w, index);
  }
  static HWY_INLINE VF PartSum(const uint8_t* HWY_RESTRICT block,
                               const uint16_t* HWY_RESTRICT index, size_t p, const Input& in) {
    const VU64 qh = LoadGroups<uint16_t>(block + offsetof(Block, qh), p);
    VU8 weights[4];
    LookUp<0xFFFF, 4>(kIq1BytesPlus9.data(), index, p, weights);
    for (size_t v = 0; v < 4; ++v) weights[v] = AddDelta(weights[v], qh, v);
    const Sixteens dots = {Dot2(in.offset[p][0], weights[0], in.x[p][0], weights[1], in.x[p][1]),
                           Dot2(in.offset[p][1], weights[2], in.x[p][2], weights[3], in.x[p][3])};
    // Six bits for each group, two groups in a word.
    alignas(64) static constexpr uint64_t kShifts[8] = {0, 6, 16, 22, 32, 38, 48, 54};
    uint64_t words;
    hwy::CopyBytes<8>(block + offsetof(Block, scales), &words);
    const VU64 shifts = hn::Load(DU64(), kShifts + p * kPartGroups);
    return Scaled16<3>(dots, hn::Shr(hn::Set(DU64(), words), shifts), in, p);
  }
  // Two more in eighth v of each group, unless the sign in its nibble is set.
  static HWY_INLINE VU8 AddDelta(VU8 weights, VU64 qh, size_t v) {
    const DU64 d;
    const auto minus = hn::TestBit(qh, hn::Set(d, uint64_t{8} << (4 * v)));
    const VU64 two = hn::IfThenZeroElse(minus, hn::Set(d, uint64_t{0x0202020202020202}));
    return hn::Add(weights, hn::BitCast(DU8(), two));
  }

  // d is in the top nibbles of the words.
  static HWY_INLINE VF BlockScale(const uint8_t* HWY_RESTRICT block) {
    uint64_t words;
    hwy::CopyBytes<8>(block + offsetof(Block, scales), &words);
    const uint64_t d =
        (words >> 12 & 0xF) | (words >> 24 & 0xF0) | (words >> 36 & 0xF00) | (words >> 48 & 0xF000);
    return SetHalf(DF(), reinterpret_cast<const uint8_t*>(&d));
  }
};

void RowsIQ1_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ1_S>(w, begin, end, x, out);
}
void RowsIQ1_M(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ1_M>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsIQ1_S);
PRONK_EXPORT(RowsIQ1_M);

void GemvIQ1_S(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ1_S)(w, begin, end, x, out);
}
void GemvIQ1_M(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ1_M)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
