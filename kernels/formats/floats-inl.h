// F32, F16 and BF16: weights that stand alone, as floats of 32 and 16 bits (half.h). Their input
// stays float, too, or becomes BF16 with them in batches, where the CPU multiplies that faster.
#if defined(PRONK_KERNELS_FORMATS_FLOATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PRONK_KERNELS_FORMATS_FLOATS_INL_H_
#undef PRONK_KERNELS_FORMATS_FLOATS_INL_H_
#else
#define PRONK_KERNELS_FORMATS_FLOATS_INL_H_
#endif

#include <array>
#include <bit>
#include <cstring>

#include "gguf/blocks.h"
#include "kernels/gemm-inl.h"
#include "kernels/half.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

template <typename Weight>
struct FloatPacking {
  using Panel = FloatPanelBlock;
  using Input = FloatInputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kBandRows, kTokens = kTileTokens;

  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    const uint8_t* data[kBandRows];
    for (size_t r = 0; r < kBandRows; ++r) {
      data[r] = reinterpret_cast<const uint8_t*>(w.row(std::min(row + r, w.rows - 1)));
    }
    alignas(64) float rows[kBandRows][32];
    for (size_t k = 0; k < w.cols; k += 32, ++panel) {
      const size_t n = std::min<size_t>(32, w.cols - k);
      for (size_t r = 0; r < kBandRows; ++r) {
        const uint8_t* from = data[r] + k * sizeof(Weight);
        hwy::Prefetch(from + kPrefetchBytes);
        alignas(64) uint8_t padded[32 * sizeof(Weight)];
        if (n < 32) {
          std::memset(padded, 0, sizeof(padded));
          from = static_cast<const uint8_t*>(std::memcpy(padded, from, n * sizeof(Weight)));
        }
        ToFloats(from, rows[r]);
      }
      Interleave<32, sizeof(rows[0])>(reinterpret_cast<const uint8_t*>(rows[0]), 0,
                                      reinterpret_cast<uint8_t*>(panel->weights[0]));
    }
  }

 private:
  static constexpr size_t kPrefetchBytes = 256;  // two blocks or four of each row

  // 32 weights, at any address.
  static HWY_INLINE void ToFloats(const uint8_t* HWY_RESTRICT p, float* HWY_RESTRICT out) {
    const hn::CappedTag<float, 8> d;
    const hn::Rebind<Weight, decltype(d)> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d8;
    for (size_t i = 0; i < 32; i += hn::Lanes(d)) {
      const auto v = hn::BitCast(d_weight, hn::LoadU(d8, p + i * sizeof(Weight)));
      if constexpr (sizeof(Weight) == 4) {
        hn::Store(v, d, out + i);
      } else {
        hn::Store(hn::PromoteTo(d, v), d, out + i);
      }
    }
  }
};

#if PRONK_WIDE
// F16 and BF16 where the CPU multiplies BF16.
template <bool kF16>
struct Bf16HalfPacking : Bf16Panels {
  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    constexpr size_t kPrefetchBytes = 512;
    const auto data = RowPointers<kRows>(w, row);
    for (size_t k = 0; k < w.cols; k += 32, ++panel) {
      const size_t n_bytes = std::min<size_t>(32, w.cols - k) * sizeof(uint16_t);
      for (size_t r = 0; r < kRows; ++r) {
        const std::byte* const from = data[r] + k * sizeof(uint16_t);
        hwy::Prefetch(from + kPrefetchBytes);
        uint16_t* const out = panel->weights[r];
        if (n_bytes < sizeof(panel->weights[r])) std::memset(out, 0, sizeof(panel->weights[r]));
        std::memcpy(out, from, n_bytes);
        if constexpr (kF16) HalfsToBf16(out, 32);
      }
    }
  }
};
#endif

// A step is eight vectors, whatever the weights are before they become floats.
template <gguf::DType kType, typename Weight>
struct Floats {
  static constexpr gguf::DType kDType = kType;
  static constexpr bool kReadsFloats = true;
  static constexpr size_t kStreams = 2;
  static constexpr size_t kVectors = 8;
  static constexpr size_t kStepWeights = kVectors * kFloats;
  static constexpr size_t kStepBytes = kStepWeights * sizeof(Weight);
  struct Block {
    static constexpr int kWeights = 1;
    std::array<uint8_t, sizeof(Weight)> bytes;
  };

  static void Dequantize(const Block& weight, float* out) {
    if constexpr (sizeof(Weight) == 4) {
      *out = std::bit_cast<float>(weight);
    } else {
      const auto bits = std::bit_cast<uint16_t>(weight);
      *out = kType == gguf::DType::kF16 ? F16ToF32(bits) : Bf16ToF32(bits);
    }
  }

  struct Input {
    const float* x;
  };
  struct Unpacked {
    VF weights[kVectors];
  };
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    const DF d;
    const hn::Rebind<Weight, DF> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d_bytes;  // as many bytes, at any address
    Unpacked unpacked;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto bytes = hn::LoadU(d_bytes, w + v * kFloats * sizeof(Weight));
      if constexpr (sizeof(Weight) == 4) {
        unpacked.weights[v] = hn::BitCast(d, bytes);
      } else {
        unpacked.weights[v] = hn::PromoteTo(d, hn::BitCast(d_weight, bytes));
      }
    }
    return unpacked;
  }
  static HWY_INLINE Unpacked Keep(Unpacked w, size_t n) {
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t before = v * kFloats;
      const auto mask = hn::FirstN(DF(), n > before ? n - before : 0);
      w.weights[v] = hn::IfThenElseZero(mask, w.weights[v]);
    }
    return w;
  }
  static HWY_INLINE void Multiply(const Unpacked& w, const Input& in, Sums& sums) {
    const DF d;
    VF chains[2];
    for (size_t v = 0; v < 2; ++v)
      chains[v] = hn::Mul(w.weights[v], hn::LoadU(d, in.x + v * kFloats));
    for (size_t v = 2; v < kVectors; ++v) {
      chains[v % 2] = hn::MulAdd(w.weights[v], hn::LoadU(d, in.x + v * kFloats), chains[v % 2]);
    }
    sums.a = hn::Add(sums.a, hn::Add(chains[0], chains[1]));
  }

  static void MultiplyPanels(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                             const GemmOutput& out, std::span<std::byte> scratch) {
#if PRONK_WIDE
    if (x.form == BatchForm::kBf16) {
      constexpr bool kF16 = kType == gguf::DType::kF16;
      return MultiplyRange<Bf16HalfPacking<kF16>>(w, begin, end, x, out, scratch);
    }
#endif
    MultiplyRange<FloatPacking<Weight>>(w, begin, end, x, out, scratch);
  }
};
using F32 = Floats<gguf::DType::kF32, float>;
using F16 = Floats<gguf::DType::kF16, hwy::float16_t>;
using BF16 = Floats<gguf::DType::kBF16, hwy::bfloat16_t>;

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#endif  // PRONK_KERNELS_FORMATS_FLOATS_INL_H_
