// Makes the rest of a file a compilation for an extension of one of Highway's targets that Highway
// itself does not have: that target with more features and a namespace of its own. To be included
// before everything else, by the files that compile kernels for an extension and by no other, with
// one of these defined:
//
//   PRONK_AVX_VNNI   AVX2 with dot products of bytes, as Intel's CPUs without AVX-512 have them
//   (2021
//                    and later)
//   PRONK_AMX        AVX-512 with tiles, as Intel's servers have them (2023 and later)
#ifndef PRONK_KERNELS_EXTENSION_TARGET_H_
#define PRONK_KERNELS_EXTENSION_TARGET_H_

// One target. What is compiled for it lies between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE, as
// ever: the rest of the file is for any CPU.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#ifdef PRONK_AVX_VNNI
#define HWY_BASELINE_TARGETS HWY_AVX2
#else
#define HWY_BASELINE_TARGETS HWY_AVX3_DL
#endif
#include "hwy/foreach_target.h"
// After that the target is known.
#include "hwy/highway.h"

#undef HWY_TARGET_STR
#undef HWY_NAMESPACE
#ifdef PRONK_AVX_VNNI
#define HWY_TARGET_STR HWY_TARGET_STR_AVX2 ",avxvnni"
#define HWY_NAMESPACE N_AVX2_VNNI
namespace hwy {
namespace N_AVX2_VNNI = N_AVX2;
}
#else
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3_DL ",amx-tile,amx-int8"
#define HWY_NAMESPACE N_AVX3_AMX
namespace hwy {
namespace N_AVX3_AMX = N_AVX3_DL;
}
#endif

// The functions that choose a target are compiled elsewhere.
#undef HWY_ONCE
#define HWY_ONCE 0

#endif  // PRONK_KERNELS_EXTENSION_TARGET_H_
