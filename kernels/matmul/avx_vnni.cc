// Products for AVX2 with AVX-VNNI, and the ceiling of its dots: includes the files that are
// compiled for every Highway target, to compile them for one that Highway lacks.
#define PRONK_AVX_VNNI 1
#include "kernels/simd/extension_target.h"
// The files that are compiled for it.
#include "kernels/matmul/ceiling.cc"
#include "kernels/matmul/gemm.cc"
#include "kernels/matmul/registry.cc"
#include "kernels/matmul/types.cc"
