// Cores and quotas of control groups, read from folders like the system's.
#include "kernels/threads/default_threads.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace kernels {
namespace {

class DefaultThreadsTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_.Path(path)).parent_path());
    dir_.Write(path, text);
  }
  // Makes the files for a machine's cores, in the order of their CPUs: "2*2 core 4700, 8 atom 3500"
  // are two performance cores of Intel's with two hardware threads each (by number neighbours; far
  // apart with "/" in place of "*"), and eight efficiency cores, with their clocks in MHz. "cap" is
  // followed by Arm's capacity. Returns all CPUs.
  std::set<int> Make(const std::string& cores) {
    const auto range = [](int first, int n, const char* between) {
      const std::string one = std::to_string(first);
      return n == 1 ? one : one + between + std::to_string(first + n - 1);
    };
    std::set<int> all;
    std::istringstream groups(cores);
    for (std::string group; std::getline(groups, group, ',');) {
      std::istringstream in(group);
      const int first = static_cast<int>(all.size());
      int n = 0, threads = 1, number = 0;
      char between = ' ';
      std::string kind;
      in >> n;
      if (in.peek() != ' ') in >> between >> threads;
      const int n_cpus = n * threads;
      while (in >> kind) {
        if (kind == "core" || kind == "atom") {
          Write("sys/devices/cpu_" + kind + "/cpus", range(first, n_cpus, "-") + "\n");
          continue;
        }
        if (kind == "cap") in >> number;
        for (int cpu = first; cpu < first + n_cpus; ++cpu) {
          Write(Cpu(cpu) + (kind == "cap" ? "cpu_capacity" : "cpufreq/cpuinfo_max_freq"),
                kind == "cap" ? std::to_string(number) : kind + "000");
        }
      }
      for (int i = 0; i < n_cpus; ++i) {
        const int core = first + i % n;
        all.insert(first + i);
        if (threads == 1) continue;
        Write(Cpu(first + i) + "topology/thread_siblings_list",
              between == '/' ? std::to_string(core) + "," + std::to_string(core + n)
                             : range(first + i / threads * threads, threads, "-"));
      }
    }
    return all;
  }
  static std::string Cpu(int cpu) {
    return "sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/";
  }
  std::string Counts(const std::set<int>& allowed) {
    const ThreadCounts counts = ThreadsFor(dir_.Path(""), allowed);
    return std::to_string(counts.generating) + " " + std::to_string(counts.prompt);
  }
  int Cores() { return CoresOfControlGroups(dir_.Path("")); }

  test::TempDir dir_;
};

TEST_F(DefaultThreadsTest, NoGroupsAndNoLimits) {
  EXPECT_GT(Cores(), 1000);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_GT(Cores(), 1000);
  EXPECT_GE(DefaultThreads().generating, 1);
  EXPECT_GE(DefaultThreads().prompt, DefaultThreads().generating);
}

// The quota of the group itself or of an enclosing group counts, not only the top group's.
TEST_F(DefaultThreadsTest, TheSmallestQuotaOnTheWayUp) {
  Write("proc/self/cgroup", "0::/user/job\n");
  Write("sys/fs/cgroup/user/job/cpu.max", "400000 100000\n");
  EXPECT_EQ(Cores(), 4);
  Write("sys/fs/cgroup/user/cpu.max", "150000 50000\n");
  EXPECT_EQ(Cores(), 3);
  Write("sys/fs/cgroup/user/job/cpu.max", "10000 100000\n");  // less than one
  EXPECT_EQ(Cores(), 1);
}

TEST_F(DefaultThreadsTest, Version1) {
  Write("proc/self/cgroup", "5:cpuset:/other\n4:cpu,cpuacct:/job\nnonsense\n");
  Write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  EXPECT_GT(Cores(), 1000);
  Write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  EXPECT_EQ(Cores(), 2);
}

TEST_F(DefaultThreadsTest, WhereAContainerDoesNotSeeItsPath) {
  Write("proc/self/cgroup", "0::/docker/123\n");
  Write("sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(Cores(), 2);
}

// Real machines, from published listings of their cores: threads for generating, for prompts.
struct Machine {
  const char *name, *cores, *expected;
};
class MachineTest : public DefaultThreadsTest, public testing::WithParamInterface<Machine> {};

TEST_P(MachineTest, Counts) { EXPECT_EQ(Counts(Make(GetParam().cores)), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    All, MachineTest,
    testing::Values(Machine{"I7_1255U", "2*2 core 4700, 8 atom 3500", "4 10"},
                    Machine{"Ultra7_155H", "6*2 core 4800, 8 atom 3800, 2 atom 2500", "6 16"},
                    Machine{"LunarLake_258V", "4 core 4800, 4 atom 3700", "4 8"},
                    Machine{"Ultra7_265K", "8 core 5500, 12 atom 4600", "8 20"},
                    Machine{"I9_13900K", "8*2 core 5500, 16 atom 4300", "8 24"},
                    Machine{"Ryzen_7840U", "8*2 5137", "8 8"},
                    Machine{"Ryzen_5950X", "16/2 5083", "16 16"},
                    Machine{"RyzenAI_370", "4*2 5157, 8*2 3307", "4 12"},
                    Machine{"SnapdragonX_Elite", "8 3417, 2 4012, 2 3417", "12 12"},
                    Machine{"RK3588", "4 cap 414, 4 cap 1024", "4 8"},
                    Machine{"RaspberryPi5", "4 cap 1024", "4 4"},
                    Machine{"Ampere_Q80", "80 cap 1024", "80 80"},
                    Machine{"TwoOfAServer", "1*2", "1 1"}),
    [](const auto& machine) { return std::string(machine.param.name); });

// Masks and quotas: siblings whose other half is taken, slow cores only, a quota below the cores.
TEST_F(DefaultThreadsTest, PartOfAMachine) {
  const std::set<int> all = Make("2*2 core 4700, 8 atom 3500");
  EXPECT_EQ(Counts({1, 2, 3}), "2 2");
  EXPECT_EQ(Counts({4, 5, 6, 7, 8, 9}), "6 6");
  EXPECT_EQ(Counts({0, 4}), "2 2");
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "300000 100000\n");
  EXPECT_EQ(Counts(all), "3 3");
}

TEST(DefaultThreadsMacTest, PerformanceLevels) {
  const auto counts = [](std::map<std::string, int> values) {
    const ThreadCounts n = ThreadsFor([&](const std::string& name) { return values[name]; });
    return std::to_string(n.generating) + " " + std::to_string(n.prompt);
  };
  const auto levels = [&](int fast, int slow) {
    return counts({{"hw.nperflevels", 2},
                   {"hw.physicalcpu", fast + slow},
                   {"hw.perflevel0.physicalcpu", fast},
                   {"hw.perflevel1.physicalcpu", slow}});
  };
  EXPECT_EQ(levels(4, 4), "4 8");                     // M1, M2, M3
  EXPECT_EQ(levels(8, 2), "8 10");                    // M1 Pro
  EXPECT_EQ(levels(6, 6), "6 12");                    // M3 Pro
  EXPECT_EQ(levels(4, 6), "4 10");                    // M4
  EXPECT_EQ(levels(12, 4), "12 16");                  // M4 Max
  EXPECT_EQ(levels(16, 8), "16 24");                  // M2 Ultra
  EXPECT_EQ(counts({{"hw.physicalcpu", 4}}), "4 4");  // Intel
  EXPECT_EQ(counts({}), "1 1");
}

}  // namespace
}  // namespace kernels
