// Batches: the K-quants, 256 weights with 8 or 16 small scales.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_k.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include "gguf/blocks.h"
#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

struct Q2_K {
  using Block = gguf::BlockQ2_K;
  using Format = Int8Format<4, 16, true>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackTwoBits(block->qs, 0, out.weights);
    const float d = HalfToFloat(block->d), dmin = HalfToFloat(block->dmin);
    for (size_t s = 0; s < 16; ++s) {
      out.scales[s] = d * static_cast<float>(block->scales[s] & 15);
      out.mins[s] = -dmin * static_cast<float>(block->scales[s] >> 4);
    }
  }
};

struct Q3_K {
  using Block = gguf::BlockQ3_K;
  using Format = Int8Format<4, 16>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackTwoBits(block->qs, -4, out.weights);
    for (size_t run = 0; run < 8; ++run) {
      for (size_t j = 0; j < 32; ++j) {
        const int third = (block->hmask[j] >> run & 1) * 4;
        out.weights[32 * run + j] = static_cast<int8_t>(out.weights[32 * run + j] + third);
      }
    }
    const float d = HalfToFloat(block->d);
    for (size_t s = 0; s < 16; ++s) {
      const int low = block->scales[s % 8] >> (s / 8 * 4) & 15;
      const int high = block->scales[8 + s % 4] >> (s / 4 * 2) & 3;
      out.scales[s] = d * static_cast<float>((low | high << 4) - 32);
    }
  }
};

// The scales and minimums of Q4_K and Q5_K, for weights that are centered: code - zero.
template <class Block>
HWY_INLINE void UnpackSixBits(const Block& block, int zero, Unpacked& out) {
  const float d = HalfToFloat(block.d), dmin = HalfToFloat(block.dmin);
  const uint8_t(&s)[12] = block.scales;
  for (size_t g = 0; g < 8; ++g) {
    const int scale = g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    const int min = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | (s[g] >> 6) << 4;
    out.scales[g] = d * static_cast<float>(scale);
    out.mins[g] = static_cast<float>(zero) * out.scales[g] - dmin * static_cast<float>(min);
  }
}

// Each 32 bytes hold 64 weights: 32 low nibbles, then 32 high ones.
HWY_INLINE void UnpackRunsOfNibbles(const uint8_t (&qs)[128], int zero,
                                    int8_t* HWY_RESTRICT weights) {
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 32; ++j) {
      weights[64 * i + j] = static_cast<int8_t>((qs[32 * i + j] & 15) - zero);
      weights[64 * i + 32 + j] = static_cast<int8_t>((qs[32 * i + j] >> 4) - zero);
    }
  }
}

struct Q4_K {
  using Block = gguf::BlockQ4_K;
  using Format = Int8Format<4, 32, true>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackRunsOfNibbles(block->qs, 8, out.weights);
    UnpackSixBits(*block, 8, out);
  }
};

struct Q5_K {
  using Block = gguf::BlockQ5_K;
  using Format = Int8Format<5, 32, true>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    UnpackRunsOfNibbles(block->qs, 16, out.weights);
    for (size_t run = 0; run < 8; ++run) {
      for (size_t j = 0; j < 32; ++j) {
        const int fifth = (block->qh[j] >> run & 1) * 16;
        out.weights[32 * run + j] = static_cast<int8_t>(out.weights[32 * run + j] + fifth);
      }
    }
    UnpackSixBits(*block, 16, out);
  }
};

struct Q6_K {
  using Block = gguf::BlockQ6_K;
  using Format = Int8Format<6, 16>;
  static HWY_INLINE void Unpack(const Block* HWY_RESTRICT block, size_t /*n*/, Unpacked& out) {
    for (size_t run = 0; run < 8; ++run) {  // of 32 weights, four in each half
      const uint8_t* const ql = block->ql + run / 4 * 64 + run % 2 * 32;
      const uint8_t* const qh = block->qh + run / 4 * 32;
      const size_t low_shift = run % 4 / 2 * 4, high_shift = run % 4 * 2;
      for (size_t j = 0; j < 32; ++j) {
        const int code = (ql[j] >> low_shift & 15) | (qh[j] >> high_shift & 3) << 4;
        out.weights[32 * run + j] = static_cast<int8_t>(code - 32);
      }
    }
    const float d = HalfToFloat(block->d);
    for (size_t s = 0; s < 16; ++s) out.scales[s] = d * static_cast<float>(block->scales[s]);
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
    default:
      return MultiplyRange<Int8Packing<Q6_K>>(w, begin, end, x, out, scratch);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RangeK);

void GemmK(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
           std::span<std::byte> scratch) {
  HWY_DYNAMIC_DISPATCH(RangeK)(w, begin, end, x, out, scratch);
}

}  // namespace kernels
#endif  // HWY_ONCE
