// The sum below a softmax's fraction, for whole vocabularies.
#pragma once

#include <cstddef>

namespace kernels {

// The sum of exp(x[i] - max), for max at least every x. Relative error below 1e-6.
double SumOfExp(const float* x, size_t n, float max);

}  // namespace kernels
