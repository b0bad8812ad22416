// The instruction sets by name. Highway finds out what the CPU has.
#include "kernels/cpu.h"

#include <array>
#include <cstdint>

#include "hwy/highway.h"

namespace kernels {
namespace {

struct NamedTarget {
  std::string_view name;
  int64_t target;  // Highway's bit; a smaller number is a better target
};

// From least to most.
constexpr std::array kNamed = {
    NamedTarget{"sse4", HWY_SSE4},
    NamedTarget{"avx2", HWY_AVX2},
    NamedTarget{"avx512", HWY_AVX3},
    NamedTarget{"avx512vnni", HWY_AVX3_DL},
    NamedTarget{"neon", HWY_NEON_WITHOUT_AES},
    NamedTarget{"neondot", HWY_NEON_BF16},
};

// What this build has and this CPU can run, the limit left aside.
int64_t Available() {
  static const int64_t available = hwy::SupportedTargets() & HWY_TARGETS;
  return available;
}

}  // namespace

bool CpuIsSupported() {
#if HWY_ARCH_X86
  return __builtin_cpu_supports("sse4.2") != 0;  // x86-64-v2, see CMakeLists.txt
#else
  return true;
#endif
}

std::vector<std::string> CpuTargets() {
  std::vector<std::string> names;
  for (const NamedTarget& named : kNamed) {
    if ((Available() & named.target) != 0) names.emplace_back(named.name);
  }
  return names;
}

bool LimitCpu(std::string_view name) {
  const int64_t available = Available();  // before any limit
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    return true;
  }
  for (const NamedTarget& named : kNamed) {
    if (named.name != name || (available & named.target) == 0) continue;
    // The target itself and what is below it: all bits from it upward.
    hwy::SetSupportedTargetsForTest(available & ~(named.target - 1));
    return true;
  }
  return false;
}

std::string CpuTarget() {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  const int64_t best = targets & -targets;
  for (const NamedTarget& named : kNamed) {
    if (named.target == best) return std::string(named.name);
  }
  return hwy::TargetName(best);
}

}  // namespace kernels
