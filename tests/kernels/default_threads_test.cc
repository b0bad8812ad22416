// The quotas of control groups, read from folders like the system's.
#include "kernels/machine/default_threads.h"

#include <gtest/gtest.h>

#include <filesystem>
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
  int Cores() { return CoresOfControlGroups(dir_.Path("")); }

  test::TempDir dir_;
};

TEST_F(DefaultThreadsTest, NoGroupsAndNoLimits) {
  EXPECT_GT(Cores(), 1000);
  Write("proc/self/cgroup", "0::/\n");
  Write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_GT(Cores(), 1000);
  EXPECT_GE(DefaultThreads(), 1);
}

// The quota of the group itself, or of one around it, counts; not only that of the top.
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

}  // namespace
}  // namespace kernels
