// From floats to the bytes of a type: what kernels/matmul/reference.h reads, written. For
// converting models (pronk quantize), never on the way of a token.
#ifndef PRONK_KERNELS_ENCODE_ENCODE_H_
#define PRONK_KERNELS_ENCODE_ENCODE_H_

#include <cstddef>

#include "gguf/dtype.h"

namespace kernels {

// True for the types that EncodeRow writes: all that matrices have in files.
bool CanEncode(gguf::DType dtype);

// Writes n weights as a row of the type: RowBytes(dtype, n) bytes. n is a multiple of the type's
// block size, and CanEncode(dtype).
//
// Scales are chosen for a small sum of squared errors (blocks.h says how). Where there is
// `importance` ([n], finite and not negative), each square counts that many times: of a matrix that
// is the mean square of what its column is multiplied with (pronk imatrix). F16, BF16 and Q8_0 have
// no choice that it could guide. False, and what is written means nothing, where a weight is no
// number or larger than the type can hold.
bool EncodeRow(gguf::DType dtype, const float* x, size_t n, std::byte* row,
               const float* importance = nullptr);

}  // namespace kernels

#endif  // PRONK_KERNELS_ENCODE_ENCODE_H_
