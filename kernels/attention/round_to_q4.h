// Rounds keys and values to Q4_0.
#pragma once

#include "gguf/blocks.h"

namespace kernels {

// 32 numbers, with the scale of several that has the smallest squared error; NaNs if one is not
// finite.
void RoundToQ4(const float* x, gguf::BlockQ4_0& out);

}  // namespace kernels
