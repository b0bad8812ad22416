// The default numbers of threads.
#pragma once

#include <functional>
#include <set>
#include <string>

namespace kernels {

struct ThreadCounts {
  int generating;  // threads that saturate the memory: the fast cores, at least four
  int prompt;      // threads that run prompts and other work that free threads take: all cores
};

// The thread counts for the cores that the affinity mask and the quotas of control groups leave to
// this process; both are at least 1.
ThreadCounts DefaultThreads();

// DefaultThreads for the CPUs `allowed`, at least one, of a system described by files below `root`
// ("/" except in tests), and for one described by sysctl (macOS), which gives 0 for an unknown
// name.
ThreadCounts ThreadsFor(const std::string& root, const std::set<int>& allowed);
ThreadCounts ThreadsFor(const std::function<int(const std::string& name)>& sysctl);

// The CPU quota of all control groups (sysfs.h) in cores, at least 1; a large number if no group
// has a quota. `root` is "/" except in tests.
int CoresOfControlGroups(const std::string& root);

}  // namespace kernels
