// Compiles the rest of a file for AVX-VNNI, which Highway has no target for: AVX2 with dot products
// of bytes, as Intel's CPUs without AVX-512 have them (2021 and later), in a separate namespace.
// avx_vnni.cc alone includes it, before everything else.
#ifndef PRONK_KERNELS_SIMD_EXTENSION_TARGET_H_
#define PRONK_KERNELS_SIMD_EXTENSION_TARGET_H_

#define PRONK_AVX_VNNI 1

// One target, for the code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#define HWY_BASELINE_TARGETS HWY_AVX2
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#undef HWY_TARGET_STR
#undef HWY_NAMESPACE
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#define HWY_NAMESPACE N_AVX2_VNNI
namespace hwy {
namespace N_AVX2_VNNI = N_AVX2;
}

// The functions that choose a target are compiled elsewhere.
#undef HWY_ONCE
#define HWY_ONCE 0

#endif  // PRONK_KERNELS_SIMD_EXTENSION_TARGET_H_
