// Batches: F32, F16 and BF16. A panel holds floats, whatever the type, and so does the input; or
// both BF16, where the CPU multiplies that faster.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_float.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// Then what each target needs.
#include <cstring>

#include "kernels/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels {
namespace HWY_NAMESPACE {

template <typename Weight>
struct FloatPacking {
  using Panel = FloatPanelBlock;
  using Input = FloatInputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kGroupRows, kTokens = kTileTokens;

  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    const uint8_t* data[kGroupRows];
    for (size_t r = 0; r < kGroupRows; ++r) {
      data[r] = reinterpret_cast<const uint8_t*>(w.row(std::min(row + r, w.rows - 1)));
    }
    alignas(64) float rows[kGroupRows][32];
    for (size_t k = 0; k < w.cols; k += 32, ++panel) {
      const size_t n = std::min<size_t>(32, w.cols - k);
      for (size_t r = 0; r < kGroupRows; ++r) {
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
  static void Pack(const Matrix& w, size_t row, Panel* panel) {
    const auto convert = [&](const std::byte* data, size_t first, size_t n, uint16_t* out) {
      const size_t columns = std::min(32 * n, w.cols - 32 * first);
      std::memcpy(out, data + 32 * first * sizeof(uint16_t), columns * sizeof(uint16_t));
      std::fill(out + columns, out + 32 * n, uint16_t{0});
      if constexpr (kF16) HalfsToBf16(out, 32 * n);
    };
    PackRows(w, row, convert, panel);
  }
};
#endif

void RangeFloat(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                const GemmOutput& out, std::span<std::byte> scratch) {
#if PRONK_WIDE
  if (x.form == BatchForm::kBf16) {
    return w.dtype == gguf::DType::kF16
               ? MultiplyRange<Bf16HalfPacking<true>>(w, begin, end, x, out, scratch)
               : MultiplyRange<Bf16HalfPacking<false>>(w, begin, end, x, out, scratch);
  }
#endif
  switch (w.dtype) {
    case gguf::DType::kF16:
      return MultiplyRange<FloatPacking<hwy::float16_t>>(w, begin, end, x, out, scratch);
    case gguf::DType::kBF16:
      return MultiplyRange<FloatPacking<hwy::bfloat16_t>>(w, begin, end, x, out, scratch);
    case gguf::DType::kF32:
      return MultiplyRange<FloatPacking<float>>(w, begin, end, x, out, scratch);
    default:
      HWY_ABORT("a type of another file");
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(RangeFloat);

void GemmFloat(const Matrix& w, size_t begin, size_t end, const GemmInput& x, const GemmOutput& out,
               std::span<std::byte> scratch) {
  HWY_DYNAMIC_DISPATCH(RangeFloat)(w, begin, end, x, out, scratch);
}

}  // namespace kernels
#endif  // HWY_ONCE
