// Look-ups in registers, for CPUs that permute the bytes of a 64-byte vector (AVX-512 VBMI): 3
// instructions for 64 indices into 256 bytes. That beats loads for grids of up to 1024 entries, but
// not for the 2048 entries of IQ1. Included once per instruction set; empty for other CPUs.
//
// An entry gives two bytes of CODES, levels of two or three bits. A weight and its sign are one
// more look-up, for a vector that has the same weight of all entries, so activations are split into
// FOURTHS:
//
//   codes      | byte 0: weights 0 1 2 3 | byte 1: weights 4 5 6 7 | ...          (IQ2)
//   vector c   |         weight c        |         weight 4 + c    | ...      c = 0..3
//
// A lane of a dot product covers 4 bytes, so the dots of the four vectors add up to the sums of 16
// neighbouring weights.
#if defined(PRONK_KERNELS_TYPES_SHARED_LOOKUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_TYPES_SHARED_LOOKUP_INL_H_
#undef PRONK_KERNELS_TYPES_SHARED_LOOKUP_INL_H_
#else
#define PRONK_KERNELS_TYPES_SHARED_LOOKUP_INL_H_
#endif

#include <array>
#include <bit>

#include "kernels/types/shared/grid-inl.h"
#include "kernels/types/shared/tables.h"

#if PRONK_VECTOR64
HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

using MU8 = hn::Mask<DU8>;

// table[index]; only the low six bits of each index count.
HWY_INLINE VU8 Permute(VU8 table, VU8 index) {
  return VU8{_mm512_permutexvar_epi8(index.raw, table.raw)};
}

// Entries of 16 bits as two tables of bytes.
template <size_t kSize>
struct SplitTable {
  constexpr explicit SplitTable(const std::array<uint16_t, kSize>& entries) {
    for (size_t i = 0; i < kSize; ++i) {
      low[i] = static_cast<uint8_t>(entries[i]);
      high[i] = static_cast<uint8_t>(entries[i] >> 8);
    }
  }
  alignas(64) uint8_t low[kSize] = {};
  alignas(64) uint8_t high[kSize] = {};
};

// table[index]. An index's low seven bits are in `index`; the higher bits are masks, lowest first.
template <size_t kSize>
HWY_INLINE VU8 Lookup(const uint8_t* HWY_RESTRICT table, VU8 index, const MU8* HWY_RESTRICT bits) {
  const DU8 d;
  if constexpr (kSize == 128) {
    return VU8{
        _mm512_permutex2var_epi8(hn::Load(d, table).raw, index.raw, hn::Load(d, table + 64).raw)};
  } else {
    constexpr size_t kHalf = kSize / 2;
    return hn::IfThenElse(bits[std::bit_width(kSize / 512)],
                          Lookup<kHalf>(table + kHalf, index, bits),
                          Lookup<kHalf>(table, index, bits));
  }
}

// The dot product needs unsigned bytes, so kWeightBias is added to weights. The sum is at most 127,
// see Dot.
constexpr uint8_t kWeightBias = 64;

// The input of a block, in fourths: vector c has numbers c, 4 + c, 8 + c ...
HWY_INLINE GridInput LoadFourths(const ActivationRow& x, size_t i, float unit) {
  GridInput in = LoadGridInput(x, i, unit);
  hn::LoadInterleaved4(DI8(), x.q + i, in.x[0][0], in.x[0][1], in.x[0][2], in.x[0][3]);
  const auto sums = hn::LoadU(hn::Rebind<int16_t, DI32>(), x.sums + i / 16);
  in.start[0][0] = hn::Mul(hn::PromoteTo(DI32(), sums), hn::Set(DI32(), -kWeightBias));
  return in;
}

// Signs of fourths: the low four bits of byte b belong to weights 4b to 4b + 3. Higher bits are not
// used.
HWY_INLINE VU8 SplitSigns(VU16 signs) {
  return hn::BitCast(DU8(), hn::Or(signs, hn::ShiftLeft<4>(signs)));
}

// kWeightBias + or - a level, by the level at bit `at` of the index and the sign at bit `sign`.
template <size_t kLevels>
constexpr std::array<uint8_t, 64> WeightTable(const std::array<int8_t, kLevels>& levels, int at,
                                              int sign) {
  std::array<uint8_t, 64> table{};
  for (unsigned i = 0; i < 64; ++i) {
    const size_t level = (i >> at) % std::bit_ceil(kLevels);
    const int magnitude = level < kLevels ? levels[level] : 0;
    table[i] = static_cast<uint8_t>(kWeightBias + ((i >> sign & 1) != 0 ? -magnitude : magnitude));
  }
  return table;
}

// Vector c of the weights, plus kWeightBias. Its levels are at bit kAt of the codes and go to bit
// kTo, next to bit c, the sign, among the low six bits.
template <const auto& kLevels, int c, int kAt, int kTo>
HWY_INLINE VU8 WeightsOf(VU8 codes, VU8 signs) {
  const DU8 d;
  constexpr auto kMask = static_cast<uint8_t>(std::bit_ceil(kLevels.size()) - 1);
  alignas(64) static constexpr auto kTable = WeightTable(kLevels, kTo, c);
  const VU8 index =
      hn::BitwiseIfThenElse(hn::Set(d, uint8_t{kMask << kTo}), ShiftBits<kAt - kTo>(codes), signs);
  return Permute(hn::Load(d, kTable.data()), index);
}

// The sums of 16 neighbouring weights in each lane, times scale and the activations' scale.
HWY_INLINE VF AddFourths(VF sum, const VU8 (&weights)[4], VF scale, const GridInput& in) {
  VI32 dots = in.start[0][0];
  for (size_t c = 0; c < 4; ++c) dots = Dot(dots, weights[c], in.x[0][c]);
  return hn::MulAdd(hn::Mul(hn::ConvertTo(DF(), dots), in.scale[0]), scale, sum);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PRONK_VECTOR64

#endif  // PRONK_KERNELS_TYPES_SHARED_LOOKUP_INL_H_
