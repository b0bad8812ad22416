// Products that round no activations: weights by their scalar definition (types/), activations as
// floats. They are several times slower than the types' own products, which tests compare with
// them.
#include <algorithm>

#include "kernels/matmul/reference.h"
#include "kernels/matmul/registry.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul/exact.cc"
#include "hwy/foreach_target.h"  // includes this file once per target
// The includes below are repeated for each target.
#include "hwy/highway.h"
#include "kernels/matmul/gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kernels::HWY_NAMESPACE {

// Weights unpacked at a time: the largest block, or several small ones.
constexpr size_t kExactPart = 256;

// Adds up in float within a part and in double across parts, so that long rows lose nothing.
HWY_INLINE double DotPart(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, size_t n) {
  const DF d;
  VF sum = hn::Zero(d);
  size_t i = 0;
  for (; i + kFloatLanes <= n; i += kFloatLanes) {
    sum = hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum);
  }
  if (i < n) sum = hn::MulAdd(hn::LoadN(d, a + i, n - i), hn::LoadN(d, b + i, n - i), sum);
  return hn::ReduceSum(d, sum);
}

// `RowsFunction` of registry.h.
void ExactRowsOf(const Matrix& w, size_t begin, size_t end, std::span<const ActivationRow> x,
                 float* out, size_t stride, std::span<std::byte> /*scratch*/, bool /*prepared*/) {
  alignas(64) float part[kExactPart];
  for (size_t r = begin; r < end; ++r) {
    double sums[kDefaultMaxRowTokens] = {};
    for (size_t k = 0; k < w.cols; k += kExactPart) {
      const size_t n = std::min(kExactPart, w.cols - k);
      DequantizeRow(w.dtype, w.row(r) + gguf::RowBytes(w.dtype, k), n, part);
      for (size_t t = 0; t < x.size(); ++t) sums[t] += DotPart(part, x[t].x + k, n);
    }
    for (size_t t = 0; t < x.size(); ++t) {
      out[t * stride + r - begin] = static_cast<float>(sums[t]);
    }
  }
}

// Packs rows of any type as a panel of floats.
struct ExactPacking {
  using Panel = FloatPanelBlock;
  using Input = FloatInputBlock;
  using Multiplier = TileMultiplier;
  static constexpr size_t kRows = kMicroRows, kTokens = kTileTokens;

  static void Pack(const Matrix& w, size_t row, Panel* HWY_RESTRICT panel) {
    const auto data = RowPointers<kMicroRows>(w, row);
    alignas(64) float rows[kMicroRows][kExactPart];
    for (size_t k = 0; k < w.cols; k += kExactPart) {
      const size_t n = std::min(kExactPart, w.cols - k);
      for (size_t r = 0; r < kMicroRows; ++r) {
        DequantizeRow(w.dtype, data[r] + gguf::RowBytes(w.dtype, k), n, rows[r]);
        std::fill(rows[r] + n, rows[r] + kExactPart, 0.0f);
      }
      for (size_t i = 0; i < n; i += 32, ++panel) {
        Interleave<32, sizeof(rows[0])>(reinterpret_cast<const uint8_t*>(rows[0] + i), 0,
                                        reinterpret_cast<uint8_t*>(panel->weights[0]));
      }
    }
  }
};

// `PanelsFunction` of gemm.h.
void ExactPanelsOf(const Matrix& w, size_t begin, size_t end, const GemmInput& x,
                   const GemmOutput& out, std::span<std::byte> scratch) {
  MultiplyRange<ExactPacking>(w, begin, end, x, out, scratch);
}

}  // namespace kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kernels {

HWY_EXPORT(ExactRowsOf);
HWY_EXPORT(ExactPanelsOf);

TypeKernels Exact(TypeKernels kernels) {
  if (!kernels.int8) return kernels;  // these products read floats anyway
  kernels.rows = HWY_DYNAMIC_POINTER(ExactRowsOf);
  kernels.panels = HWY_DYNAMIC_POINTER(ExactPanelsOf);
  kernels.int8 = false;
  kernels.max_row_tokens = kDefaultMaxRowTokens;
  return kernels;
}

}  // namespace kernels
#endif  // HWY_ONCE
