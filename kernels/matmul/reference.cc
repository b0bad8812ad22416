// Dot products and rows by the scalar definitions.
#include "kernels/matmul/reference.h"

#include <cassert>

#include "kernels/matmul/registry.h"

namespace kernels {

bool IsWeightType(gguf::DType dtype) { return KernelsOf(dtype).dequantize != nullptr; }

void DequantizeRow(gguf::DType dtype, const std::byte* row, size_t n, float* out) {
  Dequantize* const dequantize = KernelsOf(dtype).dequantize;
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  assert(dequantize != nullptr && n % info.block_size == 0);
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) dequantize(row, out + i);
}

double DotReference(gguf::DType dtype, const std::byte* row, const ActivationRow& x, size_t n) {
  const TypeKernels kernels = KernelsOf(dtype);
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  double sum = 0;
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) {
    const ActivationRow block =
        kernels.int8 ? ActivationRow{nullptr, x.q + i, x.scales + i / 32, x.sums + i / 16}
                     : ActivationRow{x.x + i, nullptr, nullptr, nullptr};
    sum += kernels.dot_reference(row, block);
  }
  return sum;
}

}  // namespace kernels
