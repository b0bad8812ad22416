// Products with batches for AVX2 with AVX-VNNI, and how fast its dots are at most.
#include "kernels/avx_vnni.h"
// All that is compiled for it.
#include "kernels/ceiling.cc"
#include "kernels/gemm.cc"
#include "kernels/gemm_iq.cc"
#include "kernels/gemm_k.cc"
#include "kernels/gemm_legacy.cc"
