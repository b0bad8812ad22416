// Dot products and rows by the scalar definitions.
#include "kernels/matmul/reference.h"

#include <array>
#include <cassert>

#include "kernels/matmul/registry.h"

namespace kernels {
namespace {

constexpr size_t kMaxBlock = 256;  // weights

}  // namespace

bool IsWeightType(gguf::DType dtype) { return FormatOf(dtype).dequantize != nullptr; }

void DequantizeRow(gguf::DType dtype, const std::byte* row, size_t n, float* out) {
  Dequantize* const dequantize = FormatOf(dtype).dequantize;
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  assert(dequantize != nullptr && n % info.block_size == 0);
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) dequantize(row, out + i);
}

double DotReference(gguf::DType dtype, const std::byte* row, const float* x, size_t n) {
  Dequantize* const dequantize = FormatOf(dtype).dequantize;
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  std::array<float, kMaxBlock> weights;
  double sum = 0;
  for (size_t i = 0; i < n; i += info.block_size, row += info.block_bytes) {
    dequantize(row, weights.data());
    for (size_t j = 0; j < info.block_size; ++j) sum += double{weights[j]} * double{x[i + j]};
  }
  return sum;
}

}  // namespace kernels
