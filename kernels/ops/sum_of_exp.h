// The sum below a softmax's fraction, for whole vocabularies.
#ifndef PRONK_KERNELS_OPS_SUM_OF_EXP_H_
#define PRONK_KERNELS_OPS_SUM_OF_EXP_H_

#include <cstddef>

namespace kernels {

// The sum of exp(x[i] - max), for max at least every x. Relative error below 1e-6.
double SumOfExp(const float* x, size_t n, float max);

}  // namespace kernels

#endif  // PRONK_KERNELS_OPS_SUM_OF_EXP_H_
