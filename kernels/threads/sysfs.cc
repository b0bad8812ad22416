// Reads files of /proc, /sys and control groups, absent ones as empty.
#include "kernels/threads/sysfs.h"

#include <fstream>

namespace kernels {

std::string FirstLine(const std::string& path) {
  std::string line;
  std::ifstream in(path);
  std::getline(in, line);
  return line;
}

std::optional<uint64_t> FirstNumber(const std::string& path) {
  uint64_t number = 0;
  if (std::ifstream(path) >> number) return number;
  return std::nullopt;
}

std::string ValueOf(const std::string& path, std::string_view key) {
  constexpr std::string_view kBetween = " :=\t";
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const size_t value = line.find_first_not_of(kBetween, key.size());
    if (value != std::string::npos && value > key.size()) return line.substr(value);
  }
  return "";
}

// /proc/self/cgroup has lines of "4:cpu,cpuacct:/path" (version 1) and "0::/path" (version 2). If a
// container sees the mount but not the path of its own group, the mount is its group.
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

}  // namespace kernels
