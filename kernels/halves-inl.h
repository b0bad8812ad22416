// The activations of eight groups of 32 for types whose nibbles lie as in Q4_0: byte j has weight j
// in its low half and weight j + 16 in its high. Included once per instruction set.
#if defined(PRONK_KERNELS_HALVES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_HALVES_INL_H_
#undef PRONK_KERNELS_HALVES_INL_H_
#else
#define PRONK_KERNELS_HALVES_INL_H_
#endif

#include "kernels/groups32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// Vectors with the first 16 of each group and vectors with the second 16. That is the order in
// which nibbles come out: one AND gives the first halves of all groups, a shift the second. Groups
// lie in the vectors as AddScaledDots wants them.
struct HalvesInput {
  VI8 first[kDotVectors], second[kDotVectors];
  VI32 offset[kDotVectors];  // -zero * (sum of the lane)
  Floats8 scales;            // of the activations
  Floats8 sums;              // scale * (sum of the 32)
};

// Of the 256 activations at i. kZero is the code that stands for weight 0.
template <int kZero>
HWY_INLINE HalvesInput LoadHalves(const ActivationRow& x, size_t i) {
  HalvesInput in;
  const VI32 none = hn::Zero(DI32());
  const VU8 zero = hn::Set(DU8(), uint8_t{kZero});
  for (size_t v = 0; v < kDotVectors; ++v) {
    const int8_t* const q = x.q + i + 32 * FirstGroup(v);
    LoadPiecePairs<32 * kGroupStep>(q, in.first[v], in.second[v]);
    in.offset[v] = hn::Sub(none, Dot2(none, zero, in.first[v], zero, in.second[v]));
  }
  in.scales = LoadScales(x, i);
  in.sums = LoadScaledSums(x, i);
  return in;
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_HALVES_INL_H_
