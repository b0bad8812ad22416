// How many threads to use when nobody says. Decoding waits for memory and prefill for arithmetic
// units; neither gains from two threads on one core, and a slow (efficiency) core holds up the fast
// ones.
#include "kernels/machine/default_threads.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace kernels {
namespace {

#if defined(__linux__)

std::string FirstLine(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

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
  // Intel's hybrid chips list their performance cores here; other machines have no such file.
  const std::set<int> performance = CpuList("/sys/devices/cpu_core/cpus");
  std::set<int> cores;  // each named by the lowest of its hardware threads that we may use
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    if (!performance.empty() && !performance.contains(cpu)) continue;
    const std::set<int> siblings = CpuList("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                                           "/topology/thread_siblings_list");
    const auto core = std::find_if(siblings.begin(), siblings.end(),
                                   [&](int sibling) { return CPU_ISSET(sibling, &allowed); });
    cores.insert(core == siblings.end() ? cpu : *core);
  }
  // Nothing but efficiency cores allowed: use those.
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

// Cores' worth of time that one group grants, or none where it does not say.
std::optional<double> Quota(const ControlGroup& group) {
  double quota = 0, period = 0;
  if (group.version == 2) {
    std::ifstream(group.folder + "cpu.max") >> quota >> period;  // "max 100000" leaves them 0
  } else {
    std::ifstream(group.folder + "cpu.cfs_quota_us") >> quota;  // -1: no limit
    std::ifstream(group.folder + "cpu.cfs_period_us") >> period;
  }
  if (quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

}  // namespace

// /proc/self/cgroup has lines of "4:cpu,cpuacct:/path" (version 1) and "0::/path" (version 2). A
// container may see the mount but not the path to its own group: then the mount is its group.
std::vector<ControlGroup> ControlGroups(const std::string& root, const std::string& controller) {
  std::vector<ControlGroup> groups;
  std::ifstream lines(root + "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string path = line.substr(second + 1);
    const bool is_2 = controllers == ",,";
    const bool is_1 = controllers.find("," + controller + ",") != std::string::npos;
    if (!path.starts_with('/') || (!is_1 && !is_2)) continue;
    if (path == "/") path.clear();
    const std::string mount = root + "sys/fs/cgroup" + (is_1 ? "/" + controller : "");
    for (;; path.resize(path.find_last_of('/'))) {
      groups.push_back({mount + path + "/", is_1 ? 1 : 2});
      if (path.empty()) break;
    }
  }
  return groups;
}

int CoresOfControlGroups(const std::string& root) {
  double cores = 1 << 20;
  for (const ControlGroup& group : ControlGroups(root, "cpu")) {
    cores = std::min(cores, Quota(group).value_or(cores));
  }
  return std::max(1, static_cast<int>(cores + 0.5));
}

int DefaultThreads() { return std::max(UsableCores(), 1); }

}  // namespace kernels
