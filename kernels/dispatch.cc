#include "kernels/dispatch.h"

#include <array>

#include "kernels/cpu.h"
#include "kernels/reference.h"

namespace kernels {
namespace {

using gguf::DType;

constexpr std::array kKernels = {
    TypeKernels{DType::kF32, &GemvF32, &GemmFloat, false},
    TypeKernels{DType::kF16, &GemvF16, &GemmFloat, false},
    TypeKernels{DType::kBF16, &GemvBF16, &GemmFloat, false},
    TypeKernels{DType::kQ4_0, &GemvQ4_0, &GemmLegacy, true},
    TypeKernels{DType::kQ4_1, &GemvQ4_1, &GemmLegacy, true},
    TypeKernels{DType::kQ5_0, &GemvQ5_0, &GemmLegacy, true},
    TypeKernels{DType::kQ5_1, &GemvQ5_1, &GemmLegacy, true},
    TypeKernels{DType::kQ8_0, &GemvQ8_0, &GemmLegacy, true},
    TypeKernels{DType::kQ2_K, &GemvQ2_K, &GemmK, true},
    TypeKernels{DType::kQ3_K, &GemvQ3_K, &GemmK, true},
    TypeKernels{DType::kQ4_K, &GemvQ4_K, &GemmK, true},
    TypeKernels{DType::kQ5_K, &GemvQ5_K, &GemmK, true},
    TypeKernels{DType::kQ6_K, &GemvQ6_K, &GemmK, true},
    TypeKernels{DType::kIQ1_S, &GemvIQ1_S, &GemmIq, true},
    TypeKernels{DType::kIQ1_M, &GemvIQ1_M, &GemmIq, true},
    TypeKernels{DType::kIQ2_XXS, &GemvIQ2_XXS, &GemmIq, true},
    TypeKernels{DType::kIQ2_XS, &GemvIQ2_XS, &GemmIq, true},
    TypeKernels{DType::kIQ2_S, &GemvIQ2_S, &GemmIq, true},
    TypeKernels{DType::kIQ3_XXS, &GemvIQ3_XXS, &GemmIq, true},
    TypeKernels{DType::kIQ3_S, &GemvIQ3_S, &GemmIq, true},
    TypeKernels{DType::kIQ4_NL, &GemvIQ4_NL, &GemmLegacy, true},
    TypeKernels{DType::kIQ4_XS, &GemvIQ4_XS, &GemmIq, true},
    TypeKernels{DType::kTQ1_0, &GemvTQ1_0, &GemmIq, true},
    TypeKernels{DType::kTQ2_0, &GemvTQ2_0, &GemmIq, true},
    TypeKernels{DType::kMXFP4, &GemvMXFP4, &GemmLegacy, true},
    TypeKernels{DType::kNVFP4, &GemvNVFP4, &GemmLegacy, true},
    TypeKernels{DType::kQ1_0, &GemvQ1_0, &GemmLegacy, true},
    TypeKernels{DType::kQ2_0, &GemvQ2_0, &GemmLegacy, true},
};

}  // namespace

const TypeKernels& KernelsFor(DType dtype) {
  for (const TypeKernels& kernels : kKernels) {
    if (kernels.dtype == dtype) return kernels;
  }
  static constexpr TypeKernels kReference{DType::kF32, &GemvReference, nullptr, false};
  return kReference;
}

BatchForm BatchFormFor(DType dtype) {
  if (KernelsFor(dtype).int8) return BatchForm::kInt8;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return half && CpuUses(Extension::kBf16) ? BatchForm::kBf16 : BatchForm::kFloats;
}

void GemvReference(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out) {
  for (size_t r = begin; r < end; ++r) {
    out[r - begin] = static_cast<float>(DotReference(w.dtype, w.row(r), x.x, w.cols));
  }
}

}  // namespace kernels
