// Products for 64-bit Arm with dot products of bytes (SDOT), as avx_vnni.cc.
#define PRONK_NEON_DOT 1
#include "kernels/simd/extension_target.h"
// The files that are compiled for it.
#include "kernels/matmul/ceiling.cc"
#include "kernels/matmul/gemm.cc"
#include "kernels/matmul/registry.cc"
#include "kernels/matmul/types.cc"
