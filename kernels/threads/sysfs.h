// The small text files in which Linux describes the machine: /proc, /sys and control groups, which
// limit the cores and memory of a container, a service or a job. A missing file reads as empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernels {

std::string FirstLine(const std::string& path);

// The number at the start of a file.
std::optional<uint64_t> FirstNumber(const std::string& path);

// The value in a file of lines "key value", "key: value" or "key=value"; empty if the key is
// missing.
std::string ValueOf(const std::string& path, std::string_view key);

struct ControlGroup {
  std::string folder;  // where its files are: "/sys/fs/cgroup/user/job/"
  int version;         // 1 or 2
};

// The groups of this process, from the innermost to the top: each may have a lower limit than the
// groups inside it. `controller` is "cpu" or "memory"; `root` is "/" except in tests. Empty on
// systems without control groups.
std::vector<ControlGroup> ControlGroups(const std::string& root, const std::string& controller);

}  // namespace kernels
