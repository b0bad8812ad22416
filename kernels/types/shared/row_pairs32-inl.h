// Groups of 32 weights in vectors of 64 bytes: two rows side by side, four bytes of each of their
// eight groups in a vector.
//
//   bytes    | row 0: group 0, 1, ... 7 | row 1: group 0, 1, ... 7 |    k = 0 ... 7
//
// A lane has the same group in all eight vectors of a step, so that its dots are one sum, and both
// rows share its conversion to float and the product with both scales (a single row would fill two
// lanes of each group, and be converted twice). Activations are loaded into both halves. Included
// once per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_ROW_PAIRS32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_ROW_PAIRS32_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_ROW_PAIRS32_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_ROW_PAIRS32_INL_H_
#endif

#include "kernels/simd/vectors-inl.h"
#include "kernels/types/shared/step32-inl.h"

#if PRONK_VECTOR64
HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

using VI8x32 = hn::Vec<hn::Half<DI8>>;
using VI32x8 = hn::Vec<hn::Half<DI32>>;

// Copies v to both halves of a vector, one for each row.
HWY_INLINE VI8 BroadcastToHalves(VI8x32 v) { return VI8{_mm512_broadcast_i64x4(v.raw)}; }
HWY_INLINE VI32 BroadcastToHalves(VI32x8 v) { return VI32{_mm512_broadcast_i64x4(v.raw)}; }
HWY_INLINE VF BroadcastToHalves(VF8 v) {
  return hn::BitCast(DF(), BroadcastToHalves(hn::BitCast(hn::Half<DI32>(), v)));
}

// The activations of a step.
template <bool kStarts, bool kHasSums>
struct PairInput {
  VI8x32 x[8];  // bytes 4 k to 4 k + 3 of each group
  VF8 scales;   // the activations' scales
  // The start value of dots, -kSubtractedZero * (sum of the lane), for codes that are
  // kSubtractedZero more than the weights.
  [[no_unique_address]] MemberIf<kStarts, VI32x8> start;
  [[no_unique_address]] MemberIf<kHasSums, VF8> sums;  // scale * (sum of the group)
};
struct PairFactors {
  VF scales, mins;
};
struct UnpackedPair : PairFactors {
  VU8 codes[8];
};

// Lane i of the result is lane number(i) of a, or of b: 16 + number.
template <class V, class Number>
HWY_INLINE V PickLanes(V a, V b, Number number) {
  const DI32 d;
  alignas(64) int32_t numbers[16];
  for (size_t i = 0; i < 16; ++i) numbers[i] = static_cast<int32_t>(number(i));
  return hn::BitCast(hn::DFromV<V>(),
                     hn::TwoTablesLookupLanes(d, hn::BitCast(d, a), hn::BitCast(d, b),
                                              hn::SetTableIndices(d, numbers)));
}
// The group of a lane; with kEvenOdd the even groups come first.
template <bool kEvenOdd>
constexpr size_t GroupOfLane(size_t lane) {
  return kEvenOdd ? lane % 4 * 2 + lane % 8 / 4 : lane % 8;
}
// The 128-bit lanes of a have groups 0 to 3, the 128-bit lanes of b groups 4 to 7. The result has
// lane k of all eight groups, then lane k + 1.
template <bool kEvenOdd, class V>
HWY_INLINE V PickGroups(V a, V b, size_t k) {
  return PickLanes(a, b, [=](size_t i) { return GroupOfLane<kEvenOdd>(i) * 4 + k + i / 8; });
}
// Eight floats of groups in the order of their lanes.
template <bool kEvenOdd>
HWY_INLINE VF8 OrderGroups(const Floats8& groups) {
  if constexpr (!kEvenOdd) return groups.vectors[0];
  alignas(32) int32_t order[8];
  for (size_t i = 0; i < 8; ++i) order[i] = static_cast<int32_t>(GroupOfLane<kEvenOdd>(i));
  return hn::TableLookupLanes(groups.vectors[0], hn::SetTableIndices(DF8(), order));
}
// pair[0] has the lower halves of both rows, pair[1] the upper halves.
HWY_INLINE void PairHalves(VU8 row0, VU8 row1, VU8* HWY_RESTRICT pair) {
  pair[0] = hn::ConcatLowerLower(DU8(), row1, row0);
  pair[1] = hn::ConcatUpperUpper(DU8(), row1, row0);
}

// Four vectors of two rows: 16 bytes of each of eight groups, the first kOffset bytes behind w,
// then every kStride-th.
template <size_t kStride, size_t kOffset>
HWY_INLINE void LoadPair(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                         VU8* HWY_RESTRICT pair) {
  if constexpr (kOffset + 3 * kStride + 8 <= 64) {  // 64 bytes have eight of each of four groups
    constexpr size_t kNext = kOffset + 7 * kStride + 8 - 64;
    HWY_UNROLL(2)
    for (size_t k = 0; k < 4; k += 2) {
      const auto number = [](size_t i) {
        const size_t group = i / 4 % 8, byte = kOffset + group * kStride + i / 32 * 4 + i % 4;
        return group < 4 ? byte : 64 + byte - kNext;
      };
      const uint8_t* const p0 = w0 + 4 * k;
      const uint8_t* const p1 = w1 + 4 * k;
      PairHalves(PickBytes(p0, p0 + kNext, number), PickBytes(p1, p1 + kNext, number), pair + k);
    }
  } else {
    const auto quarters = [&](size_t i) HWY_ATTR {
      const size_t first = kOffset + i * kStride;
      const DU8x16 d;
      const hn::Half<DU8> d32;
      return hn::Combine(
          DU8(), hn::Combine(d32, hn::LoadU(d, w1 + first + 4 * kStride), hn::LoadU(d, w1 + first)),
          hn::Combine(d32, hn::LoadU(d, w0 + first + 4 * kStride), hn::LoadU(d, w0 + first)));
    };
    for (size_t i = 0; i < 4; ++i) pair[i] = quarters(i);
    Transpose4x4(pair[0], pair[1], pair[2], pair[3]);
  }
}

// A type adds Codes and Factors (step32-inl.h), and may have faster ones for two rows:
//   static void PairCodes(const uint8_t* w0, const uint8_t* w1, VU8 (&codes)[8])
//   static PairFactors FactorsOfPair(const uint8_t* w0, const uint8_t* w1)
// Both are in the order of GroupOfLane.
template <class Type, class BlockType, int kZeroPoint, int kMaxCode, bool kMinimum, bool kEvenOdd>
struct RowPairs32 : StepBase32<Type, BlockType> {
  static constexpr size_t kRowsPerVector = 2;  // rows-inl.h
  using PanelForm = Int8Form<-kZeroPoint, kMaxCode - kZeroPoint, 1, kMinimum ? 1 : 0>;
  // Dots have a start value anyway, so without minimums the zero point costs nothing.
  static constexpr int kSubtractedZero = kMinimum ? 0 : kZeroPoint;
  static constexpr bool kAddsOffsets = kMinimum;
  using Input = PairInput<kSubtractedZero != 0, kAddsOffsets>;
  using Unpacked = UnpackedPair;

  static HWY_INLINE Input LoadInput(const ActivationRow& x, size_t i) {
    Input in;
    VI8 q[2][2];
    for (size_t k = 0; k < 2; ++k) LoadLanes128Pair<32>(x.q + i + 128 * k, q[k][0], q[k][1]);
    VI32 sums = hn::Zero(DI32());
    for (size_t k = 0; k < 8; k += 2) {
      const VI8 picked = PickGroups<kEvenOdd>(q[0][k / 4], q[1][k / 4], k % 4);
      in.x[k] = hn::LowerHalf(picked);
      in.x[k + 1] = hn::UpperHalf(hn::Half<DI8>(), picked);
      sums = DotBytes(sums, hn::Set(DU8(), static_cast<uint8_t>(kSubtractedZero)), picked);
    }
    if constexpr (kSubtractedZero != 0) {
      const hn::Half<DI32> d;
      in.start = hn::Neg(hn::Add(hn::LowerHalf(sums), hn::UpperHalf(d, sums)));
    }
    in.scales = OrderGroups<kEvenOdd>(LoadScales(x, i));
    if constexpr (kAddsOffsets) in.sums = OrderGroups<kEvenOdd>(LoadScaledSums(x, i));
    return in;
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w0,
                                    const uint8_t* HWY_RESTRICT w1) {
    Unpacked pair;
    if constexpr (requires { Type::PairCodes(w0, w1, pair.codes); }) {
      Type::PairCodes(w0, w1, pair.codes);
    } else {
      VU8 row0[2][2], row1[2][2];
      Type::Codes(w0, 0, row0);
      Type::Codes(w1, 0, row1);
      for (size_t k = 0; k < 8; k += 2) {
        PairHalves(PickGroups<kEvenOdd>(row0[0][k / 4], row0[1][k / 4], k % 4),
                   PickGroups<kEvenOdd>(row1[0][k / 4], row1[1][k / 4], k % 4), pair.codes + k);
      }
    }
    if constexpr (requires { Type::FactorsOfPair(w0, w1); }) {
      static_cast<PairFactors&>(pair) = Type::FactorsOfPair(w0, w1);
    } else {
      const Factors32 row0 = Type::Factors(w0), row1 = Type::Factors(w1);
      pair.scales = hn::Combine(DF(), row1.scales.vectors[0], row0.scales.vectors[0]);
      pair.mins =
          kMinimum ? hn::Combine(DF(), row1.mins.vectors[0], row0.mins.vectors[0]) : hn::Zero(DF());
    }
    return pair;
  }
  static HWY_INLINE Unpacked ZeroAfter(Unpacked pair, size_t n) {
    const auto groups = static_cast<uint8_t>((1 << n / 32) - 1);
    const uint8_t bits[8] = {groups, groups};  // LoadMaskBits may read eight
    const auto mask = hn::LoadMaskBits(DF(), bits);
    pair.scales = hn::IfThenElseZero(mask, pair.scales);
    if constexpr (kMinimum) pair.mins = hn::IfThenElseZero(mask, pair.mins);
    return pair;
  }
  static HWY_INLINE void Multiply(const Unpacked& pair, const Input& in, PairSums& sums) {
    VI32 dots[2] = {hn::Zero(DI32()), hn::Zero(DI32())};  // one chain of eight would wait: 4%
    if constexpr (kSubtractedZero != 0) dots[0] = BroadcastToHalves(in.start);
    HWY_UNROLL(8)
    for (size_t k = 0; k < 8; ++k)
      dots[k / 4] = DotBytes(dots[k / 4], pair.codes[k], BroadcastToHalves(in.x[k]));
    const VF all = hn::ConvertTo(DF(), hn::Add(dots[0], dots[1]));
    sums.products =
        hn::MulAdd(all, hn::Mul(pair.scales, BroadcastToHalves(in.scales)), sums.products);
    if constexpr (kMinimum)
      sums.offsets = hn::MulAdd(pair.mins, BroadcastToHalves(in.sums), sums.offsets);
  }
  static HWY_INLINE void ToBytes(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    Type::template StoreInOrder<kZeroPoint, kMinimum, kEvenOdd>(w, out);
  }
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#endif  // PRONK_KERNELS_TYPES_SHARED_ROW_PAIRS32_INL_H_
