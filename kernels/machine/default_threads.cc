// The default number of threads. Decode waits for memory and prefill for arithmetic units: neither
// gains from two threads on one core, and a slow (efficiency) core delays the fast ones.
#include "kernels/machine/default_threads.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "kernels/machine/sysfs.h"
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace kernels {
namespace {

#if defined(__linux__)

// CPUs of a kernel list such as "0-7,16"; empty where the file does not exist.
std::set<int> CpuList(const std::string& path) {
  std::set<int> cpus;
  const std::string line = FirstLine(path);
  for (size_t at = 0; at < line.size();) {
    char* end = nullptr;
    const long first = std::strtol(line.c_str() + at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long cpu = first; cpu <= std::min(last, first + CPU_SETSIZE); ++cpu) {
      cpus.insert(static_cast<int>(cpu));
    }
    at = static_cast<size_t>(end - line.c_str()) + 1;
  }
  return cpus;
}

int UsableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return static_cast<int>(std::thread::hardware_concurrency());
  }
  // Intel's hybrid chips list their performance cores here; others have no such file.
  const std::set<int> performance = CpuList("/sys/devices/cpu_core/cpus");
  std::set<int> cores;  // each by its lowest hardware thread that we may use
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (!performance.empty() && !performance.contains(cpu)) continue;
    const std::set<int> siblings = CpuList("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                           "/topology/thread_siblings_list");
    const auto core = std::find_if(siblings.begin(), siblings.end(),
                                   [&](int sibling) { return CPU_ISSET(sibling, &allowed); });
    cores.insert(core == siblings.end() ? cpu : *core);
  }
  // If only efficiency cores are allowed: those.
  const int n = cores.empty() ? CPU_COUNT(&allowed) : static_cast<int>(cores.size());
  return std::min(n, CoresOfControlGroups("/"));
}

#elif defined(__APPLE__)

int UsableCores() {
  int n = 0;
  size_t size = sizeof(n);
  if (sysctlbyname("hw.perflevel0.physicalcpu", &n, &size, nullptr, 0) != 0 || n < 1) {
    n = static_cast<int>(std::thread::hardware_concurrency());
  }
  return n;
}

#else

int UsableCores() { return static_cast<int>(std::thread::hardware_concurrency()); }

#endif

// The CPU quota of one group in cores, if it has one.
std::optional<double> Quota(const ControlGroup& group) {
  double quota = 0, period = 0;
  std::istringstream numbers(
      group.version == 2 ? FirstLine(group.folder + "cpu.max")  // "max 100000" leaves both 0
                         : FirstLine(group.folder + "cpu.cfs_quota_us") + " " +  // -1: no limit
                               FirstLine(group.folder + "cpu.cfs_period_us"));
  numbers >> quota >> period;
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

int CoresOfControlGroups(const std::string& root) {
  double cores = 1 << 20;
  for (const ControlGroup& group : ControlGroups(root, "cpu")) {
    cores = std::min(cores, Quota(group).value_or(cores));
  }
  return std::max(1, static_cast<int>(cores + 0.5));
}

int DefaultThreads() { return std::max(UsableCores(), 1); }

}  // namespace kernels
