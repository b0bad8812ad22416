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
  static HWY_INLINE VF Vector(const uint8_t* HWY_RESTRICT w, size_t v) {
    const hn::Rebind<Weight, DF> d_weight;
    const hn::Repartition<uint8_t, decltype(d_weight)> d_bytes;  // as many bytes, at any address
    const auto bytes = hn::LoadU(d_bytes, w + v * kFloats * sizeof(Weight));
    if constexpr (sizeof(Weight) == 4) {
      return hn::BitCast(DF(), bytes);
    } else {
      return hn::PromoteTo(DF(), hn::BitCast(d_weight, bytes));
    }
  }
  static HWY_INLINE Unpacked Unpack(const uint8_t* HWY_RESTRICT w) {
    Unpacked unpacked;
    for (size_t v = 0; v < kVectors; ++v) unpacked.weights[v] = Vector(w, v);
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
    AddProducts<1>([&](size_t, size_t v) HWY_ATTR { return w.weights[v]; }, in, &sums);
  }
#if PRONK_PIECES == 2
  // For one token, the steps at w of all rows side by side: from memory 2 to 5% faster than row by
  // row (BF16, AVX2; other vectors gain nothing, and lose 8 to 12% in the cache).
  template <size_t n>
  static HWY_INLINE void MultiplyAllRows(const uint8_t* const (&w)[n], const Input& in,
                                         Sums (&sums)[n]) {
    AddProducts<n>([&](size_t r, size_t v) HWY_ATTR { return Vector(w[r], v); }, in, sums);
  }
#endif
  // weights(r, v) is vector v of row r.
  template <size_t n, class Weights>
  static HWY_INLINE void AddProducts(Weights weights, const Input& in, Sums* HWY_RESTRICT sums) {
    VF chains[n][2];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF x = hn::LoadU(DF(), in.x + v * kFloats);
      HWY_UNROLL(4)
      for (size_t r = 0; r < n; ++r) {
        VF& chain = chains[r][v % 2];
        chain = v < 2 ? hn::Mul(weights(r, v), x) : hn::MulAdd(weights(r, v), x, chain);
      }
    }
    for (size_t r = 0; r < n; ++r) {
      sums[r].a = hn::Add(sums[r].a, hn::Add(chains[r][0], chains[r][1]));
    }
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
