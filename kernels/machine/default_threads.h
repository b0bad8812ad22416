// The number of threads to use when nobody says, and control groups: where Linux says how much of a
// machine a container, a service or a job may use, of its cores and of its memory.
#ifndef PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
#define PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_

#include <string>
#include <vector>

namespace kernels {

// The performance cores that the affinity mask and the cgroup quota leave us; at least 1.
int DefaultThreads();

struct ControlGroup {
  std::string folder;  // of its files: "/sys/fs/cgroup/user/job/"
  int version;         // 1 or 2
};

// The groups that we are in, from the innermost to the top: each may grant less than those inside
// it ask for. `controller` is "cpu" or "memory"; `root` is "/", but in tests. None on systems
// without such groups.
std::vector<ControlGroup> ControlGroups(const std::string& root, const std::string& controller);

// Cores' worth of time that all of them grant, at least 1; a large number where none is limited.
int CoresOfControlGroups(const std::string& root);

}  // namespace kernels

#endif  // PRONK_KERNELS_MACHINE_DEFAULT_THREADS_H_
