// Products with IQ4_NL, IQ4_XS, MXFP4 and NVFP4: nibbles that stand for uneven values, by a table.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemv_iq4.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemv-inl.h"
#include "kernels/halves-inl.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// A table of values as codes: kZero more.
template <int kZero>
constexpr std::array<uint8_t, 16> Codes(const std::array<int8_t, 16>& values) {
  std::array<uint8_t, 16> codes{};
  for (size_t i = 0; i < 16; ++i) codes[i] = static_cast<uint8_t>(values[i] + kZero);
  return codes;
}

// Steps of eight groups of 32.
template <class BlockType, int kZero>
struct UnevenNibbles {
  using Block = BlockType;
  using Input = HalvesInput;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) { return LoadHalves<kZero>(x, i); }
};

// The codes of IQ4 are unsigned where the dot instruction wants them so.
constexpr int kIq4Zero = PRONK_WIDE ? 128 : 0;

// Each of the eight floats in the lanes of its group in vector v.
HWY_INLINE VF SpreadGroups(const Floats8& floats, size_t v) {
  int32_t group[kFloats];
  for (size_t i = 0; i < kFloats; ++i) {
    group[i] = static_cast<int32_t>(FirstGroup(v) + i / 4 * kGroupStep);
  }
  return PickFloats(floats, group);
}

// sum + scale * value * x for eight groups of 16 bytes, kStride bytes apart. (The dots are too
// large for AddScaledDots.)
template <size_t kStride>
HWY_INLINE VF AddIq4(const uint8_t* HWY_RESTRICT qs, const Floats8& scales, const HalvesInput& in,
                     VF sum) {
  alignas(16) static constexpr auto kCodes = Codes<kIq4Zero>(kIq4nlValues);
  const VU8 table = hn::LoadDup128(DU8(), kCodes.data());
  for (size_t v = 0; v < kDotVectors; ++v) {
    const VU8 nibbles = LoadPieces<kGroupStep * kStride>(qs + FirstGroup(v) * kStride);
    const VU8 first = hn::TableLookupBytes(table, LowNibbles(nibbles));
    const VU8 second = hn::TableLookupBytes(table, HighNibbles(nibbles));
#if PRONK_WIDE
    const VI32 dot = Dot(Dot(in.offset[v], first, in.first[v]), second, in.second[v]);
#else
    const DI8 d;
    const VI32 dot = DotSigned(DotSigned(hn::Zero(DI32()), hn::BitCast(d, first), in.first[v]),
                               hn::BitCast(d, second), in.second[v]);
#endif
    sum = hn::MulAdd(hn::ConvertTo(DF(), dot), SpreadGroups(scales, v), sum);
  }
  return sum;
}

struct IQ4_NL : UnevenNibbles<gguf::BlockIQ4_NL, kIq4Zero> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(LoadEightHalfs<sizeof(Block)>(w), in.scales);
    sums.a = AddIq4<sizeof(Block)>(w + offsetof(Block, qs), scales, in, sums.a);
  }
};

struct IQ4_XS : UnevenNibbles<gguf::BlockIQ4_XS, kIq4Zero> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    const Floats8 scales = Mul(GroupScales(w), in.scales);
    sums.a = AddIq4<16>(w + offsetof(Block, qs), scales, in, sums.a);
  }

  // d times six bits less 32, of which group g has four at bit 4g of scales_l and two at bit 2g of
  // scales_h.
  static HWY_INLINE Floats8 GroupScales(const uint8_t* HWY_RESTRICT w) {
    uint32_t low_bits;
    uint16_t high_bits;
    hwy::CopyBytes<4>(w + offsetof(Block, scales_l), &low_bits);
    hwy::CopyBytes<2>(w + offsetof(Block, scales_h), &high_bits);
    const hn::RebindToUnsigned<D8> du;
    const hn::RebindToSigned<D8> di;
    const V8 d = SetHalf(D8(), w + offsetof(Block, d));
    Floats8 scales;
    for (size_t k = 0; k < kParts8; ++k) {
      const auto group = hn::Iota(du, k * hn::MaxLanes(du));
      const auto twice = hn::Add(group, group);
      const auto low = hn::Shr(hn::Set(du, low_bits), hn::Add(twice, twice));
      const auto high = hn::ShiftLeft<4>(hn::Shr(hn::Set(du, uint32_t{high_bits}), twice));
      const auto six = hn::OrAnd(hn::And(low, hn::Set(du, 15u)), high, hn::Set(du, 0x30u));
      const auto scale = hn::Sub(hn::BitCast(di, six), hn::Set(di, 32));
      scales.part[k] = hn::Mul(hn::ConvertTo(D8(), scale), d);
    }
    return scales;
  }
};

constexpr int kFp4Zero = 12;

struct MXFP4 : UnevenNibbles<gguf::BlockMXFP4, kFp4Zero> {
  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    alignas(16) static constexpr auto kCodes = Codes<kFp4Zero>(kFp4Values);
    const VU8 table = hn::LoadDup128(DU8(), kCodes.data());
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) {
      const uint8_t* const qs = w + FirstGroup(v) * sizeof(Block) + offsetof(Block, qs);
      const VU8 nibbles = LoadPieces<kGroupStep * sizeof(Block)>(qs);
      dots[v] = Dot2(in.offset[v], hn::TableLookupBytes(table, LowNibbles(nibbles)), in.first[v],
                     hn::TableLookupBytes(table, HighNibbles(nibbles)), in.second[v]);
    }
    sums.a = AddScaledDots(sums.a, dots, Mul(BlockScales(w), in.scales));
  }

  // E8m0HalfToF32 of half.h for eight blocks.
  static HWY_INLINE Floats8 BlockScales(const uint8_t* HWY_RESTRICT w) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < 8; ++i) bytes |= static_cast<uint64_t>(w[i * sizeof(Block)]) << (8 * i);
    const hn::RebindToUnsigned<D8> du;
    const hn::Rebind<uint8_t, D8> d_bytes;
    Floats8 scales;
    for (size_t k = 0; k < kParts8; ++k) {
      const auto part = hn::Set(hn::FixedTag<uint64_t, 1>(), bytes >> (32 * k));
      const auto e = hn::PromoteTo(du, hn::ResizeBitCast(d_bytes, part));
      const auto one = hn::Set(du, 1u);
      const auto normal = hn::ShiftLeft<23>(hn::Sub(e, one));
      const auto denormal = hn::ShiftLeft<21>(hn::Add(e, one));  // of 0 and 1
      scales.part[k] = hn::BitCast(D8(), hn::IfThenElse(hn::Gt(e, one), normal, denormal));
    }
    return scales;
  }
};

// Groups of 16, of which byte j has weight j in its low half and weight j + 8 in its high: a piece
// has two groups, and a lane's dots belong to one of them. A block's two pieces lie side by side.
struct NVFP4 {
  using Block = gguf::BlockNVFP4;
  static constexpr bool kReadsFloats = false;
  static constexpr size_t kStepWeights = 256;
  static constexpr size_t kStepBytes = 256 / Block::kWeights * sizeof(Block);
  static constexpr size_t kScaleVectors = kDotVectors / 2;  // of 16 groups

  struct Input {
    VI8 first[kDotVectors], second[kDotVectors];  // the first 8 of each group, and the second
    VI32 offset[kDotVectors];                     // -zero * (sum of the lane)
    VF scales[kScaleVectors];  // of the activations, in the order of ScaleBytes, for weights of
                               // twice the value
  };

  static HWY_INLINE Input Load(const ActivationRow& x, size_t i) {
    Input in;
    const hn::Repartition<uint64_t, DU8> d64;
    const VI32 none = hn::Zero(DI32());
    const VU8 zero = hn::Set(DU8(), uint8_t{kFp4Zero});
    for (size_t v = 0; v < kDotVectors; ++v) {
      const int8_t* const q = x.q + i + 2 * kVectorBytes * v;
      const auto low = hn::BitCast(d64, hn::LoadU(DI8(), q));
      const auto high = hn::BitCast(d64, hn::LoadU(DI8(), q + kVectorBytes));
      in.first[v] = hn::BitCast(DI8(), hn::ConcatEven(d64, high, low));
      in.second[v] = hn::BitCast(DI8(), hn::ConcatOdd(d64, high, low));
      in.offset[v] = hn::Sub(none, Dot2(none, zero, in.first[v], zero, in.second[v]));
    }
    const VF unit = hn::Set(DF(), 0.5f * kUe4m3Unit);
    for (size_t k = 0; k < kScaleVectors; ++k) {
      alignas(64) float scales[kFloats];
      for (size_t lane = 0; lane < kFloats; ++lane) {
        const size_t vector = 2 * k + lane % 4 / 2;
        scales[lane] = x.scales[i / 32 + vector * kPieces + lane / 4];
      }
      in.scales[k] = hn::Mul(hn::Load(DF(), scales), unit);
    }
    return in;
  }

  static HWY_INLINE void Step(const uint8_t* HWY_RESTRICT w, const Input& in, Sums& sums) {
    alignas(16) static constexpr auto kCodes = Codes<kFp4Zero>(kFp4Values);
    const VU8 table = hn::LoadDup128(DU8(), kCodes.data());
    VI32 dots[kDotVectors];
    for (size_t v = 0; v < kDotVectors; ++v) {
      const VU8 nibbles = LoadRuns<sizeof(Block)>(w + offsetof(Block, qs), v);
      dots[v] = Dot2(in.offset[v], hn::TableLookupBytes(table, LowNibbles(nibbles)), in.first[v],
                     hn::TableLookupBytes(table, HighNibbles(nibbles)), in.second[v]);
    }
    for (size_t k = 0; k < kScaleVectors; ++k) {
      const VF scales = hn::Mul(PromoteUe4m3(DF(), ScaleBytes(w, k)), in.scales[k]);
      const VI32 groups = AddNeighbours(dots[2 * k], dots[2 * k + 1]);
      sums.a = hn::MulAdd(hn::ConvertTo(DF(), groups), scales, sums.a);
    }
  }

  // The scales of vectors 2k and 2k + 1, two of one and two of the other by turns: the order in
  // which AddNeighbours leaves their groups.
  using DBytes = hn::Rebind<uint8_t, DF>;
  static HWY_INLINE hn::Vec<DBytes> ScaleBytes(const uint8_t* HWY_RESTRICT w, size_t k) {
#if PRONK_PIECES == 1
    return hn::LoadU(DBytes(), w + k * sizeof(Block));
#else
    const hn::Repartition<uint16_t, DBytes> d16;
    const auto of_vector = [&](size_t v) HWY_ATTR {
      constexpr size_t kBlocks = kPieces / 2;
      uint32_t scales[2] = {};
      for (size_t b = 0; b < kBlocks; ++b) {
        hwy::CopyBytes<4>(w + (v * kBlocks + b) * sizeof(Block), &scales[b]);
      }
      const uint64_t bits = scales[0] | static_cast<uint64_t>(scales[1]) << 32;
      return hn::ResizeBitCast(d16, hn::Set(hn::FixedTag<uint64_t, 1>(), bits));
    };
    return hn::BitCast(DBytes(), hn::InterleaveLower(d16, of_vector(2 * k), of_vector(2 * k + 1)));
#endif
  }
};

void RowsIQ4_NL(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ4_NL>(w, begin, end, x, out);
}
void RowsIQ4_XS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<IQ4_XS>(w, begin, end, x, out);
}
void RowsMXFP4(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<MXFP4>(w, begin, end, x, out);
}
void RowsNVFP4(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  MultiplyRows<NVFP4>(w, begin, end, x, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT(RowsIQ4_NL);
PRONK_EXPORT(RowsIQ4_XS);
PRONK_EXPORT(RowsMXFP4);
PRONK_EXPORT(RowsNVFP4);

void GemvIQ4_NL(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ4_NL)(w, begin, end, x, out);
}
void GemvIQ4_XS(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsIQ4_XS)(w, begin, end, x, out);
}
void GemvMXFP4(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsMXFP4)(w, begin, end, x, out);
}
void GemvNVFP4(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  PRONK_DISPATCH(RowsNVFP4)(w, begin, end, x, out);
}

}  // namespace kernels
#endif  // HWY_ONCE
