// The default numbers of threads, one per core: generation waits for memory and prompt processing
// for arithmetic units, so neither gains from two threads on one core.
#include "kernels/threads/default_threads.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

#include "kernels/threads/sysfs.h"
#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace kernels {
namespace {

// A core below this part of the fastest core's speed is slow. The fast cores of one chip differ by
// up to a sixth (boost), compact cores reach two thirds, efficiency cores half.
constexpr double kFast = 0.7;
// Work per cycle of an Intel efficiency core, relative to a performance core.
constexpr double kAtom = 0.6;
// The number of cores that use up a laptop's memory bandwidth: if there are fewer fast cores, slow
// ones are added.
constexpr int kReaders = 4;

ThreadCounts CountsOf(const std::vector<double>& speeds, int max_threads) {
  const double fastest = *std::max_element(speeds.begin(), speeds.end());
  const auto fast = std::count_if(speeds.begin(), speeds.end(),
                                  [&](double speed) { return speed >= kFast * fastest; });
  const int n = static_cast<int>(speeds.size());
  return {std::min({std::max(static_cast<int>(fast), kReaders), n, max_threads}),
          std::min(n, max_threads)};
}

// CPUs of a kernel list such as "0-7,16"; empty where the file does not exist.
std::set<int> CpuList(const std::string& path) {
  constexpr long kMaxCpus = 4096;
  std::set<int> cpus;
  const std::string line = FirstLine(path);
  for (size_t at = 0; at < line.size();) {
    char* end = nullptr;
    const long first = std::strtol(line.c_str() + at, &end, 10);
    const long last = *end == '-' ? std::strtol(end + 1, &end, 10) : first;
    for (long cpu = first; cpu <= std::min(last, first + kMaxCpus); ++cpu) {
      cpus.insert(static_cast<int>(cpu));
    }
    at = static_cast<size_t>(end - line.c_str()) + 1;
  }
  return cpus;
}

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

// Arm boards state the capacity of a core; elsewhere its clock and kind give its speed.
ThreadCounts ThreadsFor(const std::string& root, const std::set<int>& allowed) {
  // Intel's hybrid chips list their performance cores here; other systems have no such file.
  const std::set<int> performance = CpuList(root + "sys/devices/cpu_core/cpus");
  std::map<int, double> cores;  // speeds, by the lowest hardware thread that we may use
  for (const int cpu : allowed) {
    const std::string folder = root + "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
    const std::set<int> siblings = CpuList(folder + "topology/thread_siblings_list");
    const auto core = std::find_if(siblings.begin(), siblings.end(),
                                   [&](int sibling) { return allowed.contains(sibling); });
    const bool is_atom = !performance.empty() && !performance.contains(cpu);
    const auto capacity = FirstNumber(folder + "cpu_capacity");
    const auto clock = FirstNumber(folder + "cpufreq/cpuinfo_max_freq");
    cores[core == siblings.end() ? cpu : *core] =
        static_cast<double>(capacity.value_or(clock.value_or(1))) * (is_atom ? kAtom : 1);
  }
  std::vector<double> speeds;
  speeds.reserve(cores.size());
  for (const auto& [cpu, speed] : cores) speeds.push_back(speed);
  return CountsOf(speeds, CoresOfControlGroups(root));
}

ThreadCounts ThreadsFor(const std::function<int(const std::string& name)>& sysctl) {
  std::vector<double> speeds;
  for (int level = 0; level < sysctl("hw.nperflevels"); ++level) {
    const int n = sysctl("hw.perflevel" + std::to_string(level) + ".physicalcpu");
    speeds.insert(speeds.end(), static_cast<size_t>(n), 1.0 / (1 + level));
  }
  if (speeds.empty()) speeds.resize(static_cast<size_t>(std::max(sysctl("hw.physicalcpu"), 1)), 1);
  return CountsOf(speeds, static_cast<int>(speeds.size()));
}

int CoresOfControlGroups(const std::string& root) {
  double cores = 1 << 20;
  for (const ControlGroup& group : ControlGroups(root, "cpu")) {
    cores = std::min(cores, Quota(group).value_or(cores));
  }
  return std::max(1, static_cast<int>(cores + 0.5));
}

ThreadCounts DefaultThreads() {
#if defined(__linux__)
  cpu_set_t mask;
  std::set<int> allowed;
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) allowed.insert(cpu);
    }
  }
  if (!allowed.empty()) return ThreadsFor("/", allowed);
#elif defined(__APPLE__)
  return ThreadsFor([](const std::string& name) {
    int value = 0;
    size_t size = sizeof(value);
    return sysctlbyname(name.c_str(), &value, &size, nullptr, 0) == 0 ? value : 0;
  });
#endif
  const int n = std::max(static_cast<int>(std::thread::hardware_concurrency()), 1);
  return {n, n};
}

}  // namespace kernels
