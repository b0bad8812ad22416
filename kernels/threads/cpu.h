// The instruction set of the kernels: the best that the CPU has, or a lower one on request (--cpu).
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kernels {

// True if this CPU has the build's baseline; otherwise nothing in kernels/ may be called.
bool CpuIsSupported();

// The targets of this build that this CPU can run, from the smallest to the largest, e.g. {"sse4",
// "avx2", "avx512", "avx512vnni", "avx512bf16"} or {"neon", "neondot"}.
std::vector<std::string> CpuTargets();

// True if this CPU can run the target, but the build left it out (PRONK_TARGETS=native,
// sanitizers).
bool BuildLacks(std::string_view name);

// Limits the kernels to this target and lower ones; returns false if CpuTargets() does not have the
// name. Takes effect for kernels called from now on; not while a ThreadPool runs, and not between
// Activations' packing and a product with them. "" lifts the limit.
bool LimitCpu(std::string_view name);

// The target the kernels use now.
std::string CpuTarget();

// Instruction sets that are not Highway targets, or that only a few files use. Each extends a
// target.
enum class Extension {
  kNone,
  kAvxVnni,  // on AVX2: dot products of bytes (extension_target.h)
  kBf16,     // on AVX-512 VNNI: dot products of BF16 pairs, where they pay (bf16.h)
  kAmx,      // on kBf16: products of whole tiles (bf16.h)
  kDotProd,  // on NEON: dot products of bytes (extension_target.h)
  kI8mm,     // on kDotProd: products of matrices of 2 x 8 bytes (extension_target.h)
};

// True if the kernels use the extension: the CPU has it, the system permits it, and no limit
// forbids it.
bool CpuUses(Extension extension);

// Pretends that the CPU has the extension, for tests that emulate its instructions. Must be called
// before any other function here.
void EmulateForTest(Extension extension);

}  // namespace kernels
