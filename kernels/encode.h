// From floats to the bytes of a type: what reference.h reads, written. For converting models (pronk
// quantize), never on the way of a token.
#ifndef PRONK_KERNELS_ENCODE_H_
#define PRONK_KERNELS_ENCODE_H_

#include <cstddef>

#include "gguf/dtype.h"

namespace kernels {

// Writes n weights as a row of the type: RowBytes(dtype, n) bytes. n is a multiple of the type's
// block size; the type is F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K or Q6_K.
//
// Scales are chosen for a small sum of squared errors (encode_blocks.h says how), and every weight
// becomes the nearest value that the scale, as it is stored, has for it. False, and what is written
// means nothing, where a weight is no number or larger than the type can hold.
bool EncodeRow(gguf::DType dtype, const float* x, size_t n, std::byte* row);

}  // namespace kernels

#endif  // PRONK_KERNELS_ENCODE_H_
