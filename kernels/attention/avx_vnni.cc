// Attention for AVX2 with AVX-VNNI: compiles key_tiles.cc for it (simd/extension_target.h).
#define PRONK_AVX_VNNI 1
#include "kernels/simd/extension_target.h"
// The files that are compiled for it.
#include "kernels/attention/key_tiles.cc"
