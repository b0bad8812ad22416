// Products with batches for 64-bit Arm with products of matrices of bytes (SMMLA), as avx_vnni.cc.
#define PRONK_NEON_DOT 1
#define PRONK_NEON_I8MM 1
#include "kernels/simd/extension_target.h"
// The files that are compiled for it.
#include "kernels/matmul/ceiling.cc"
#include "kernels/matmul/gemm.cc"
#include "kernels/matmul/registry.cc"
#include "kernels/matmul/types.cc"
