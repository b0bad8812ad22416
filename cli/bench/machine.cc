// Reads the system's facts about the machine, and measures its clock and memory.
#include "cli/bench/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "cli/terminal/terminal.h"
#include "engine/stopwatch.h"
#include "gguf/error.h"
#include "kernels/threads/sysfs.h"
#if defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(__linux__)
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/syscall.h>
#endif

namespace cli {
namespace {

namespace fs = std::filesystem;

#if defined(__APPLE__)
constexpr bool kIsApple = true;
#else
constexpr bool kIsApple = false;
#endif
constexpr uint64_t kAddend = 0x9E3779B97F4A7C15;

__attribute__((always_inline)) inline void Step(uint64_t& x, uint64_t addend) {
  x = (x << 7) | (x >> 57);
  asm volatile("" : "+r"(x));
  x += addend;
  asm volatile("" : "+r"(x));
}

// Two cycles per step on every CPU of the last ten years; no compiler and no CPU can shorten it.
uint64_t Chain(uint64_t addend, size_t steps) {
  uint64_t x = 1;
  for (size_t i = 0; i < steps; ++i) Step(x, addend);
  return x;
}

}  // namespace

std::string CpuName() {
  std::string name = kernels::ValueOf("/proc/cpuinfo", "model name");
#if defined(__APPLE__)
  std::array<char, 128> brand = {};
  size_t size = brand.size() - 1;
  if (sysctlbyname("machdep.cpu.brand_string", brand.data(), &size, nullptr, 0) == 0) {
    name = brand.data();
  }
#endif
  utsname system = {};
  if (name.empty() && uname(&system) == 0) name = system.machine;
  return gguf::Printable(name);
}

std::vector<std::string> MachineLines(const std::string& sysfs) {
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what, const std::string& text) {
    if (!text.empty()) lines.push_back(what + ": " + gguf::Printable(text));
  };
  const std::string cpu = sysfs + "/devices/system/cpu/";
  // Intel's hybrid chips list their kinds of cores.
  const std::string fast = kernels::FirstLine(sysfs + "/devices/cpu_core/cpus");
  const std::string slow = kernels::FirstLine(sysfs + "/devices/cpu_atom/cpus");
  add("hardware threads",
      kernels::FirstLine(cpu + "online") +
          (slow.empty() ? "" : " (P cores: " + fast + ", E cores: " + slow + ")"));
  std::string caches;
  for (const fs::path& cache : Entries(cpu + "cpu0/cache")) {
    const std::string size = kernels::FirstLine(cache / "size");
    const std::string type = kernels::FirstLine(cache / "type");
    if (size.empty() || type == "Instruction") continue;
    caches += (caches.empty() ? "L" : ", L") + kernels::FirstLine(cache / "level") + " " + size +
              " for " + kernels::FirstLine(cache / "shared_cpu_list");
  }
  add("caches of the first core", caches);
  add("clock policy", kernels::FirstLine(cpu + "cpu0/cpufreq/scaling_governor"));
  for (const fs::path& supply : Entries(sysfs + "/class/power_supply")) {
    if (kernels::FirstLine(supply / "type") != "Mains") continue;
    add("power", kernels::FirstLine(supply / "online") == "1" ? "mains" : "battery");
  }
  add("memory", kernels::ValueOf("/proc/meminfo", "MemTotal"));
  std::string name = kernels::ValueOf("/etc/os-release", "PRETTY_NAME");
  std::erase(name, '"');
  utsname system = {};
  if (uname(&system) == 0) {
    add("system", name + (name.empty() ? "" : ", ") + system.sysname + " " + system.release);
  }
#if defined(__clang__)
  add("compiler", __VERSION__);  // it begins with the compiler's name
#else
  add("compiler", "GCC " __VERSION__);
#endif
  return lines;
}

int UsableHardwareThreads() {
#if defined(__linux__)
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc = {};
  gmtime_r(&now, &utc);
  std::array<char, 32> text = {};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text.data();
}

double MeasureClock() {
  constexpr size_t kSteps = 100'000;
  constexpr int kTries = 200;
  [[maybe_unused]] volatile uint64_t sink = 0;
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    const engine::Stopwatch watch;
    sink = Chain(kAddend, kSteps);
    best = std::max(best, 2.0 * kSteps / watch.Seconds());
  }
  return best / 1e9;
}

std::string ReadsFrom(uint64_t bytes, const std::string& sysfs) {
  uint64_t most = 0;  // the files say "32768K"
  for (const fs::path& cache : Entries(sysfs + "/devices/system/cpu/cpu0/cache"))
    most = std::max(most, kernels::FirstNumber(cache / "size").value_or(0));
  return bytes <= most << 10 ? "the cache" : "memory";
}

double PeakMemory() {
  const std::string peak = kernels::ValueOf("/proc/self/status", "VmHWM");
  if (!peak.empty()) return 1024 * std::strtod(peak.c_str(), nullptr);
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * (kIsApple ? 1 : 1024);
}

void ResetPeakMemory() { std::ofstream("/proc/self/clear_refs") << "5"; }

InstructionMeter::InstructionMeter() {
  for (int& file : files_) {
    file = -1;
#if defined(__linux__)
    perf_event_attr event = {};
    event.size = sizeof(event);
    event.type = PERF_TYPE_HARDWARE;
    event.config = PERF_COUNT_HW_CPU_CYCLES;
    if (&file == files_) event.config = PERF_COUNT_HW_INSTRUCTIONS;
    event.inherit = event.exclude_kernel = event.exclude_hv = 1;
    file = static_cast<int>(syscall(SYS_perf_event_open, &event, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
#endif
  }
}

InstructionMeter::~InstructionMeter() {
  for (const int file : files_) {
    if (file >= 0) close(file);
  }
}

void InstructionMeter::Add(double sign) {
  for (size_t i = 0; i < 2; ++i) {
    uint64_t count = 0;
    if (files_[i] >= 0 && read(files_[i], &count, sizeof(count)) == sizeof(count))
      counts_[i] += sign * static_cast<double>(count);
  }
}

std::optional<double> InstructionMeter::PerCycle() const {
  return counts_[1] > 0 ? std::optional(counts_[0] / counts_[1]) : std::nullopt;
}

}  // namespace cli
