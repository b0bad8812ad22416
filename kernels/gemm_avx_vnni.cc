// Products with batches for AVX2 with AVX-VNNI, and how fast its dots are at most.
#define PRONK_AVX_VNNI 1
#include "kernels/extension_target.h"
// All that is compiled for it.
#include "kernels/ceiling.cc"
#include "kernels/gemm.cc"
#include "kernels/gemm_iq.cc"
#include "kernels/gemm_k.cc"
#include "kernels/gemm_legacy.cc"
