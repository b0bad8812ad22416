// The small text files in which Linux describes the machine: /proc, /sys and control groups, where
// it says how much of the cores and of the memory a container, a service or a job may use. A file
// that is not there reads as an empty one.
#ifndef PRONK_KERNELS_MACHINE_SYSFS_H_
#define PRONK_KERNELS_MACHINE_SYSFS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernels {

std::string FirstLine(const std::string& path);

// The number that a file begins with.
std::optional<uint64_t> FirstNumber(const std::string& path);

// The value in a file of lines "key value" or "key: value"; empty where the key is missing.
std::string ValueOf(const std::string& path, std::string_view key);

struct ControlGroup {
  std::string folder;  // of its files: "/sys/fs/cgroup/user/job/"
  int version;         // 1 or 2
};

// The groups of this process, from the innermost to the top: each may grant less than those inside
// it ask for. `controller` is "cpu" or "memory"; `root` is "/", but in tests. None on systems
// without such groups.
std::vector<ControlGroup> ControlGroups(const std::string& root, const std::string& controller);

}  // namespace kernels

#endif  // PRONK_KERNELS_MACHINE_SYSFS_H_
