// HWY_EXPORT and HWY_DYNAMIC_DISPATCH for functions that are also compiled for AVX-VNNI or Arm's
// extensions (extension_target.h).
#pragma once

#include "hwy/highway.h"
#include "kernels/threads/cpu.h"

#ifdef PRONK_BUILDS_AVX_VNNI  // CMakeLists.txt
#define PRONK_EXPORT(FUNCTION)                      \
  namespace N_AVX2_VNNI {                           \
  decltype(HWY_STATIC_DISPATCH(FUNCTION)) FUNCTION; \
  }                                                 \
  HWY_EXPORT(FUNCTION)
#define PRONK_DISPATCH(FUNCTION) \
  (CpuUses(Extension::kAvxVnni) ? &N_AVX2_VNNI::FUNCTION : HWY_DYNAMIC_POINTER(FUNCTION))
#elif HWY_ARCH_ARM_A64
#define PRONK_EXPORT(FUNCTION)                      \
  namespace N_NEON_DOT {                            \
  decltype(HWY_STATIC_DISPATCH(FUNCTION)) FUNCTION; \
  }                                                 \
  namespace N_NEON_I8MM {                           \
  decltype(HWY_STATIC_DISPATCH(FUNCTION)) FUNCTION; \
  }                                                 \
  HWY_EXPORT(FUNCTION)
#define PRONK_DISPATCH(FUNCTION)                           \
  (CpuUses(Extension::kI8mm)      ? &N_NEON_I8MM::FUNCTION \
   : CpuUses(Extension::kDotProd) ? &N_NEON_DOT::FUNCTION  \
                                  : HWY_DYNAMIC_POINTER(FUNCTION))
#else
#define PRONK_EXPORT(FUNCTION) HWY_EXPORT(FUNCTION)
#define PRONK_DISPATCH(FUNCTION) HWY_DYNAMIC_DISPATCH(FUNCTION)
#endif
