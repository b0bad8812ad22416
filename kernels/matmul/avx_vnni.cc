// Products for AVX2 with AVX-VNNI, and how fast its dots are at most: what is compiled for every
// target of Highway's, once more for one that it does not have. So these files are included here.
#include "kernels/simd/extension_target.h"
// All that is compiled for it.
#include "kernels/matmul/ceiling.cc"
#include "kernels/matmul/gemm.cc"
#include "kernels/matmul/registry_few_bits.cc"
#include "kernels/matmul/registry_iq1.cc"
#include "kernels/matmul/registry_iq2.cc"
#include "kernels/matmul/registry_iq3.cc"
#include "kernels/matmul/registry_k.cc"
#include "kernels/matmul/registry_simple.cc"
#include "kernels/matmul/registry_uneven.cc"
