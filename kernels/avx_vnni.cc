// Products for AVX2 with AVX-VNNI, and how fast its dots are at most: what is compiled for every
// target of Highway's, once more for one that it does not have. So these files are included here.
#include "kernels/extension_target.h"
// All that is compiled for it.
#include "kernels/ceiling.cc"
#include "kernels/gemm.cc"
#include "kernels/registry_few_bits.cc"
#include "kernels/registry_iq1.cc"
#include "kernels/registry_iq2.cc"
#include "kernels/registry_iq3.cc"
#include "kernels/registry_k.cc"
#include "kernels/registry_simple.cc"
#include "kernels/registry_uneven.cc"
