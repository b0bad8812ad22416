// Products with single vectors for AVX2 with AVX-VNNI.
#define PRONK_AVX_VNNI 1
#include "kernels/extension_target.h"
// All that is compiled for it.
#include "kernels/gemv_iq1.cc"
#include "kernels/gemv_iq2.cc"
#include "kernels/gemv_iq3.cc"
#include "kernels/gemv_iq4.cc"
#include "kernels/gemv_k.cc"
#include "kernels/gemv_k16.cc"
#include "kernels/gemv_legacy.cc"
#include "kernels/gemv_ternary.cc"
