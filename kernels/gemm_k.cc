// Batches: the K-quants, 256 weights with 8 or 16 small scales.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_k.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include <array>
#include <type_traits>

#include "gguf/blocks.h"
#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

HWY_INLINE uint32_t LoadU32(const uint8_t* bytes) {
  uint32_t value;
  hwy::CopyBytes<4>(bytes, &value);
  return value;
}

// Small integers, packed by four in `words`.
template <size_t n>
HWY_INLINE void StoreScaled(const uint32_t (&words)[n], float factor, float* HWY_RESTRICT out) {
  int8_t integers[4 * n];
  hwy::CopyBytes<4 * n>(words, integers);
  StoreScaled(integers, 4 * n, factor, out);
}

// Codes of two and three bits times their small scales are integers of a byte, and one scale is
// left for all. Products of few bits are better only where they are added up as i16.
constexpr bool kFold = !PRONK_MADDUBS;

// [scale][code]: a lookup table of 16 bytes for each scale.
using ProductTable = std::array<int8_t, 16>;
constexpr auto kQ2Products = [] {
  std::array<ProductTable, 16> tables{};
  for (int s = 0; s < 16; ++s) {
    for (int q = 0; q < 4; ++q) tables[s][q] = static_cast<int8_t>(s * q);
  }
  return tables;
}();
// Negated: -32 * -4 does not fit in a byte, -128 does.
constexpr auto kMinusQ3Products = [] {
  std::array<ProductTable, 64> tables{};
  for (int s = 0; s < 64; ++s) {
    for (int q = 0; q < 8; ++q) tables[s][q] = static_cast<int8_t>((s - 32) * (4 - q));
  }
  return tables;
}();

HWY_INLINE void StoreProducts(VU8x16 codes, const ProductTable& table,
                              int8_t* HWY_RESTRICT weights) {
  const DU8x16 d;
  const auto products = hn::LoadU(d, reinterpret_cast<const uint8_t*>(table.data()));
  StoreWeights(hn::TableLookupBytes(products, codes), 0, weights);
}

struct Q2_K {
  using Block = gguf::BlockQ2_K;
  using Format = std::conditional_t<kFold, Int8Format<8, 1, 2>, Int8Format<4, 2, 2>>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    int8_t scales[16], mins[16];
    const VU8x16 packed = Load16(block->scales);
    StoreWeights(Bits<0, 4>(packed), 0, scales);
    StoreWeights(Bits<4, 4>(packed), 0, mins);
    StoreScaled(mins, 16, -HalfToFloat(block->dmin), out.mins);
    if constexpr (kFold) {
      std::fill_n(out.scales, 8, HalfToFloat(block->d));
    } else {
      StoreScaled(scales, 16, HalfToFloat(block->d), out.scales);
    }
    UnpackTwoBits(block->qs, out.weights,
                  [&](size_t run, size_t part, VU8x16 codes, int8_t* weights) HWY_ATTR {
                    if constexpr (kFold) {
                      StoreProducts(codes, kQ2Products[scales[2 * run + part]], weights);
                    } else {
                      StoreWeights(codes, 0, weights);
                    }
                  });
  }
};

struct Q3_K {
  using Block = gguf::BlockQ3_K;
  using Format = std::conditional_t<kFold, Int8Format<8>, Int8Format<4, 2>>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    // Four scales each: the low four bits in nibbles of the first eight bytes, the top two in the
    // last four bytes.
    const uint8_t(&s)[12] = block->scales;
    uint32_t words[4];
    for (size_t i = 0; i < 4; ++i) {
      const uint32_t low = LoadU32(s + i % 2 * 4) >> (i / 2 * 4) & 0x0F0F0F0Fu;
      words[i] = low | (LoadU32(s + 8) >> (2 * i) & 0x03030303u) << 4;
    }
    uint8_t scales[16];  // plus 32
    hwy::CopyBytes<16>(words, scales);
    if constexpr (kFold) {
      std::fill_n(out.scales, 8, -HalfToFloat(block->d));
    } else {
      int8_t centered[16];
      StoreWeights(Load16(scales), 32, centered);
      StoreScaled(centered, 16, HalfToFloat(block->d), out.scales);
    }
    const VU8x16 third[2] = {Load16(block->hmask), Load16(block->hmask + 16)};
    UnpackTwoBits(block->qs, out.weights,
                  [&](size_t run, size_t part, VU8x16 two_bits, int8_t* weights) HWY_ATTR {
                    const VU8x16 codes = hn::Or(two_bits, IfBit(third[part], run, 4));
                    if constexpr (kFold) {
                      StoreProducts(codes, kMinusQ3Products[scales[2 * run + part]], weights);
                    } else {
                      StoreWeights(codes, 4, weights);
                    }
                  });
  }
};

// The scales and minimums of Q4_K and Q5_K, for weights that are centered: code - zero. Six bits
// each: scales 0 to 3 and minimums 0 to 3 in the low bits of the first eight bytes; the others have
// four bits in the nibbles of the last four bytes and two in the top bits of the first eight.
template <class Block>
HWY_INLINE void UnpackSixBits(const Block& block, int zero, Unpacked& out) {
  constexpr uint32_t kSix = 0x3F3F3F3Fu, kFour = 0x0F0F0F0Fu, kTop = 0x30303030u;
  const uint32_t first = LoadU32(block.scales), second = LoadU32(block.scales + 4);
  const uint32_t third = LoadU32(block.scales + 8);
  const uint32_t scales[2] = {first & kSix, (third & kFour) | (first >> 2 & kTop)};
  const uint32_t mins[2] = {second & kSix, (third >> 4 & kFour) | (second >> 2 & kTop)};
  StoreScaled(scales, HalfToFloat(block.d), out.scales);
  StoreScaled(mins, -HalfToFloat(block.dmin), out.mins);
  for (size_t g = 0; g < 8; ++g) out.mins[g] += static_cast<float>(zero) * out.scales[g];
}

// 256 nibbles, to which `more(run, part)` adds a bit: each 32 bytes, in two parts of 16, hold a run
// of 32 low nibbles and one of high ones.
template <class More>
HWY_INLINE void UnpackRunsOfNibbles(const uint8_t (&qs)[128], int zero,
                                    int8_t* HWY_RESTRICT weights, More more) {
  for (size_t part = 0; part < 8; ++part) {
    const VU8x16 bytes = Load16(qs + 16 * part);
    const size_t run = part / 2 * 2;
    int8_t* const out = weights + 32 * run + part % 2 * 16;
    StoreWeights(hn::Or(Bits<0, 4>(bytes), more(run, part % 2)), zero, out);
    StoreWeights(hn::Or(Bits<4, 4>(bytes), more(run + 1, part % 2)), zero, out + 32);
  }
}

struct Q4_K {
  using Block = gguf::BlockQ4_K;
  using Format = Int8Format<4, 1, 1>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackRunsOfNibbles(block->qs, 8, out.weights,
                        [](size_t, size_t) HWY_ATTR { return hn::Zero(DU8x16()); });
    UnpackSixBits(*block, 8, out);
  }
};

struct Q5_K {
  using Block = gguf::BlockQ5_K;
  using Format = Int8Format<5, 1, 1>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const VU8x16 fifth[2] = {Load16(block->qh), Load16(block->qh + 16)};
    UnpackRunsOfNibbles(block->qs, 16, out.weights, [&](size_t run, size_t part) HWY_ATTR {
      return IfBit(fifth[part], run, 16);
    });
    UnpackSixBits(*block, 16, out);
  }
};

struct Q6_K {
  using Block = gguf::BlockQ6_K;
  using Format = Int8Format<6, 2>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    for (size_t part = 0; part < 4; ++part) {  // 16 of each run of 32, four runs in each half
      const size_t half = part / 2, at = part % 2 * 16;
      const VU8x16 first = Load16(block->ql + 64 * half + at);
      const VU8x16 second = Load16(block->ql + 64 * half + 32 + at);
      const VU8x16 top = Load16(block->qh + 32 * half + at);
      int8_t* const weights = out.weights + 128 * half + at;
      StoreWeights(hn::Or(Bits<0, 4>(first), Bits<0, 2, 4>(top)), 32, weights);
      StoreWeights(hn::Or(Bits<0, 4>(second), Bits<2, 2, 4>(top)), 32, weights + 32);
      StoreWeights(hn::Or(Bits<4, 4>(first), Bits<4, 2, 4>(top)), 32, weights + 64);
      StoreWeights(hn::Or(Bits<4, 4>(second), Bits<6, 2, 4>(top)), 32, weights + 96);
    }
    StoreScaled(block->scales, 16, HalfToFloat(block->d), out.scales);
  }
};

void RangeK(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
            std::span<std::byte> scratch) {
  using gguf::DType;
  switch (w.dtype) {
    case DType::kQ2_K:
      return MultiplyRange<Int8Packing<Q2_K>>(w, begin, end, x, out, scratch);
    case DType::kQ3_K:
      return MultiplyRange<Int8Packing<Q3_K>>(w, begin, end, x, out, scratch);
    case DType::kQ4_K:
      return MultiplyRange<Int8Packing<Q4_K>>(w, begin, end, x, out, scratch);
    case DType::kQ5_K:
      return MultiplyRange<Int8Packing<Q5_K>>(w, begin, end, x, out, scratch);
    case DType::kQ6_K:
      return MultiplyRange<Int8Packing<Q6_K>>(w, begin, end, x, out, scratch);
    default:
      HWY_ABORT("a type of another file");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT_BATCH(RangeK);

void GemmK(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
           std::span<std::byte> scratch) {
  PRONK_DISPATCH_BATCH(RangeK)(w, begin, end, x, out, scratch);
}

}  // namespace kernels
#endif  // HWY_ONCE
