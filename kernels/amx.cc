// Products of quantized weights with batches by AMX, as avx_vnni.cc is for AVX-VNNI.
#define PRONK_AMX 1
#include "kernels/extension_target.h"
// All that is compiled for it.
#include "kernels/gemm.cc"
#include "kernels/registry_few_bits.cc"
#include "kernels/registry_iq1.cc"
#include "kernels/registry_iq2.cc"
#include "kernels/registry_iq3.cc"
#include "kernels/registry_k.cc"
#include "kernels/registry_simple.cc"
#include "kernels/registry_uneven.cc"
