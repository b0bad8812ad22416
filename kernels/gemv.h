// The products of a range of weight rows with one input vector, one function per weight type:
// inside matmul.cc everything is a call of one of these. Internal to kernels/.
#ifndef PRONK_KERNELS_GEMV_H_
#define PRONK_KERNELS_GEMV_H_

#include <cstddef>

#include "kernels/matmul.h"

namespace kernels {

// out[i] = w.row(begin + i) . x for rows [begin, end). A row's result does not depend on the range
// it is computed in. Chooses the instruction set at each call (LimitCpu).
using Gemv = void(const Matrix& w, size_t begin, size_t end, const ActivationRow& x, float* out);

Gemv GemvF32, GemvF16, GemvBF16;                        // gemv_float.cc
Gemv GemvQ4_0, GemvQ4_1, GemvQ5_0, GemvQ5_1, GemvQ8_0;  // gemv_legacy.cc
Gemv GemvQ4_K, GemvQ5_K;                                // gemv_k.cc
Gemv GemvQ2_K, GemvQ3_K, GemvQ6_K;                      // gemv_k16.cc
Gemv GemvIQ1_S, GemvIQ1_M;                              // gemv_iq1.cc
Gemv GemvIQ2_XXS, GemvIQ2_XS, GemvIQ2_S;                // gemv_iq2.cc
Gemv GemvIQ3_XXS, GemvIQ3_S;                            // gemv_iq3.cc
Gemv GemvIQ4_NL, GemvIQ4_XS, GemvMXFP4, GemvNVFP4;      // gemv_iq4.cc
Gemv GemvTQ1_0, GemvTQ2_0, GemvQ1_0, GemvQ2_0;          // gemv_ternary.cc
Gemv GemvReference;  // dispatch.cc: any type, through the scalar reference

}  // namespace kernels

#endif  // PRONK_KERNELS_GEMV_H_
