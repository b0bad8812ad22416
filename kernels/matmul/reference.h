// Rows by the scalar definition of each weight type (types/): the oracle for the tests of the SIMD
// kernels.
#pragma once

#include <cstddef>

#include "gguf/dtype.h"
#include "kernels/ops/rounding.h"

namespace kernels {

// Writes the n weights of a row to out. n is a multiple of the type's block size. Covers every
// weight type of a file (F32, F16, BF16 and all quantized types, including Q8_1 and Q8_K).
void DequantizeRow(gguf::DType dtype, const std::byte* row, size_t n, float* out);

// The product of a row with n activations as kernels read them: floats for float types; int8 with
// scales and sums for quantized types. Integers are exact, other numbers are in double.
double DotReference(gguf::DType dtype, const std::byte* row, const ActivationRow& x, size_t n);

// True for the types that DequantizeRow supports.
bool IsWeightType(gguf::DType dtype);

}  // namespace kernels
