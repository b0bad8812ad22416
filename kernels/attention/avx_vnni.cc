// Attention for AVX2 with AVX-VNNI, as matmul/avx_vnni.cc has products.
#define PRONK_AVX_VNNI 1
#include "kernels/simd/extension_target.h"
// All that is compiled for it.
#include "kernels/attention/tiles.cc"
