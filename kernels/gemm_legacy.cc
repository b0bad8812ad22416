// Batches: simple types, with blocks of 32 to 128 weights.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_legacy.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemm-inl.h"
#include "kernels/half.h"
#include "kernels/tables.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

// `value` in byte i where `bits` has bit i, else 0.
HWY_INLINE VU8x16 SpreadBits(uint32_t bits, uint8_t value) {
  const DU8x16 d;
  alignas(16) static constexpr uint8_t kByte[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  alignas(16) static constexpr uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128,
                                                   1, 2, 4, 8, 16, 32, 64, 128};
  const auto all = hn::BitCast(d, hn::Set(hn::FixedTag<uint32_t, 4>(), bits));
  const auto mask = hn::Load(d, kBit);
  const auto masked = hn::And(hn::TableLookupBytes(all, hn::Load(d, kByte)), mask);
  return hn::IfThenElseZero(hn::Eq(masked, mask), hn::Set(d, value));
}

// weights[j] = code of nibble j - kZero, with a fifth bit where the type has one.
template <int kZero, class Block>
HWY_INLINE void UnpackNibbles(const Block& block, int8_t* HWY_RESTRICT weights) {
  const VU8x16 nibbles = Load16(block.qs);
  VU8x16 low = Bits<0, 4>(nibbles), high = Bits<4, 4>(nibbles);
  if constexpr (requires { block.qh; }) {
    uint32_t fifth;
    hwy::CopyBytes<4>(block.qh, &fifth);
    low = hn::Or(low, SpreadBits(fifth, 16));
    high = hn::Or(high, SpreadBits(fifth >> 16, 16));
  }
  StoreWeights(low, kZero, weights);
  StoreWeights(high, kZero, weights + 16);
}

// Q4_0 and Q5_0: d * (q - zero).
template <class BlockType, int kBits>
struct Symmetric {
  using Block = BlockType;
  using Format = Int8Format<kBits>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    for (size_t b = 0; b < n; ++b) {
      UnpackNibbles<1 << (kBits - 1)>(blocks[b], out.weights + 32 * b);
      out.scales[b] = HalfToFloat(blocks[b].d);
    }
  }
};

// Q4_1 and Q5_1: d * q + m = d * (q - zero) + (m + zero * d).
template <class BlockType, int kBits>
struct WithMinimum {
  using Block = BlockType;
  using Format = Int8Format<kBits, 1, 1>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    constexpr int kZero = 1 << (kBits - 1);
    for (size_t b = 0; b < n; ++b) {
      UnpackNibbles<kZero>(blocks[b], out.weights + 32 * b);
      out.scales[b] = HalfToFloat(blocks[b].d);
      out.mins[b] = HalfToFloat(blocks[b].m) + static_cast<float>(kZero) * out.scales[b];
    }
  }
};

using Q4_0 = Symmetric<gguf::BlockQ4_0, 4>;
using Q4_1 = WithMinimum<gguf::BlockQ4_1, 4>;
using Q5_0 = Symmetric<gguf::BlockQ5_0, 5>;
using Q5_1 = WithMinimum<gguf::BlockQ5_1, 5>;

struct Q8_0 {
  using Block = gguf::BlockQ8_0;
  using Format = Int8Format<8>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    for (size_t b = 0; b < n; ++b) {
      std::copy_n(blocks[b].qs, 32, out.weights + 32 * b);
      out.scales[b] = HalfToFloat(blocks[b].d);
    }
  }
};

struct IQ4_NL {
  using Block = gguf::BlockIQ4_NL;
  using Format = Int8Format<8>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    for (size_t b = 0; b < n; ++b) {
      LookUpNibbles(blocks[b].qs, kIq4nlValues, out.weights + 32 * b);
      out.scales[b] = HalfToFloat(blocks[b].d);
    }
  }
};

struct MXFP4 {
  using Block = gguf::BlockMXFP4;
  using Format = Int8Format<5>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    for (size_t b = 0; b < n; ++b) {
      LookUpNibbles(blocks[b].qs, kFp4Values, out.weights + 32 * b);
      out.scales[b] = E8m0HalfToF32(blocks[b].e);
    }
  }
};

struct NVFP4 {
  using Block = gguf::BlockNVFP4;
  using Format = Int8Format<5, 2>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    const hn::FixedTag<float, 4> df;
    const hn::RebindToSigned<DU8x16> d;
    const hn::Repartition<uint64_t, DU8x16> d64;  // eight weights
    const auto values = hn::LoadU(d, kFp4Values.data());
    for (size_t b = 0; b < n / 2; ++b) {
      const auto scale_bytes = hn::LoadU(hn::Rebind<uint8_t, decltype(df)>(), blocks[b].d);
      const auto scales = hn::Mul(PromoteUe4m3(df, scale_bytes), hn::Set(df, 0.5f * kUe4m3Unit));
      hn::StoreU(scales, df, out.scales + 4 * b);
      for (size_t half = 0; half < 2; ++half) {
        const VU8x16 nibbles = Load16(blocks[b].qs + 16 * half);
        const auto low = hn::TableLookupBytes(values, hn::BitCast(d, Bits<0, 4>(nibbles)));
        const auto high = hn::TableLookupBytes(values, hn::BitCast(d, Bits<4, 4>(nibbles)));
        int8_t* const weights = out.weights + 64 * b + 32 * half;
        const auto first = hn::InterleaveLower(d64, hn::BitCast(d64, low), hn::BitCast(d64, high));
        const auto second = hn::InterleaveUpper(d64, hn::BitCast(d64, low), hn::BitCast(d64, high));
        hn::StoreU(hn::BitCast(d, first), d, weights);
        hn::StoreU(hn::BitCast(d, second), d, weights + 16);
      }
    }
  }
};

struct Q1_0 {
  using Block = gguf::BlockQ1_0;
  using Format = Int8Format<4>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    for (size_t b = 0; b < n / 4; ++b) {
      for (size_t i = 0; i < 8; ++i) {
        uint16_t bits;
        hwy::CopyBytes<2>(blocks[b].qs + 2 * i, &bits);
        StoreWeights(SpreadBits(bits, 2), 1, out.weights + 128 * b + 16 * i);
      }
      std::fill_n(out.scales + 4 * b, 4, HalfToFloat(blocks[b].d));
    }
  }
};

struct Q2_0 {
  using Block = gguf::BlockQ2_0;
  using Format = Int8Format<4>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT blocks, size_t n, Unpacked& out) {
    const DU8x16 d;
    for (size_t b = 0; b < n / 2; ++b) {
      const VU8x16 bytes = Load16(blocks[b].qs), one = hn::Set(d, uint8_t{1});
      hn::StoreInterleaved4(hn::Sub(Bits<0, 2>(bytes), one), hn::Sub(Bits<2, 2>(bytes), one),
                            hn::Sub(Bits<4, 2>(bytes), one), hn::Sub(Bits<6, 2>(bytes), one), d,
                            reinterpret_cast<uint8_t*>(out.weights) + 64 * b);
      std::fill_n(out.scales + 2 * b, 2, HalfToFloat(blocks[b].d));
    }
  }
};

void RangeLegacy(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                 const GemmOutput& out, std::span<std::byte> scratch) {
  using gguf::DType;
  switch (w.dtype) {
    case DType::kQ4_0:
      return MultiplyRange<Int8Packing<Q4_0>>(w, begin, end, x, out, scratch);
    case DType::kQ4_1:
      return MultiplyRange<Int8Packing<Q4_1>>(w, begin, end, x, out, scratch);
    case DType::kQ5_0:
      return MultiplyRange<Int8Packing<Q5_0>>(w, begin, end, x, out, scratch);
    case DType::kQ5_1:
      return MultiplyRange<Int8Packing<Q5_1>>(w, begin, end, x, out, scratch);
    case DType::kQ8_0:
      return MultiplyRange<Int8Packing<Q8_0>>(w, begin, end, x, out, scratch);
    case DType::kIQ4_NL:
      return MultiplyRange<Int8Packing<IQ4_NL>>(w, begin, end, x, out, scratch);
    case DType::kMXFP4:
      return MultiplyRange<Int8Packing<MXFP4>>(w, begin, end, x, out, scratch);
    case DType::kNVFP4:
      return MultiplyRange<Int8Packing<NVFP4>>(w, begin, end, x, out, scratch);
    case DType::kQ1_0:
      return MultiplyRange<Int8Packing<Q1_0>>(w, begin, end, x, out, scratch);
    case DType::kQ2_0:
      return MultiplyRange<Int8Packing<Q2_0>>(w, begin, end, x, out, scratch);
    default:
      HWY_ABORT("a type of another file");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT_BATCH(RangeLegacy);

void GemmLegacy(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                const GemmOutput& out, std::span<std::byte> scratch) {
  PRONK_DISPATCH_BATCH(RangeLegacy)(w, begin, end, x, out, scratch);
}

}  // namespace kernels
#endif  // HWY_ONCE
