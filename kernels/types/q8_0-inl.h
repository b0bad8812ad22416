// Q8_0: 32 weights of a byte with a scale. 34 bytes, 8.5 bits a weight. Also Q8_1, whose additional
// sum serves only some programs' activations, not weights.
//
//   bytes    0 1        d
//            2 ... 33   qs: byte j is weight j, signed
//   weight   d * q
//
// Q8_1: 36 bytes, the sum (f16) in 2 3, qs in 4 ... 35.

// The guard of a file that is compiled once for each instruction set: Highway defines or undefines
// HWY_TARGET_TOGGLE from one to the next, which lets the file be included again.
#if defined(PRONK_KERNELS_TYPES_Q8_0_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_Q8_0_INL_H_
#undef PRONK_KERNELS_TYPES_Q8_0_INL_H_
#else
#define PRONK_KERNELS_TYPES_Q8_0_INL_H_
#endif

#include "kernels/types/shared/types32-inl.h"

HWY_BEFORE_NAMESPACE();  // from here on the compiler may use this set's instructions
namespace kernels::HWY_NAMESPACE {

// Codes() (step32-inl.h) of signed bytes; groups of 32 weights are kStride bytes apart.
template <size_t kStride>
HWY_INLINE void LoadSigned(const uint8_t* HWY_RESTRICT qs, size_t v, VU8 (*codes)[2]) {
  const VU8 sign = hn::Set(DU8(), kSignedOffset);  // w ^ 128 is w + 128
  for (size_t k = 0; k < 2; ++k) {
    for (size_t half = 0; half < 2; ++half) {
      const uint8_t* const bytes = qs + kStride * FirstGroup(v + k) + 16 * half;
      codes[k][half] = hn::Xor(LoadLanes128<kStride * kGroupStep>(bytes), sign);
    }
  }
}

// SignedType32 (types32-inl.h) multiplies a step of 256 weights, as vectors of bytes, with int8
// activations, and each sum with the scales of its 32 weights. The members below are the part that
// a type of signed bytes adds.
template <class Type, class BlockType>
struct Q8Type : SignedType32<Type, BlockType> {
  // The packed form in batches (unpack-inl.h): integers from -128 to 127, a scale for each 32.
  using PanelForm = Int8Form<-128, 127>;

  // The definition (unpack-inl.h): a weight is this integer times the block's f16 d.
  static int Weight(const BlockType& block, int j) { return block.qs[j]; }

  // The bytes in the order that SignedType32 multiplies them.
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    LoadSigned<sizeof(BlockType)>(w + offsetof(BlockType, qs), v, codes);
  }
#if PRONK_VECTOR64  // two rows, in vectors of 64 bytes
  static HWY_INLINE void PairCodes(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                                   VU8 (&codes)[8]) {
    LoadPair<sizeof(BlockType), offsetof(BlockType, qs)>(w0, w1, codes);
    LoadPair<sizeof(BlockType), offsetof(BlockType, qs) + 16>(w0, w1, codes + 4);
    for (VU8& bytes : codes) bytes = hn::Xor(bytes, hn::Set(DU8(), kSignedOffset));
  }
#endif
};
struct Q8_0 : Q8Type<Q8_0, gguf::BlockQ8_0> {
  static constexpr gguf::DType kDType = gguf::DType::kQ8_0;
};
struct Q8_1 : Q8Type<Q8_1, gguf::BlockQ8_1> {
  static constexpr gguf::DType kDType = gguf::DType::kQ8_1;
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_Q8_0_INL_H_
