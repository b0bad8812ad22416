// Which kernel multiplies which weight type.
#include "kernels/gemv.h"

#include <array>

#include "kernels/reference.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr std::array kKernels = {
    GemvKernel{DType::kF32, &GemvF32, false},
    GemvKernel{DType::kF16, &GemvF16, false},
    GemvKernel{DType::kBF16, &GemvBF16, false},
    GemvKernel{DType::kQ4_0, &GemvQ4_0, true},
    GemvKernel{DType::kQ4_1, &GemvQ4_1, true},
    GemvKernel{DType::kQ5_0, &GemvQ5_0, true},
    GemvKernel{DType::kQ5_1, &GemvQ5_1, true},
    GemvKernel{DType::kQ8_0, &GemvQ8_0, true},
    GemvKernel{DType::kQ2_K, &GemvQ2_K, true},
    GemvKernel{DType::kQ3_K, &GemvQ3_K, true},
    GemvKernel{DType::kQ4_K, &GemvQ4_K, true},
    GemvKernel{DType::kQ5_K, &GemvQ5_K, true},
    GemvKernel{DType::kQ6_K, &GemvQ6_K, true},
    GemvKernel{DType::kIQ1_S, &GemvIQ1_S, true},
    GemvKernel{DType::kIQ1_M, &GemvIQ1_M, true},
    GemvKernel{DType::kIQ2_XXS, &GemvIQ2_XXS, true},
    GemvKernel{DType::kIQ2_XS, &GemvIQ2_XS, true},
    GemvKernel{DType::kIQ2_S, &GemvIQ2_S, true},
    GemvKernel{DType::kIQ3_XXS, &GemvIQ3_XXS, true},
    GemvKernel{DType::kIQ3_S, &GemvIQ3_S, true},
    GemvKernel{DType::kIQ4_NL, &GemvIQ4_NL, true},
    GemvKernel{DType::kIQ4_XS, &GemvIQ4_XS, true},
    GemvKernel{DType::kTQ1_0, &GemvTQ1_0, true},
    GemvKernel{DType::kTQ2_0, &GemvTQ2_0, true},
    GemvKernel{DType::kMXFP4, &GemvMXFP4, true},
};

}  // namespace

const GemvKernel& FindGemv(DType dtype) {
  for (const GemvKernel& kernel : kKernels) {
    if (kernel.dtype == dtype) return kernel;
  }
  static constexpr GemvKernel kReference{DType::kF32, &GemvReference, false};
  return kReference;
}

void GemvReference(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  for (size_t r = begin; r < end; ++r) {
    out[r - begin] = static_cast<float>(DotReference(w.dtype, w.row(r), x.x, w.cols));
  }
}

}  // namespace kernels
