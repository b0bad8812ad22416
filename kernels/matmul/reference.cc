// Dot products and rows by the scalar definitions.
#include "kernels/matmul/reference.h"

#include <cassert>

#include "kernels/matmul/registry.h"

namespace kernels {

bool IsWeightType(gguf::DType dtype) { return FormatOf(dtype).dequantize != nullptr; }

void DequantizeRow(gguf::DType dtype, const std::byte* row, size_t n, float* out) {
  Dequantize* const dequantize = FormatOf(dtype).dequantize;
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  assert(dequantize != nullptr && n % info.block_size == 0);
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) dequantize(row, out + i);
}

double DotReference(gguf::DType dtype, const std::byte* row, const ActivationRow& x, size_t n) {
  const Format format = FormatOf(dtype);
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  double sum = 0;
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) {
    const ActivationRow block =
        format.int8 ? ActivationRow{nullptr, x.q + i, x.scales + i / 32, x.sums + i / 16}
                    : ActivationRow{x.x + i, nullptr, nullptr, nullptr};
    sum += format.dot_reference(row, block);
  }
  return sum;
}

}  // namespace kernels
