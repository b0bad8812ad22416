// Rows by the scalar definition of each format (formats/): the oracle that the SIMD kernels are
// tested against.
#ifndef PRONK_KERNELS_MATMUL_REFERENCE_H_
#define PRONK_KERNELS_MATMUL_REFERENCE_H_

#include <cstddef>

#include "gguf/dtype.h"

namespace kernels {

// Writes the n weights of a row to out. n is a multiple of the type's block size. Covers every
// weight type of a file (F32, F16, BF16, all quantized ones, including Q8_1 and Q8_K).
void DequantizeRow(gguf::DType dtype, const std::byte* row, size_t n, float* out);

// Sum of row[i] * x[i], accumulated in double.
double DotReference(gguf::DType dtype, const std::byte* row, const float* x, size_t n);

// True for the types that DequantizeRow supports.
bool IsWeightType(gguf::DType dtype);

}  // namespace kernels

#endif  // PRONK_KERNELS_MATMUL_REFERENCE_H_
