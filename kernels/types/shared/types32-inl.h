// Bases of types with scales (and minimums) for groups of 32 weights. UnsignedType32 and
// SignedType32 are RowPairs32 in vectors of 64 bytes, otherwise UnsignedRows32 and SignedRows32: of
// the two files included below, one is empty. Nibbles32 unpacks codes of four bits. Included once
// per instruction set.
#if defined(PRONK_KERNELS_TYPES_SHARED_TYPES32_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_TYPES32_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_TYPES32_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_TYPES32_INL_H_
#endif

#include <array>

#include "kernels/types/shared/row_pairs32-inl.h"
#include "kernels/types/shared/single_rows32-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// UnsignedType32 is for codes from 0 to kMaxCode, at most 31:
//   kMinimum false   weight = scale * (code - kZeroPoint)
//   kMinimum true    weight = scale * code + min;  kZeroPoint is about the middle of the codes
// kEvenOdd: a byte's nibbles belong to neighbouring groups. SignedType32 is for signed bytes, whose
// codes are the weights plus kSignedOffset (step32-inl.h). kNo128: no byte is -128.
#if PRONK_VECTOR64
template <class Type, class Block, int kZeroPoint, int kMaxCode, bool kMinimum = false,
          bool kEvenOdd = false>
using UnsignedType32 = RowPairs32<Type, Block, kZeroPoint, kMaxCode, kMinimum, kEvenOdd>;
template <class Type, class Block, bool /*kNo128*/ = false>
using SignedType32 = RowPairs32<Type, Block, kSignedOffset, 255, false, false>;
#else
template <class Type, class Block, int kZeroPoint, int kMaxCode, bool kMinimum = false,
          bool kEvenOdd = false>
using UnsignedType32 = UnsignedRows32<Type, Block, kZeroPoint, kMaxCode, kMinimum, kEvenOdd>;
template <class Type, class Block, bool kNo128 = false>
using SignedType32 = SignedRows32<Type, Block, kNo128>;
#endif

// The code of a nibble: the nibble itself, or the table's entry.
struct SameCodes {
  static HWY_INLINE VU8 Of(VU8 nibbles) { return nibbles; }
};
template <const std::array<int8_t, 16>& kValues, int kZeroPoint>  // values + kZeroPoint
struct TableCodes {
  static HWY_INLINE VU8 Of(VU8 nibbles) {
    const DU8 d;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(kValues.data());
    const VU8 table =
        hn::Add(hn::LoadDup128(d, bytes), hn::Set(d, static_cast<uint8_t>(kZeroPoint)));
    return hn::TableLookupBytes(table, nibbles);
  }
};

// Groups of 32 nibbles, kStride bytes apart: one AND gives the first halves of all groups, a shift
// the second halves.
template <class Block, class OfNibbles = SameCodes, size_t kStride = sizeof(Block)>
struct Nibbles32 {
  static HWY_INLINE void Codes(const uint8_t* HWY_RESTRICT w, size_t v, VU8 (*codes)[2]) {
    for (size_t k = 0; k < 2; ++k) {
      const uint8_t* const first = w + offsetof(Block, qs) + FirstGroup(v + k) * kStride;
      const VU8 nibbles = LoadLanes128<kGroupStep * kStride>(first);
      codes[k][0] = OfNibbles::Of(LowNibbles(nibbles));
      codes[k][1] = OfNibbles::Of(HighNibbles(nibbles));
    }
  }
#if PRONK_VECTOR64
  static HWY_INLINE void PairCodes(const uint8_t* HWY_RESTRICT w0, const uint8_t* HWY_RESTRICT w1,
                                   VU8 (&codes)[8]) {
    VU8 nibbles[4];
    LoadPair<kStride, offsetof(Block, qs)>(w0, w1, nibbles);
    HWY_UNROLL(4)
    for (size_t k = 0; k < 4; ++k) {
      codes[k] = OfNibbles::Of(LowNibbles(nibbles[k]));
      codes[4 + k] = OfNibbles::Of(HighNibbles(nibbles[k]));
    }
  }
#endif
};

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_TYPES_SHARED_TYPES32_INL_H_
