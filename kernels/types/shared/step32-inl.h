// A step of 256 weights of types with scales (and minimums) for groups of 32. Included once per
// instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_STEP32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_STEP32_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_STEP32_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_STEP32_INL_H_
#endif

#include <type_traits>

#include "kernels/types/shared/scaled_dots-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// A member that only some inputs have.
struct Empty {};
template <bool kHas, class T>
using MemberIf = std::conditional_t<kHas, T, Empty>;

// The group of 128-bit lane p of vector v.
template <bool kEvenOdd>
constexpr size_t GroupOf(size_t v, size_t p) {
  return kEvenOdd && PRONK_VECTOR64 ? v + 2 * p : FirstGroup(v) + p * kGroupStep;
}

// Numbers for each group.
struct Factors32 {
  Floats8 scales, mins;
};
// Factors32, and the codes of the first and of the last 16 weights of each group.
struct Unpacked32 : Factors32 {
  VU8 codes[kDotVectors][2];
};
// Common to steps of 256 weights. A type adds
//   static void Codes(const uint8_t* w, size_t v, VU8 (*codes)[2])
// which unpacks vectors v and v + 1 of the step at w. A 128-bit lane is half of a group of 32
// weights: codes[k][0] gets the first halves of the groups of vector v + k, codes[k][1] the second
// halves. The groups of vector v:
//
//   vectors of 16 bytes   | v |
//              32 bytes   | v | v + 4 |
//              64 bytes   | 4 v | 4 v + 1 | 4 v + 2 | 4 v + 3 |    (FirstGroup, kGroupStep)
//                    or   | v | v + 2 | v + 4 | v + 6 |            (kEvenOdd)
//
// Unless its blocks of 32 have an f16 d (and m), as below, it also adds
//   static Factors32 Factors(const uint8_t* w)
template <class Type, class BlockType>
struct StepBase32 : Definition<Type, BlockType> {
  using Block = BlockType;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);

  static HWY_INLINE Unpacked32 UnpackInOrder(const uint8_t* HWY_RESTRICT w) {
    Unpacked32 unpacked;
    HWY_UNROLL(4)
    for (size_t v = 0; v < kDotVectors; v += 2) Type::Codes(w, v, unpacked.codes + v);
    // One by one: GCC copies both as one vector, which waits until two stores are in the cache.
    const Factors32 factors = Type::Factors(w);
    unpacked.scales = factors.scales;
    unpacked.mins = factors.mins;
    return unpacked;
  }
  static HWY_INLINE Factors32 Factors(const uint8_t* HWY_RESTRICT w) {
    Factors32 factors{LoadEightHalfs<sizeof(Block)>(w + offsetof(Block, d)), {}};
    if constexpr (requires(Block block) { block.m; }) {
      factors.mins = LoadEightHalfs<sizeof(Block)>(w + offsetof(Block, m));
    }
    return factors;
  }
  // Unpacks codes, which are kZeroPoint more than the weights, for panels (panel-inl.h).
  template <int kZeroPoint, bool kMinimum, bool kEvenOdd>
  static HWY_INLINE void StoreInOrder(const uint8_t* HWY_RESTRICT w, Bytes256& out) {
    const Unpacked32 unpacked = UnpackInOrder(w);
    for (size_t v = 0; v < kDotVectors; ++v) {
      for (size_t half = 0; half < 2; ++half) {
        const VU8 zero = hn::Set(DU8(), static_cast<uint8_t>(kZeroPoint));
        const VU8 bytes = hn::Sub(unpacked.codes[v][half], zero);
        StoreLanes128(hn::BitCast(DI8(), bytes), [&](size_t p) HWY_ATTR {
          return out.weights + 32 * GroupOf<kEvenOdd>(v, p) + 16 * half;
        });
      }
    }
    StoreFloats(unpacked.scales, out.scales);
    if constexpr (kMinimum)
      StoreFloats(MulAdd(unpacked.scales, kZeroPoint, unpacked.mins), out.mins);
  }
};

// Signed bytes are codes w + kSignedOffset: VNNI needs them unsigned, as w + 128; without it signs
// and magnitudes are separate.
constexpr uint8_t kSignedOffset = PRONK_VNNI ? 128 : 0;

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_STEP32_INL_H_
