// Batches: types whose weights are points of a grid (IQ1 to IQ3), uneven nibbles (IQ4_XS) and
// ternary digits.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_iq.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemm-inl.h"
#include "kernels/grid_bytes.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

HWY_INLINE void Store8(uint64_t bytes, int8_t* to) { hwy::CopyBytes<8>(&bytes, to); }
HWY_INLINE uint32_t LoadU32(const void* bytes) {
  uint32_t value;
  hwy::CopyBytes<4>(bytes, &value);
  return value;
}

// Eight magnitudes, each at least 1, negated where `mask` has a byte of ones. A byte's ~m + 1 never
// carries into the next.
HWY_INLINE uint64_t Negate8(uint64_t magnitudes, uint64_t mask) {
  return (magnitudes ^ mask) + (mask & 0x0101010101010101u);
}

HWY_INLINE int ScaleNibble(const uint8_t* scales, size_t i) {
  return scales[i / 2] >> (4 * (i % 2)) & 15;
}
HWY_INLINE float Iq2Scale(float d, uint32_t s) {
  return d * (0.5f + static_cast<float>(s)) * 0.25f;
}

struct IQ2_XXS {
  using Block = gguf::BlockIQ2_XXS;
  using Format = Int8Format<7>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t g = 0; g < 8; ++g) {
      const uint32_t indices = LoadU32(block->qs + 4 * g);
      const uint32_t signs_scale = LoadU32(block->qs + 4 * g + 2);
      for (size_t l = 0; l < 4; ++l) {
        const uint64_t signs = kSignBytes[EvenSigns(signs_scale >> (7 * l))];
        Store8(Negate8(kIq2xxsBytes[indices >> (8 * l) & 255], signs),
               out.weights + 32 * g + 8 * l);
      }
      out.scales[g] = Iq2Scale(d, signs_scale >> 28);
    }
  }
};

struct IQ2_XS {
  using Block = gguf::BlockIQ2_XS;
  using Format = Int8Format<7, 2>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t k = 0; k < 32; ++k) {
      const uint32_t q = block->qs[k];
      Store8(Negate8(kIq2xsBytes[q & 511], kSignBytes[EvenSigns(q >> 9)]), out.weights + 8 * k);
    }
    for (size_t s = 0; s < 16; ++s) {
      out.scales[s] = Iq2Scale(d, static_cast<uint32_t>(ScaleNibble(block->scales, s)));
    }
  }
};

struct IQ2_S {
  using Block = gguf::BlockIQ2_S;
  using Format = Int8Format<7, 2>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t k = 0; k < 32; ++k) {
      const uint32_t index = block->qs[k] | (block->qh[k / 4] >> (2 * (k % 4)) & 3u) << 8;
      Store8(Negate8(kIq2sBytes[index], kSignBytes[block->signs[k]]), out.weights + 8 * k);
    }
    for (size_t s = 0; s < 16; ++s) {
      out.scales[s] = Iq2Scale(d, static_cast<uint32_t>(ScaleNibble(block->scales, s)));
    }
  }
};

struct IQ3_XXS {
  using Block = gguf::BlockIQ3_XXS;
  using Format = Int8Format<7>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t g = 0; g < 8; ++g) {
      const uint32_t signs_scale = LoadU32(block->signs_scales + 4 * g);
      for (size_t l = 0; l < 4; ++l) {
        const uint8_t* const qs = block->qs + 8 * g + 2 * l;
        const uint64_t magnitudes = kIq3xxsBytes[qs[0]] | static_cast<uint64_t>(kIq3xxsBytes[qs[1]])
                                                              << 32;
        const uint64_t signs = kSignBytes[EvenSigns(signs_scale >> (7 * l))];
        Store8(Negate8(magnitudes, signs), out.weights + 32 * g + 8 * l);
      }
      out.scales[g] = d * (0.5f + static_cast<float>(signs_scale >> 28)) * 0.5f;
    }
  }
};

struct IQ3_S {
  using Block = gguf::BlockIQ3_S;
  using Format = Int8Format<5>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t k = 0; k < 32; ++k) {
      const uint32_t high = block->qh[k / 4] >> (2 * (k % 4));
      const uint32_t first = block->qs[2 * k] | (high & 1) << 8;
      const uint32_t second = block->qs[2 * k + 1] | (high & 2) << 7;
      const uint64_t magnitudes = kIq3sBytes[first] | static_cast<uint64_t>(kIq3sBytes[second])
                                                          << 32;
      Store8(Negate8(magnitudes, kSignBytes[block->signs[k]]), out.weights + 8 * k);
    }
    for (size_t g = 0; g < 8; ++g) {
      out.scales[g] = d * static_cast<float>(1 + 2 * ScaleNibble(block->scales, g));
    }
  }
};

// IQ1: d * (2s + 1) * (level + delta), level -1, 0 or 1 and delta 1/8 or -1/8. Eight times that is
// an integer: 8 * level + 1 or - 1.
constexpr float kIq1Unit = 0.125f;

// Bytes of 8 * level + delta from the table's 8 * level + 9.
HWY_INLINE uint64_t Iq1Bytes(uint32_t index, bool negative_delta) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  const uint64_t shifted = kIq1BytesPlus9[index] + (negative_delta ? 0 : 2 * kOnes);
  // Less 10 in each byte, -9 .. 9: adding 118 cannot carry, and the top bit turns 128 more into it.
  return (shifted + 118 * kOnes) ^ (128 * kOnes);
}

struct IQ1_S {
  using Block = gguf::BlockIQ1_S;
  using Format = Int8Format<5>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t k = 0; k < 32; ++k) {
      const uint32_t high = block->qh[k / 4];
      const uint32_t index = block->qs[k] | (high >> (3 * (k % 4)) & 7) << 8;
      Store8(Iq1Bytes(index, (high & 0x8000) != 0), out.weights + 8 * k);
    }
    for (size_t g = 0; g < 8; ++g) {
      const int s = block->qh[g] >> 12 & 7;
      out.scales[g] = d * static_cast<float>(2 * s + 1) * kIq1Unit;
    }
  }
};

struct IQ1_M {
  using Block = gguf::BlockIQ1_M;
  using Format = Int8Format<5, 2>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    uint32_t d_bits = 0;
    for (size_t i = 0; i < 4; ++i) d_bits |= (block->scales[i] >> 12u) << (4 * i);
    const float d = HalfToFloat(static_cast<uint16_t>(d_bits));
    for (size_t k = 0; k < 32; ++k) {
      const uint32_t high = block->qh[k / 2] >> (4 * (k % 2));
      const uint32_t index = block->qs[k] | (high & 7) << 8;
      Store8(Iq1Bytes(index, (high & 8) != 0), out.weights + 8 * k);
    }
    for (size_t s = 0; s < 16; ++s) {
      const int code = block->scales[s / 4] >> (3 * (s % 4)) & 7;
      out.scales[s] = d * static_cast<float>(2 * code + 1) * kIq1Unit;
    }
  }
};

struct IQ4_XS {
  using Block = gguf::BlockIQ4_XS;
  using Format = Int8Format<8>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    const float d = HalfToFloat(block->d);
    for (size_t g = 0; g < 8; ++g) {
      LookUpNibbles(block->qs + 16 * g, kIq4nlValues, out.weights + 32 * g);
      const int s = ScaleNibble(block->scales_l, g) | (block->scales_h >> (2 * g) & 3) << 4;
      out.scales[g] = d * static_cast<float>(s - 32);
    }
  }
};

// Both ternary types: d * (digit - 1).
HWY_INLINE void FillScales(float d, Unpacked& out) { std::fill_n(out.scales, 8, d); }

struct TQ1_0 {
  using Block = gguf::BlockTQ1_0;
  using Format = Int8Format<4>;
  // Digit after digit of kBytes bytes, see DequantizeBlock.
  template <size_t kBytes, size_t kDigits>
  static HWY_INLINE void UnpackDigits(const uint8_t* HWY_RESTRICT qs,
                                      int8_t* HWY_RESTRICT weights) {
    unsigned power = 1;
    for (size_t n = 0; n < kDigits; ++n, power *= 3) {
      for (size_t i = 0; i < kBytes; ++i) {
        const unsigned digit = (qs[i] * power & 255) * 3 >> 8;
        weights[n * kBytes + i] = static_cast<int8_t>(static_cast<int>(digit) - 1);
      }
    }
  }
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackDigits<32, 5>(block->qs, out.weights);
    UnpackDigits<16, 5>(block->qs + 32, out.weights + 160);
    UnpackDigits<4, 4>(block->qh, out.weights + 240);
    FillScales(HalfToFloat(block->d), out);
  }
};

struct TQ2_0 {
  using Block = gguf::BlockTQ2_0;
  using Format = Int8Format<4>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackTwoBits(block->qs, out.weights,
                  [](size_t, size_t, VU8x16 codes, int8_t* weights)
                      HWY_ATTR { StoreWeights(codes, 1, weights); });
    FillScales(HalfToFloat(block->d), out);
  }
};

void RangeIq(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
             std::span<std::byte> scratch) {
  using gguf::DType;
  switch (w.dtype) {
    case DType::kIQ1_S:
      return MultiplyRange<Int8Packing<IQ1_S>>(w, begin, end, x, out, scratch);
    case DType::kIQ1_M:
      return MultiplyRange<Int8Packing<IQ1_M>>(w, begin, end, x, out, scratch);
    case DType::kIQ2_XXS:
      return MultiplyRange<Int8Packing<IQ2_XXS>>(w, begin, end, x, out, scratch);
    case DType::kIQ2_XS:
      return MultiplyRange<Int8Packing<IQ2_XS>>(w, begin, end, x, out, scratch);
    case DType::kIQ2_S:
      return MultiplyRange<Int8Packing<IQ2_S>>(w, begin, end, x, out, scratch);
    case DType::kIQ3_XXS:
      return MultiplyRange<Int8Packing<IQ3_XXS>>(w, begin, end, x, out, scratch);
    case DType::kIQ3_S:
      return MultiplyRange<Int8Packing<IQ3_S>>(w, begin, end, x, out, scratch);
    case DType::kIQ4_XS:
      return MultiplyRange<Int8Packing<IQ4_XS>>(w, begin, end, x, out, scratch);
    case DType::kTQ1_0:
      return MultiplyRange<Int8Packing<TQ1_0>>(w, begin, end, x, out, scratch);
    case DType::kTQ2_0:
      return MultiplyRange<Int8Packing<TQ2_0>>(w, begin, end, x, out, scratch);
    default:
      HWY_ABORT("a type of another file");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

PRONK_EXPORT_BATCH(RangeIq);

void GemmIq(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
            std::span<std::byte> scratch) {
  PRONK_DISPATCH_BATCH(RangeIq)(w, begin, end, x, out, scratch);
}

}  // namespace kernels
#endif  // HWY_ONCE
