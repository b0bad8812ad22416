// From a type to the scalar definition of its weights. To add a type: see kernels/README.md.
#include "kernels/reference.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <cstring>

#include "kernels/half.h"
#include "kernels/reference_blocks.h"

namespace kernels {
namespace {

using gguf::DType;

// Writes the weights of one block, wherever it lies.
using DequantizeFunction = void (*)(const std::byte* block, float* out);

// Copies, since the bytes of a test or a gathered row may lie at any address.
template <class T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

template <class Block>
void Quantized(const std::byte* block, float* out) {
  DequantizeBlock(Load<Block>(block), out);
}

// Types whose weights stand alone are blocks of one.
void F32(const std::byte* weight, float* out) { *out = Load<float>(weight); }
void F16(const std::byte* weight, float* out) { *out = F16ToF32(Load<uint16_t>(weight)); }
void Bf16(const std::byte* weight, float* out) { *out = Bf16ToF32(Load<uint16_t>(weight)); }

// The registry. nullptr for types that are not weights.
DequantizeFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return F32;
    case DType::kF16:
      return F16;
    case DType::kBF16:
      return Bf16;
    case DType::kQ4_0:
      return Quantized<gguf::BlockQ4_0>;
    case DType::kQ4_1:
      return Quantized<gguf::BlockQ4_1>;
    case DType::kQ5_0:
      return Quantized<gguf::BlockQ5_0>;
    case DType::kQ5_1:
      return Quantized<gguf::BlockQ5_1>;
    case DType::kQ8_0:
      return Quantized<gguf::BlockQ8_0>;
    case DType::kQ8_1:
      return Quantized<gguf::BlockQ8_1>;
    case DType::kQ2_K:
      return Quantized<gguf::BlockQ2_K>;
    case DType::kQ3_K:
      return Quantized<gguf::BlockQ3_K>;
    case DType::kQ4_K:
      return Quantized<gguf::BlockQ4_K>;
    case DType::kQ5_K:
      return Quantized<gguf::BlockQ5_K>;
    case DType::kQ6_K:
      return Quantized<gguf::BlockQ6_K>;
    case DType::kQ8_K:
      return Quantized<gguf::BlockQ8_K>;
    case DType::kIQ1_S:
      return Quantized<gguf::BlockIQ1_S>;
    case DType::kIQ1_M:
      return Quantized<gguf::BlockIQ1_M>;
    case DType::kIQ2_XXS:
      return Quantized<gguf::BlockIQ2_XXS>;
    case DType::kIQ2_XS:
      return Quantized<gguf::BlockIQ2_XS>;
    case DType::kIQ2_S:
      return Quantized<gguf::BlockIQ2_S>;
    case DType::kIQ3_XXS:
      return Quantized<gguf::BlockIQ3_XXS>;
    case DType::kIQ3_S:
      return Quantized<gguf::BlockIQ3_S>;
    case DType::kIQ4_NL:
      return Quantized<gguf::BlockIQ4_NL>;
    case DType::kIQ4_XS:
      return Quantized<gguf::BlockIQ4_XS>;
    case DType::kTQ1_0:
      return Quantized<gguf::BlockTQ1_0>;
    case DType::kTQ2_0:
      return Quantized<gguf::BlockTQ2_0>;
    case DType::kMXFP4:
      return Quantized<gguf::BlockMXFP4>;
    case DType::kNVFP4:
      return Quantized<gguf::BlockNVFP4>;
    case DType::kQ1_0:
      return Quantized<gguf::BlockQ1_0>;
    case DType::kQ2_0:
      return Quantized<gguf::BlockQ2_0>;
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF64:
      return nullptr;
  }
  return nullptr;
}

// The most weights that a block has.
constexpr size_t kMaxBlock = 256;

}  // namespace

bool IsWeightType(DType dtype) { return FunctionFor(dtype) != nullptr; }

void DequantizeRow(DType dtype, const std::byte* row, size_t n, float* out) {
  const DequantizeFunction dequantize = FunctionFor(dtype);
  const gguf::DTypeInfo& info = gguf::Info(dtype);
  assert(dequantize != nullptr && n % info.block_size == 0);
  for (size_t i = 0; i < n; i += info.block_size) {
    dequantize(row + gguf::RowBytes(dtype, i), out + i);
  }
}

double DotReference(DType dtype, const std::byte* row, const float* x, size_t n) {
  std::array<float, kMaxBlock> weights;
  const size_t block_size = gguf::Info(dtype).block_size;
  double sum = 0;
  for (size_t i = 0; i < n; i += block_size) {
    DequantizeRow(dtype, row + gguf::RowBytes(dtype, i), block_size, weights.data());
    for (size_t j = 0; j < block_size; ++j) sum += double{weights[j]} * double{x[i + j]};
  }
  return sum;
}

}  // namespace kernels
