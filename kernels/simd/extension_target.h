// Compiles the rest of a file, in a separate namespace, for instructions that Highway has no target
// for: dot products of bytes on Intel's CPUs without AVX-512 (AVX-VNNI, 2021 and later) and on
// 64-bit Arm (2018 and later), and Arm's products of matrices of bytes (i8mm). Only files that
// define one of the macros below include it, before everything else.
#pragma once

#if !defined(PRONK_AVX_VNNI) && !defined(PRONK_NEON_DOT)
#error "PRONK_AVX_VNNI, PRONK_NEON_DOT, or that and PRONK_NEON_I8MM"
#endif

// Highway compiles the code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE for one target.
#ifndef HWY_COMPILE_ONLY_STATIC
#define HWY_COMPILE_ONLY_STATIC
#endif
#ifdef PRONK_AVX_VNNI
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#include "hwy/foreach_target.h"
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
#if HWY_COMPILER_CLANG
#define PRONK_TARGET_STR_DOT "dotprod"
#define PRONK_TARGET_STR_I8MM "dotprod,i8mm"
#else
#define PRONK_TARGET_STR_DOT "arch=armv8.2-a+dotprod"
#define PRONK_TARGET_STR_I8MM "arch=armv8.2-a+dotprod+i8mm"
#endif
#ifdef PRONK_NEON_I8MM
#define HWY_TARGET_STR PRONK_TARGET_STR_I8MM
#define HWY_NAMESPACE N_NEON_I8MM
#else
#define HWY_TARGET_STR PRONK_TARGET_STR_DOT
#define HWY_NAMESPACE N_NEON_DOT
#endif
namespace hwy {
namespace HWY_NAMESPACE = N_NEON_WITHOUT_AES;
}
// Highway's baseline has no attributes.
#undef HWY_BEFORE_NAMESPACE
#undef HWY_AFTER_NAMESPACE
#undef HWY_ATTR
#define HWY_BEFORE_NAMESPACE() HWY_PUSH_ATTRIBUTES(HWY_TARGET_STR) static_assert(true)
#define HWY_AFTER_NAMESPACE() HWY_POP_ATTRIBUTES static_assert(true)
#define HWY_ATTR __attribute__((target(HWY_TARGET_STR)))
#endif

// The functions that choose a target are compiled elsewhere.
#undef HWY_ONCE
#define HWY_ONCE 0
