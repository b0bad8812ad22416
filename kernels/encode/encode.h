// Encodes floats as the bytes of a type: the inverse of kernels/matmul/reference.h. Serves the
// conversion of models (pronk quantize), not inference.
#pragma once

#include <cstddef>

#include "gguf/dtype.h"

namespace kernels {

// True for the types that EncodeRow writes: all types of matrices in files.
bool CanEncode(gguf::DType dtype);

// Writes n weights as a row of the type: RowBytes(dtype, n) bytes. n is a multiple of the type's
// block size, and CanEncode(dtype).
//
// Scales are chosen for a small sum of squared errors (block_encoders.h says how). If `importance`
// is given ([n], finite and not negative), it weights each square: for a matrix it is the mean
// square of the inputs of the column (pronk imatrix). F16, BF16 and Q8_0 ignore it. Returns false,
// with undefined output, if a weight is NaN or too large for the type.
bool EncodeRow(gguf::DType dtype, const float* x, size_t n, std::byte* row,
               const float* importance = nullptr);

}  // namespace kernels
