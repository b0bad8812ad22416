// The denominator of a softmax, for whole vocabularies.
#pragma once

#include <cstddef>

namespace kernels {

// The sum of exp(x[i] - max), where max is at least every x[i]. The relative error is below 1e-6.
double SumOfExp(const float* x, size_t n, float max);

}  // namespace kernels
