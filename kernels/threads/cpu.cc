// The instruction sets by name. Highway detects its targets, this file the extensions.
#include "kernels/threads/cpu.h"

#include <array>
#include <atomic>
#include <cstdint>

#include "hwy/targets.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace kernels {
namespace {

struct Level {
  std::string_view name;
  int64_t target;  // Highway's bit; a smaller number is a better target
  Extension extension = Extension::kNone;
};

// From the smallest instruction set to the largest.
constexpr std::array kLevels = {
    Level{"sse4", HWY_SSE4},
    Level{"avx2", HWY_AVX2},
    Level{"avxvnni", HWY_AVX2, Extension::kAvxVnni},
    Level{"avx512", HWY_AVX3},
    Level{"avx512vnni", HWY_AVX3_DL},
    Level{"avx512bf16", HWY_AVX3_DL, Extension::kBf16},
    Level{"amx", HWY_AVX3_DL, Extension::kAmx},
    Level{"neon", HWY_NEON_WITHOUT_AES},
    Level{"neondot", HWY_NEON_WITHOUT_AES, Extension::kDotProd},
    Level{"neoni8mm", HWY_NEON_WITHOUT_AES, Extension::kI8mm},
};

#ifdef PRONK_BUILDS_AVX_VNNI
constexpr bool kBuildsAvxVnni = true;
#else
constexpr bool kBuildsAvxVnni = false;
#endif

Extension emulated = Extension::kNone;

[[maybe_unused]] bool Bit(uint64_t word, int i) { return (word >> i & 1) != 0; }

#if HWY_ARCH_X86
struct CpuId {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuId Ask(uint32_t leaf, uint32_t subleaf) {
  CpuId id;
  if (__get_cpuid_count(leaf, subleaf, &id.eax, &id.ebx, &id.ecx, &id.edx) == 0) return {};
  return id;
}

// Tiles are 8 KB of registers, which Linux saves only for processes that requested it, for all of
// their threads.
bool MayUseTiles() {
#ifdef __linux__
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool CpuHas(Extension extension) {
  const uint32_t eax = Ask(7, 1).eax;
  const bool has_pairs = Bit(eax, 5);
  switch (extension) {
    case Extension::kNone:
      return true;
    case Extension::kAvxVnni:
      return Bit(eax, 4);
    case Extension::kBf16: {
      // Intel's cores multiply pairs slower than floats (98 and 139 GOPS), but have tiles.
      constexpr uint32_t kGenuineIntel = 0x756E6547;  // "Genu"
      return has_pairs && (Ask(0, 0).ebx != kGenuineIntel || CpuHas(Extension::kAmx));
    }
    case Extension::kAmx: {
      const uint32_t edx = Ask(7, 0).edx;  // products of BF16, tiles, products of bytes
      const bool is_there = Bit(edx, 22) && Bit(edx, 24) && Bit(edx, 25) && MayUseTiles();
      return has_pairs && (is_there || emulated == Extension::kAmx);
    }
    case Extension::kDotProd:
    case Extension::kI8mm:
      break;
  }
  return false;
}
#elif HWY_ARCH_ARM_A64
#ifdef __APPLE__
bool SystemHas(const std::string& feature) {
  int value = 0;
  size_t size = sizeof(value);
  const std::string name = "hw.optional.arm." + feature;
  return sysctlbyname(name.c_str(), &value, &size, nullptr, 0) == 0 && value != 0;
}
#endif

bool CpuHas(Extension extension) {
  if (extension == Extension::kNone) return true;
#if defined(__linux__)
  const bool dot = Bit(getauxval(AT_HWCAP), 20), i8mm = Bit(getauxval(AT_HWCAP2), 13);
#elif defined(__APPLE__)
  const bool dot = SystemHas("FEAT_DotProd"), i8mm = SystemHas("FEAT_I8MM");
#else
  const bool dot = false, i8mm = false;
#endif
  return dot && (extension == Extension::kDotProd || (extension == Extension::kI8mm && i8mm));
}
#else
bool CpuHas(Extension extension) { return extension == Extension::kNone; }
#endif

// Highway's targets that this CPU can run, whatever the limit.
int64_t CpuTargetBits() {
  static const int64_t targets = hwy::SupportedTargets();
  return targets;
}

// The targets of CpuTargetBits() that this build includes.
int64_t AvailableTargets() { return CpuTargetBits() & HWY_TARGETS; }

using Available = std::array<bool, kLevels.size()>;

const Available& AvailableLevels() {
  static const Available available = [] {
    Available is_there{};
    for (size_t i = 0; i < kLevels.size(); ++i) {
      is_there[i] = (AvailableTargets() & kLevels[i].target) != 0 && CpuHas(kLevels[i].extension) &&
                    (kLevels[i].extension != Extension::kAvxVnni || kBuildsAvxVnni);
    }
    return is_there;
  }();
  return available;
}

// The level with this name, or kLevels.size().
size_t LevelOf(std::string_view name) {
  size_t i = 0;
  while (i < kLevels.size() && kLevels[i].name != name) ++i;
  return i;
}

size_t BestLevel() {
  size_t best = 0;
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (AvailableLevels()[i]) best = i;
  }
  return best;
}

// The index of the level in use.
std::atomic<size_t>& Current() {
  static std::atomic<size_t> current = BestLevel();
  return current;
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
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (AvailableLevels()[i]) names.emplace_back(kLevels[i].name);
  }
  return names;
}

bool BuildLacks(std::string_view name) {
  const size_t i = LevelOf(name);
  return i < kLevels.size() && !AvailableLevels()[i] &&
         (CpuTargetBits() & kLevels[i].target) != 0 && CpuHas(kLevels[i].extension);
}

bool LimitCpu(std::string_view name) {
  const int64_t available = AvailableTargets();  // before any limit
  const size_t i = name.empty() ? BestLevel() : LevelOf(name);
  if (i == kLevels.size() || !AvailableLevels()[i]) return false;
  // The target itself and lower targets: all bits from its bit upward.
  hwy::SetSupportedTargetsForTest(name.empty() ? 0 : available & ~(kLevels[i].target - 1));
  Current() = i;
  return true;
}

std::string CpuTarget() { return std::string(kLevels[Current()].name); }

void EmulateForTest(Extension extension) { emulated = extension; }

bool CpuUses(Extension extension) {
  const size_t current = Current().load(std::memory_order_relaxed);
  for (size_t i = 0; i <= current; ++i) {
    if (kLevels[i].extension == extension) {
      return AvailableLevels()[i] && kLevels[i].target == kLevels[current].target;
    }
  }
  return false;
}

}  // namespace kernels
