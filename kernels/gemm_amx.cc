// Products of quantized weights with batches by AMX.
#define PRONK_AMX 1
#include "kernels/extension_target.h"
// All that is compiled for it.
#include "kernels/gemm.cc"
#include "kernels/gemm_iq.cc"
#include "kernels/gemm_k.cc"
#include "kernels/gemm_legacy.cc"
