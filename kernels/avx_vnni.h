// Makes the rest of a file a compilation for AVX2 with AVX-VNNI: dot products of bytes in vectors
// of 32, which Intel's CPUs without AVX-512 have (2021 and later). Highway has no such target, so
// this is its AVX2 with one more feature and a namespace of its own. To be included before
// everything else, by the files that compile kernels for it (*_avx_vnni.cc) and by no other.
#ifndef PRONK_KERNELS_AVX_VNNI_H_
#define PRONK_KERNELS_AVX_VNNI_H_

#define PRONK_AVX_VNNI 1

// One target, and that is AVX2. What is compiled for it lies between HWY_BEFORE_NAMESPACE and
// HWY_AFTER_NAMESPACE, as ever: the rest of the file is for any CPU.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#define HWY_BASELINE_TARGETS HWY_AVX2
#include "hwy/foreach_target.h"
// After that the target is known.
#include "hwy/highway.h"

#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#undef HWY_NAMESPACE
#define HWY_NAMESPACE N_AVX2_VNNI
namespace hwy {
namespace N_AVX2_VNNI = N_AVX2;
}

// The functions that choose a target are compiled elsewhere.
#undef HWY_ONCE
#define HWY_ONCE 0

#endif  // PRONK_KERNELS_AVX_VNNI_H_
