// Products for AVX2 with AVX-VNNI, and the ceiling of its dots: what is compiled for every target
// of Highway's, once more for one that it does not have. So these files are included here.
#include "kernels/simd/extension_target.h"
// All that is compiled for it.
#include "kernels/matmul/ceiling.cc"
#include "kernels/matmul/formats.cc"
#include "kernels/matmul/gemm.cc"
#include "kernels/matmul/registry.cc"
