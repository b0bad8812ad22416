#include "kernels/matmul/registry.h"

#include "kernels/machine/cpu.h"

namespace kernels {

using gguf::DType;

Format FormatOf(DType dtype) {
  for (Format (*const part)(DType) : {FormatOfFloat, FormatOfSimple, FormatOfK, FormatOfIq1,
                                      FormatOfIq2, FormatOfIq3, FormatOfUneven, FormatOfFewBits}) {
    if (const Format format = part(dtype)) return format;
  }
  return {};
}

BatchForm BatchFormFor(DType dtype) {
  if (UsesInt8(dtype)) return CpuUses(Extension::kAmx) ? BatchForm::kBf16 : BatchForm::kInt8;
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  return half && CpuUses(Extension::kBf16) ? BatchForm::kBf16 : BatchForm::kFloats;
}

}  // namespace kernels
