// Rounds keys and values to Q4_0.
#pragma once

#include "gguf/blocks.h"

namespace kernels {

// Rounds 32 numbers with the one of several scales that has the smallest squared error; to NaNs if
// a number is not finite.
void RoundToQ4(const float* x, gguf::BlockQ4_0& out);

}  // namespace kernels
